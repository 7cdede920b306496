package process

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// marker is the environment variable of a command's descendants. Its value lists
// the commands, so that both find the processes of a hone that runs in a hone.
const marker = "HONE_COMMAND_ID"

// mark identifies processes that may have left their session and lost their parents:
// those of one command, of all commands of one process, or of all that were started
// for one place. It is inherited in two ways because each has a gap: a process may
// start with another environment, and a zombie has none; a limit cannot be set
// everywhere.
type mark struct {
	text  string // that of a place starts that of its processes, which starts that of their commands
	limit uint64 // the lowest of the marked limits; 0 if none could be set
	span  uint64 // the number of limits from there on; those of a command are one
}

// The marked limits contain the numbers of a place, a process and a command.
const (
	lowestLimit = 1 << 62
	commandBits = 16
	processBits = 14
)

func placeMark(place uint64) mark {
	const bits = processBits + commandBits
	return mark{text: number(place), limit: lowestLimit + place>>32<<bits, span: 1 << bits}
}

func (m mark) process(n uint64) mark {
	return mark{text: m.text + number(n), limit: m.limit + n%(1<<processBits)<<commandBits, span: 1 << commandBits}
}

func (m mark) command(n uint64) mark {
	return mark{text: m.text + number(n), limit: m.limit + n%(1<<commandBits), span: 1}
}

// No other number starts with the text.
func number(n uint64) string { return strconv.FormatUint(n, 36) + "." }

// A command that has no keeper gets it.
func randomMark() mark {
	return placeMark(rand.Uint64()).process(rand.Uint64()).command(rand.Uint64())
}

// The marks that are there stay.
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

func (m mark) isOn(pid int) bool {
	if m.limit != 0 {
		var has unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &has); err == nil && has.Cur-m.limit < m.span {
			return true
		}
	}
	env, err := readProc(pid, "environ")
	return err == nil && bytes.Contains(env, []byte(m.text))
}

// limits is held while the limit of this process is that of a command that starts.
var limits sync.Mutex

// withLimit calls start while this process has the marked limit as its soft limit of
// processor time in real-time scheduling, which is a hundred thousand years. No process
// reaches the limit, children inherit it from their first instruction on, programs do
// not change it, and it can be read of a zombie. If the limit cannot be set, limited
// sets m.limit to 0.
//
// A process that something else starts at the same moment may inherit the limit too.
// It is in this process's session, where no process of a command is.
func (m *mark) withLimit(start func() error) error {
	limits.Lock()
	defer limits.Unlock()
	var has unix.Rlimit
	err := unix.Prlimit(0, unix.RLIMIT_RTTIME, nil, &has)
	if err != nil || has.Cur < lowestLimit || unix.Prlimit(0, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: m.limit, Max: has.Max}, nil) != nil {
		m.limit = 0
		return start()
	}
	defer func() { _ = unix.Prlimit(0, unix.RLIMIT_RTTIME, &has, nil) }() // raising it to what it was cannot fail
	return start()
}

// withoutLimit calls start while this process has no soft limit, so that the child has no
// mark: not even one that this process has itself because something else started it at
// the moment in which a command started.
func withoutLimit(start func() error) error {
	limits.Lock()
	defer limits.Unlock()
	var has unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_RTTIME, nil, &has) == nil &&
		unix.Prlimit(0, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: has.Max, Max: has.Max}, nil) == nil {
		defer func() { _ = unix.Prlimit(0, unix.RLIMIT_RTTIME, &has, nil) }()
	}
	return start()
}
