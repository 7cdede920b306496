package process

import (
	"bytes"
	crand "crypto/rand"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// marker is the environment variable of a command's descendants. Its value lists
// the commands, so that both find the processes of a hone that runs in a hone.
const marker = "HONE_COMMAND_ID"

// mark identifies a process that left its session and lost its parents. It is
// inherited in two ways because each has a gap: a process may start with another
// environment, and a zombie has none; a limit cannot be set everywhere.
type mark struct {
	text  string
	limit uint64 // 0 if none could be set
}

func newMark() mark { return mark{text: crand.Text()} }

// env adds the mark to those in an environment.
func (m mark) env(env []string) []string {
	text := m.text
	marked := make([]string, 0, len(env)+1)
	for _, variable := range env {
		outer, ok := strings.CutPrefix(variable, marker+"=")
		if !ok {
			marked = append(marked, variable)
			continue
		}
		text = m.text
		if outer != "" {
			text = outer + "," + m.text
		}
	}
	return append(marked, marker+"="+text)
}

// on reports whether a process has the mark.
func (m mark) on(pid int) bool {
	if m.limit != 0 {
		var has unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &has); err == nil && has.Cur == m.limit {
			return true
		}
	}
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && bytes.Contains(env, []byte(m.text))
}

// limits is held while the limit of this process is that of a command that starts.
var limits sync.Mutex

// limited calls start while this process has a soft limit of processor time in
// real-time scheduling of tens of thousands of years and a random number of
// microseconds, and sets m.limit to it. No process reaches the limit, children
// inherit it from their first instruction on, programs do not change it, and it can
// be read of a zombie. If the limit cannot be set, m.limit is 0.
//
// A process that something else starts at the same moment may inherit the limit too.
// It is in this process's session, where no process of a command is.
func (m *mark) limited(start func() error) error {
	const highest, spread = 1 << 62, 1 << 40
	limits.Lock()
	defer limits.Unlock()
	var has unix.Rlimit
	err := unix.Prlimit(0, unix.RLIMIT_RTTIME, nil, &has)
	most := min(has.Cur, has.Max, highest)
	if err != nil || most < highest/2 {
		return start()
	}
	limit := most - 1 - rand.Uint64N(spread)
	if unix.Prlimit(0, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: limit, Max: has.Max}, nil) != nil {
		return start()
	}
	m.limit = limit
	defer func() { _ = unix.Prlimit(0, unix.RLIMIT_RTTIME, &has, nil) }() // raising it to what it was cannot fail
	return start()
}
