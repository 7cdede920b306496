package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hone"
	"hone/cmd/hone/failure"
	"hone/history"
	"hone/internal/render"
)

// An empty name opens nothing. A file that is no such log is refused, because nothing could restore it.
func (a *app) openLog(name string) error {
	if name == "" {
		return nil
	}
	refuse := func(why string) error {
		return failure.Usage(fmt.Sprintf("--log: %s %s", render.Line(name), why), "name a new file, such as --log hone.jsonl")
	}
	link, linkErr := os.Lstat(name)
	info, err := os.Stat(name)
	null, _ := os.Stat(os.DevNull)
	switch {
	case err == nil && (info.Mode()&fs.ModeNamedPipe != 0 || os.SameFile(info, null)):
	case linkErr == nil && link.Mode()&fs.ModeSymlink != 0 && (err != nil || info.Mode().IsRegular()):
		return refuse("is a symbolic link")
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return cannotCreate(name, err)
	case !info.Mode().IsRegular():
		return refuse("is not a regular file")
	case !isLog(name):
		return refuse("has other contents than events of hone")
	}
	if a.log, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
		return cannotCreate(name, err)
	}
	return nil
}

func isLog(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	const first = `{"v":`
	head := make([]byte, len(first))
	n, err := io.ReadFull(f, head)
	return err == io.EOF || n == len(first) && bytes.Equal(head, []byte(first))
}

// eventLine returns an event as --json prints it: its line in the journal. The
// last event also contains the exit status, and a question also its digest.
func eventLine(e history.Event) []byte {
	line := bytes.TrimSuffix(e.Line(), []byte("}"))
	switch p := e.Payload.(type) {
	case hone.End:
		return fmt.Appendf(nil, `%s,"exit":%d}`, line, failure.ExitStatus(p.Kind))
	case history.Question:
		return fmt.Appendf(nil, `%s,"question":"%s"}`, line, p.Digest(e.Run))
	}
	return e.Line()
}

// awaitAcks makes a run wait before each model call until all its events are stored. Each line of in is the
// number of the last event that is. The end of in cancels the returned context, as Ctrl-C does: the program that
// stores the events is gone.
func awaitAcks(ctx context.Context, r *hone.Run, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stored := make(chan int64, 1) // the newest number, if no call has waited for it
	go func() {
		defer cancel()
		last := int64(0)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			seq, err := strconv.ParseInt(strings.TrimSpace(lines.Text()), 10, 64)
			if err != nil {
				return
			}
			last = max(last, seq)
			select {
			case <-stored:
			default:
			}
			stored <- last
		}
	}()
	var waiting sync.Mutex
	last := int64(0)
	r.Sending = func() error {
		seq := lastCall(r.Past().Events())
		waiting.Lock()
		defer waiting.Unlock()
		for last < seq && ctx.Err() == nil {
			select {
			case last = <-stored:
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	}
	return ctx, cancel
}

// It is 0 if there is none. Concurrent calls of an agent may have recorded later events, for which hone does not wait.
func lastCall(events []history.Event) int64 {
	for _, e := range slices.Backward(events) {
		switch p := e.Payload.(type) {
		case history.Reserve:
			return e.Seq
		case history.Asked:
			if p.Command {
				return e.Seq
			}
		}
	}
	return 0
}
