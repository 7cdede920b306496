package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is one process, told from a later one with the same number.
type process struct {
	pid  int
	born uint64
}

// status is what the kernel says of a process.
type status struct {
	process
	parent, group, session int
	threads                int
	zombie                 bool
}

// processes is a snapshot of all that are visible.
func processes() []status {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []status
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, ok := readStatus(pid); ok {
			all = append(all, s)
		}
	}
	return all
}

// readStatus reads /proc/PID/stat; false means that there is no such process
// any more.
func readStatus(pid int) (status, bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return status{}, false
	}
	return parseStatus(pid, string(text))
}

// parseStatus takes the fields that follow the command's name, which stands in
// parentheses and may hold anything: state, parent, group, session, as the
// eighteenth the number of threads, and as the twentieth the time of birth.
func parseStatus(pid int, text string) (status, bool) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return status{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(fields[i])
		return n
	}
	born, err := strconv.ParseUint(fields[19], 10, 64)
	return status{
		process: process{pid: pid, born: born},
		zombie:  fields[0] == "Z" || fields[0] == "X",
		parent:  number(1), group: number(2), session: number(3), threads: number(17),
	}, err == nil
}
