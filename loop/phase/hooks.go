package phase

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"hone"
	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
	"hone/sandbox"
)

// Where the hooks are, and where start_dev leaves the server's output and the id
// of its process. Paths are relative to the project's root.
const (
	HooksName = "abl.config.sh"
	devLog    = "tests/results/dev.log"
	devPID    = "tests/results/dev.pid"

	otherDevLog = "logs/dev.log" // in ABL's later layout
)

// Hooks are the project's own commands: health_check, map_deps, start_dev,
// reset_state and stop_dev. They run code that a model wrote.
type Hooks struct {
	// Runner runs behind walls in which src/ and tests/results/ can be written,
	// abl.config.sh can be read, and no other part of the project exists.
	Runner HookRunner
	Dir    string // the project's root, absolute
	// Time limits a single hook; 0 means ten minutes.
	Time time.Duration
	// Up limits how long the server may take to accept connections after start_dev has
	// returned; 0 means two minutes.
	Up time.Duration
}

// HookRunner runs a hook, or holds one open with the processes that it started.
type HookRunner interface {
	sandbox.Runner
	// Start is the method of the walls; see hone/sandbox/wall.
	Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error)
}

// hookResult is the outcome of a hook.
type hookResult struct {
	Exit   int
	Output string // both streams, interleaved
}

const hookTime = 10 * time.Minute

func (h Hooks) time() time.Duration { return cmp.Or(h.Time, hookTime) }

// Call runs a hook to its end. It returns an error if the hook could not be run
// or was stopped. A nonzero exit status is not an error.
func (h Hooks) Call(ctx context.Context, name string, args ...string) (hookResult, error) {
	got, err := h.Runner.Run(ctx, sandbox.Command{
		Argv: append([]string{"bash", "-c", `exec bash "$0" "$@" 2>&1`, HooksName, name}, args...),
		Dir:  h.Dir, Timeout: h.time(), MaxOutput: maxLog,
	})
	output := excerpt.Output(got.Stdout) + excerpt.Output(got.Stderr)
	switch {
	case ctx.Err() != nil:
		return hookResult{}, context.Cause(ctx)
	case err != nil:
		return hookResult{}, hookStop(name, "could not be run: "+err.Error(), "")
	case got.TimedOut:
		return hookResult{}, hookStop(name, fmt.Sprintf("did not finish within %s", h.time()), output)
	case got.OverLimit != "":
		return hookResult{}, hookStop(name, "was stopped: it exceeded the limit of "+got.OverLimit, output)
	case got.Exit == 127 && strings.Contains(output, HooksName+": No such file"):
		return hookResult{}, hookStop(name, "cannot be run: there is no "+HooksName, "")
	}
	return hookResult{got.Exit, output}, nil
}

// In such a line bash says that abl.config.sh cannot write a log. That is not the fault of the code (ruling A15).
var unwritableLog = lazyregexp.New(`(?m)^abl\.config\.sh: line \d+: .*(?:\.log|logs/\S*|results/\S*)"?: (?:No such file or directory|Permission denied|Read-only file system|Is a directory|Not a directory)$`)

// Failed returns the error of a hook whose exit status is not 0. It ends the run, because the project's configuration
// is at fault and not the code.
func (r hookResult) Failed(name string) error {
	return hookStop(name, fmt.Sprintf("failed with exit status %d", r.Exit), r.Output)
}

func hookStop(name, what, output string) error {
	why := fmt.Sprintf("the hook %s in %s %s", name, HooksName, what)
	if output = strings.TrimSpace(strings.ToValidUTF8(output, "\uFFFD")); output != "" {
		why += "; it printed\n" + excerpt.Middle(output, 2<<10)
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: why, Next: hone.Next{Verb: hone.Resume,
		First: "fix " + HooksName + " ([phase] hook-read, hook-env and hook-net in .config/hone.toml let it reach more)"}}
}

// conductor runs hooks one after another behind the same walls. Processes that
// they start in the background, such as the server, live until the conductor
// ends, and later hooks can reach them.
type conductor struct {
	hooks   Hooks
	running *sandbox.Running
	cancel  context.CancelFunc
	in      *os.File
	mark    string
	exits   chan int // the exit status of the hook that runs

	busy bool // a hook did not finish in time and may still run

	mu     sync.Mutex
	line   []byte // the start of an incomplete line
	recent []byte // the output since the last hook began
}

// script reads a mark, then the names of hooks, and prints the exit status of each
// on a line that starts with the mark. Hooks and their processes do not know the
// mark, and so cannot forge such a line.
const script = `IFS= read -r mark
while IFS= read -r hook; do
	if [ "$hook" = '?' ]; then
		[ ! -f "$1" ] || ! read -r pid <"$1" || kill -0 "$pid" 2>/dev/null
	else
		bash "$0" "$hook" </dev/null 2>&1
	fi
	printf '\n%s %d\n' "$mark" "$?"
done`

// isAlive stands in place of a hook's name. The script then tests whether the
// process that dev.pid names is alive.
const isAlive = "?"

// It lives until its end method is called or the context ends.
func (h Hooks) startConductor(parent context.Context) (*conductor, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c := &conductor{hooks: h, in: w, mark: rand.Text(), exits: make(chan int, 1)}
	ctx, cancel := context.WithCancel(parent)
	c.cancel = cancel
	c.running, err = h.Runner.Start(ctx, sandbox.Command{
		Argv: []string{"bash", "-c", script, HooksName, devPID}, Dir: h.Dir, Stdin: r, Live: c, MaxOutput: maxLog})
	if err == nil {
		_, err = io.WriteString(w, c.mark+"\n")
	}
	if err != nil {
		c.cancel()
		w.Close()
		if parent.Err() != nil {
			return nil, context.Cause(parent)
		}
		return nil, hookStop("start_dev", "could not be run: "+err.Error(), "")
	}
	return c, nil
}

// Write receives the output of the hooks and of the processes that they started.
func (c *conductor) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line = append(c.line, b...)
	for {
		i := bytes.IndexByte(c.line, '\n')
		if i < 0 && len(c.line) < maxExcerpt {
			return len(b), nil
		}
		if i < 0 {
			i = len(c.line) - 1
		}
		line := c.line[:i+1]
		c.line = c.line[i+1:]
		if status, ok := bytes.CutPrefix(line, []byte(c.mark+" ")); ok {
			exit, err := strconv.Atoi(string(bytes.TrimSpace(status)))
			if err != nil {
				exit = -1
			}
			select {
			case c.exits <- exit:
			default: // no hook is awaited
			}
			continue
		}
		c.recent = append(c.recent, line...)
		if over := len(c.recent) - 2*maxExcerpt; over > 0 {
			c.recent = append(c.recent[:0], c.recent[over:]...)
		}
	}
}

// It begins with the last hook.
func (c *conductor) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.recent) + string(c.line)
}

// A nonzero exit status is an error.
func (c *conductor) must(ctx context.Context, name string) error {
	c.mu.Lock()
	c.recent = nil
	c.mu.Unlock()
	exit, err := c.ask(ctx, name)
	switch {
	case ctx.Err() != nil: // its end also ends the hook, whose failure says nothing then
		c.busy = true
		return context.Cause(ctx)
	case err == nil && exit != 0:
		return hookResult{exit, c.output()}.Failed(name)
	}
	return err
}

func (c *conductor) ask(ctx context.Context, name string) (exit int, err error) {
	if _, err := io.WriteString(c.in, name+"\n"); err != nil {
		return 0, hookStop(name, "could not be run: "+err.Error(), c.output())
	}
	limit := time.NewTimer(c.hooks.time())
	defer limit.Stop()
	select {
	case exit := <-c.exits:
		return exit, nil
	case <-c.running.Done():
		return 0, hookStop(name, "was stopped together with all that it had started", c.output())
	case <-limit.C:
		c.busy = true
		return 0, hookStop(name, fmt.Sprintf("did not finish within %s: a process that keeps running must be started in the background, with &", c.hooks.time()), c.output())
	case <-ctx.Done():
		c.busy = true
		return 0, context.Cause(ctx)
	}
}

// It returns why no server accepts connections; empty if one does.
func (c *conductor) await(ctx context.Context, port int) string {
	limit := cmp.Or(c.hooks.Up, upTime)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for tries := 1; ; tries++ {
		try, stop := context.WithTimeout(ctx, dialTime)
		conn, err := c.running.Dial(try, port)
		stop()
		if err == nil {
			conn.Close()
			return ""
		}
		// A server that daemonizes has ended as well, but will accept connections soon.
		if tries%lookEvery == 0 {
			if exit, err := c.ask(ctx, isAlive); err == nil && exit != 0 {
				return fmt.Sprintf("the process whose id start_dev wrote into %s has ended, and nothing answers on port %d", devPID, port)
			}
		}
		select {
		case <-c.running.Done():
			return fmt.Sprintf("the server did not answer on port %d: every process that start_dev had started has ended", port)
		case <-ctx.Done():
			return fmt.Sprintf("start_dev succeeded, but nothing answered on port %d within %s", port, limit)
		case <-time.After(retryPause):
		}
	}
}

func (c *conductor) end(ctx context.Context) error {
	if ctx.Err() == nil && !c.busy {
		polite, cancel := context.WithTimeout(ctx, stopTime)
		// stop_dev is optional, and what it leaves running is stopped below.
		_ = c.must(polite, "stop_dev")
		cancel()
	}
	c.in.Close()
	c.cancel()
	_, err := c.running.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

const (
	upTime     = 2 * time.Minute // the default of [Hooks.Up]
	stopTime   = 10 * time.Second
	dialTime   = time.Second // one attempt to connect
	retryPause = 50 * time.Millisecond

	lookEvery = 20 // attempts after which await looks whether the process is alive
)
