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
	"sync"
	"time"

	"hone/sandbox"
)

// conductor runs hooks one after the other in one place: what they start in
// the background, such as the server, lives until the conductor ends, and they
// find it there.
type conductor struct {
	hooks   Hooks
	running *sandbox.Running
	cancel  context.CancelFunc
	in      *os.File
	mark    string
	ended   chan int // the exit status of the hook that was asked for

	busy bool // a hook was given up on, and may still run

	mu   sync.Mutex
	line []byte // that is not whole yet
	said []byte // since the last hook began
}

// conducting reads a mark, and then the names of hooks, and says how each ended on
// a line that begins with the mark. What a hook starts is not told the mark.
const conducting = `IFS= read -r mark
while IFS= read -r hook; do
	if [ "$hook" = '?' ]; then
		[ ! -f "$1" ] || ! read -r pid <"$1" || kill -0 "$pid" 2>/dev/null
	else
		bash "$0" "$hook" </dev/null 2>&1
	fi
	printf '\n%s %d\n' "$mark" "$?"
done`

// isAlive asks for no hook, but whether the process lives that dev.pid names.
const isAlive = "?"

// conduct starts a conductor, which lives as long as the context and until it
// is ended.
func (h Hooks) conduct(ctx context.Context) (*conductor, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c := &conductor{hooks: h, in: w, mark: rand.Text(), ended: make(chan int, 1)}
	ctx, c.cancel = context.WithCancel(ctx)
	c.running, err = h.Runner.Start(ctx, sandbox.Command{
		Argv: []string{"bash", "-c", conducting, ConfigName, serverPID}, Dir: h.Dir, Stdin: r, Live: c, MaxOutput: mostLog})
	if err == nil {
		_, err = io.WriteString(w, c.mark+"\n")
	}
	if err != nil {
		c.cancel()
		w.Close()
		return nil, hookStop("start_dev", "could not be run: "+err.Error(), "")
	}
	return c, nil
}

// Write hears what the hooks, and what they started, print.
func (c *conductor) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line = append(c.line, b...)
	for {
		i := bytes.IndexByte(c.line, '\n')
		if i < 0 && len(c.line) < mostTold {
			return len(b), nil
		}
		if i < 0 {
			i = len(c.line) - 1
		}
		c.hear(c.line[:i+1])
		c.line = c.line[i+1:]
	}
}

// hear takes a line in.
func (c *conductor) hear(line []byte) {
	if status, ok := bytes.CutPrefix(line, []byte(c.mark+" ")); ok {
		exit, err := strconv.Atoi(string(bytes.TrimSpace(status)))
		if err != nil {
			exit = -1
		}
		select {
		case c.ended <- exit:
		default: // nobody asked
		}
		return
	}
	c.said = append(c.said, line...)
	if over := len(c.said) - 2*mostTold; over > 0 {
		c.said = append(c.said[:0], c.said[over:]...)
	}
}

// output is what was printed since the last hook began.
func (c *conductor) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.said) + string(c.line)
}

// must runs a hook, which must not fail.
func (c *conductor) must(ctx context.Context, name string) error {
	c.mu.Lock()
	c.said = nil
	c.mu.Unlock()
	exit, err := c.ask(ctx, name)
	if err == nil && exit != 0 {
		err = hookStop(name, fmt.Sprintf("failed with exit status %d", exit), c.output())
	}
	return err
}

// ask has a hook run, and waits for its end.
func (c *conductor) ask(ctx context.Context, name string) (exit int, err error) {
	if _, err := io.WriteString(c.in, name+"\n"); err != nil {
		return 0, hookStop(name, "could not be run: "+err.Error(), c.output())
	}
	limit := time.NewTimer(c.hooks.time())
	defer limit.Stop()
	select {
	case exit := <-c.ended:
		return exit, nil
	case <-c.running.Done():
		return 0, hookStop(name, "was ended with all that it had started", c.output())
	case <-limit.C:
		c.busy = true
		return 0, hookStop(name, fmt.Sprintf("did not finish within %s: a process that keeps running must be started in the background, with &", c.hooks.time()), c.output())
	case <-ctx.Done():
		c.busy = true
		return 0, context.Cause(ctx)
	}
}

// gone reports whether the process has ended that start_dev named, where it
// named one.
func (c *conductor) gone(ctx context.Context) bool {
	exit, err := c.ask(ctx, isAlive)
	return err == nil && exit != 0
}

// answers waits until a server answers on a port; empty says that it does, else
// why not.
func (c *conductor) answers(ctx context.Context, port int) string {
	limit := cmp.Or(c.hooks.Up, comeUp)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for tries := 1; ; tries++ {
		try, stop := context.WithTimeout(ctx, asking)
		conn, err := c.running.Dial(try, port)
		stop()
		if err == nil {
			conn.Close()
			return ""
		}
		// One that daemonises has ended as well, and answers soon.
		if tries%patience == 0 && c.gone(ctx) {
			return fmt.Sprintf("the process that start_dev left in %s has ended, and nothing answers on port %d", serverPID, port)
		}
		select {
		case <-c.running.Done():
			return fmt.Sprintf("the server did not answer on port %d: all that start_dev had started has ended", port)
		case <-ctx.Done():
			return fmt.Sprintf("start_dev succeeded, but nothing answered on port %d within %s", port, limit)
		case <-time.After(restful):
		}
	}
}

// end has the project stop its server in its own way, where it has one, and
// ends all that is left.
func (c *conductor) end(ctx context.Context) error {
	if ctx.Err() == nil && !c.busy {
		polite, cancel := context.WithTimeout(ctx, goDown)
		// stop_dev is optional, and what it leaves is ended anyway.
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
