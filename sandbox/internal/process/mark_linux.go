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

// marker is the variable by which a process tells that it descends from a
// command. Its value lists the commands, so that a hone inside a hone is found
// by both.
const marker = "HONE_COMMAND_ID"

// mark is by what a process is known that left its session and lost its
// parents. It is inherited in two ways, as each has a gap: a process may be
// started with an environment of its own, and has none any more as a zombie; a
// limit can be set only when the command runs already.
type mark struct {
	text  string
	limit uint64 // 0 means that none could be set
}

func newMark() mark { return mark{text: crand.Text()} }

// env adds the mark to those that the environment has.
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

// on reports whether a process bears the mark.
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

// markLimit limits the time that a process may hold a processor in real-time
// scheduling, to tens of thousands of years and a random number of
// microseconds: a limit that nothing meets, that children inherit, that
// programs leave alone, and that is still there to be read of a zombie. It
// returns the limit, or 0 where the process has a lower one or may not be
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
