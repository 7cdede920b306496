// Package child runs hone itself as a child process and follows its events.
//
// A [Command] is one command line. [Command.Run] starts one of a loop, or of resume, with
// --json, calls Event for each event of its feed, and returns how it ended. [Command.Output]
// runs one that starts no run. If the context
// is done, the child is asked to end as by Ctrl-C, so that it stops its own commands and
// records its end; after [Grace] it is killed. A child that recorded no end, for whatever
// reason, continues with "hone resume last -C DIR" where its journal ends.
//
// The child is a command of [wall.None]: it has no terminal, so that it can ask nobody,
// and if this process is killed the supervisor (off Linux the keeper) ends the child with all that it started. The
// commands of the child have supervisors and walls of their own as in any other hone. What
// the child leaves half done, such as a file that a command of it changed, its own next
// process restores.
//
// The package neither restarts a child nor limits it: the child's own limits do.
package child

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone/history"
	"hone/journal"
	"hone/sandbox"
	"hone/sandbox/wall"
)

// Grace is how long an interrupted child has to stop its commands and to record its end.
const Grace = 20 * time.Second

// maxSaid is how many bytes of the end of a child's stderr are kept.
const maxSaid = 16 << 10

// Command is one command line of hone.
type Command struct {
	// Program is the path of hone; empty means the program of this process, which must
	// be a hone then.
	Program string
	// Dir is the directory in which the child starts.
	Dir string
	// Args are the arguments. Run adds the flag --json before the first one that is "--", or
	// at the end.
	Args []string
	// Env is the complete environment, as KEY=VALUE; nil means an empty one.
	Env []string
	// Stdin is what the child reads; nil means nothing. With --ack in Args, the child reads
	// acknowledgments from it, and its end interrupts the child.
	Stdin io.Reader
	// Keeper ends the child if this process is killed; nil means that the child may
	// outlive it where the kernel does not end it.
	Keeper *wall.Keeper
	// Event is called for each event as the child records it, by one goroutine at a time;
	// nil does nothing. The child waits for it.
	Event func(history.Event)
}

// Result says how a child ended.
type Result struct {
	// Exit is the exit status; -1 if a signal ended the child before it recorded its end.
	Exit int
	// Run is the id of the run; empty if the child recorded nothing: its command line was
	// wrong, or it resumed a run that was over.
	Run string
	// Printed is what the child printed to stdout, at most 8 MiB; only of Output.
	Printed string
	// Said is the end of what the child printed to stderr, without the last newline.
	Said string
}

// Failure is why a child failed, as it told the user.
type Failure struct {
	Exit int
	Why  string // a line for each error; empty if it told nothing
	Next string // what to type next; may be empty
	last string // of what it said
}

func (f *Failure) Error() string {
	if f.Why == "" {
		return strings.TrimSuffix(fmt.Sprintf("hone ended with status %d: %s", f.Exit, f.last), ": ")
	}
	return f.Why
}

// Hint returns what to type next.
func (f *Failure) Hint() string { return f.Next }

// Error returns a [*Failure] of a child that recorded nothing; nil if it has a run, or if
// nothing was wrong.
func (r Result) Error() error {
	if r.Run != "" || r.Exit == 0 {
		return nil
	}
	f := &Failure{Exit: r.Exit, last: r.Said[strings.LastIndexByte(r.Said, '\n')+1:]}
	for part := range strings.SplitSeq("\n"+r.Said, "\nhone: ") {
		if why, ok := strings.CutPrefix(part, "error: "); ok {
			f.Why = strings.TrimPrefix(f.Why+"\n"+why, "\n")
		} else if hint, ok := strings.CutPrefix(part, "hint: "); ok {
			f.Next = strings.TrimPrefix(f.Next+"\n"+hint, "\n")
		}
	}
	return f
}

// Run runs the child to its end. An error means that it could not be started, or that what
// it printed is not a feed of events; everything else is a Result. It returns both if the
// feed broke off.
func (c Command) Run(ctx context.Context) (Result, error) {
	f := &feed{event: c.Event}
	r, err := c.run(ctx, With(c.Args, "--json"), 1, f)
	if err != nil {
		return r, err
	}
	f.result.Exit, f.result.Said = r.Exit, r.Said
	if f.exit != nil {
		f.result.Exit = *f.exit // also if it was asked to end
	}
	return f.result, f.err
}

// Output runs a child that starts no run to its end. If its exit status is not 0, the error is
// a [*Failure].
func (c Command) Output(ctx context.Context) (Result, error) {
	r, err := c.run(ctx, c.Args, 8<<20, nil)
	if err == nil {
		err = r.Error()
	}
	return r, err
}

func (c Command) run(ctx context.Context, args []string, most int64, live io.Writer) (Result, error) {
	program, err := filepath.Abs(c.Program)
	if c.Program == "" {
		program, err = os.Executable()
	}
	if err != nil {
		return Result{Exit: -1}, fmt.Errorf("find this program: %w", err)
	}
	said := &tail{most: maxSaid}
	r, err := wall.None{Grace: Grace, Keeper: c.Keeper}.Run(ctx, sandbox.Command{
		Argv: append([]string{program}, args...), Dir: c.Dir, Env: c.Env, Stdin: c.Stdin, MaxOutput: most, LiveOut: live, LiveErr: said,
	})
	if err != nil {
		return Result{Exit: -1}, err
	}
	return Result{Exit: r.Exit, Printed: string(r.Stdout), Said: said.text()}, nil
}

// With adds flags to arguments, before the first argument that is "--".
func With(args []string, flags ...string) []string {
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	return slices.Insert(slices.Clone(args), at, flags...)
}

type feed struct {
	event  func(history.Event)
	rest   []byte // of a line that is not complete
	result Result
	exit   *int // as the child's last event says it; nil before that
	err    error
}

// Write takes the next piece of the output. It never fails, so that the child can end.
func (f *feed) Write(piece []byte) (int, error) {
	f.rest = append(f.rest, piece...)
	for {
		line, rest, whole := bytes.Cut(f.rest, []byte{'\n'})
		if !whole {
			return len(piece), nil
		}
		f.rest = rest
		if f.err == nil {
			f.err = f.line(bytes.Clone(line))
		}
	}
}

func (f *feed) line(line []byte) error {
	event, err := journal.ParseLine(line)
	if err != nil {
		return fmt.Errorf("read the events of a child: %w", err)
	}
	e := history.Decode(event)
	f.result.Run = e.Run
	switch e.Payload.(type) {
	case history.Resumed:
		f.exit = nil
	case history.End: // the feed adds the exit status to it
		var has struct {
			Exit *int `json:"exit"`
		}
		if f.exit = nil; event.Decode(&has) == nil {
			f.exit = has.Exit
		}
	}
	if f.event != nil {
		f.event(e)
	}
	return nil
}

type tail struct {
	most int
	kept []byte
}

func (t *tail) Write(piece []byte) (int, error) {
	t.kept = append(t.kept, piece...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(piece), nil
}

// If lines were lost, it begins with a whole one.
func (t *tail) text() string {
	kept := t.kept
	if len(kept) == t.most {
		_, kept, _ = bytes.Cut(kept, []byte{'\n'})
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(kept), "\uFFFD"))
}
