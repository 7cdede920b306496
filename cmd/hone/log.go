package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

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
