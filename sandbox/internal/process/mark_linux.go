package process

import (
	"bytes"
	crand "crypto/rand"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// marker is the environment variable of a command's descendants. Its value lists
// the commands, so that both find the processes of a hone that runs in a hone.
const marker = "HONE_COMMAND_ID"

// mark identifies a process that left its session and lost its parents. It is
// inherited in two ways because each has a gap: a process may start with another
// environment, and a zombie has none; a limit can only be set when the command
// already runs.
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
		if err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &has); err == nil && has.Max == m.limit {
			return true
		}
	}
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && bytes.Contains(env, []byte(m.text))
}

// markLimit sets the limit of processor time in real-time scheduling to tens of
// thousands of years and a random number of microseconds. No process reaches it,
// children inherit it, programs do not change it, and it can be read of a
// zombie. It returns the limit, or 0 if the process has a lower one or may not be
// limited.
func markLimit(pid int) uint64 {
	const highest, spread = 1 << 62, 1 << 40
	var has unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &has); err != nil {
		return 0
	}
	most := min(has.Cur, has.Max, highest)
	if most < highest/2 {
		return 0
	}
	limit := most - 1 - rand.Uint64N(spread)
	if err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil {
		return 0
	}
	return limit
}
