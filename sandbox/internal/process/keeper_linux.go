package process

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Keeper marks the commands that run for a directory, so that the next process there finds what
// a killed one and its supervisors left. A supervisor ends each command itself; so Close does nothing.
type Keeper struct{ place string }

// NewKeeper returns a keeper of commands that run for a directory. Another process of
// the same user finds them by the directory; see [Keeper.EndEarlier].
func NewKeeper(dir string) *Keeper {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return &Keeper{rand.Text()}
	}
	sum := sha256.Sum256(fmt.Appendln(nil, os.Geteuid(), stat.Dev, stat.Ino)) // they stay if the directory is renamed
	return &Keeper{fmt.Sprintf("%x", sum[:8])}
}

// Place returns the mark of all commands of the directory; empty if k is nil.
func (k *Keeper) Place() string {
	if k == nil {
		return ""
	}
	return k.place
}

// Close does nothing.
func (k *Keeper) Close() {}

// EndEarlier kills what the commands of earlier keepers of the directory left running,
// and returns the names of the programs. Those keepers' processes must have ended.
func (k *Keeper) EndEarlier() (programs []string) {
	if k == nil || !slices.ContainsFunc(pids(), func(pid int) bool { return isMarked(pid, k.place) }) {
		return nil // nearly always
	}
	spared := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !spared[pid]; {
		spared[pid] = true
		s, _ := ReadStatus(pid)
		pid = s.Parent
	}
	session, _ := unix.Getsid(0)
	spare := func(s Status) bool { return spared[s.PID] || s.Session == session }
	deadline := time.Now().Add(SweepTime)
	killed := map[process]bool{}
	for quiet := 0; quiet < 2 && time.Now().Before(deadline); quiet++ {
		for _, s := range below(All(), func(s Status) bool { return !spare(s) && isMarked(s.PID, k.place) }) {
			name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.PID), "comm"))
			if s.Zombie || spare(s) || unix.Kill(s.PID, unix.SIGKILL) != nil {
				continue
			}
			if quiet = -1; !killed[s.process] {
				killed[s.process] = true
				programs = append(programs, strings.TrimSpace(string(name)))
			}
		}
		time.Sleep(time.Millisecond)
	}
	return programs
}

// marker is the environment variable of what a command starts. Its value lists the marks of
// commands, PLACE.COMMAND, so that each hone finds the processes of a hone that runs in it.
const marker = "HONE_COMMAND_ID"

// mark adds the mark of this supervisor to the environment of its command, where those that are
// there stay. A process that starts another one without its environment is found as long as it lives.
func mark(env []string) []string {
	marked := make([]string, 0, len(env)+1)
	all := os.Getenv(marker)
	for _, variable := range env {
		if outer, ok := strings.CutPrefix(variable, marker+"="); !ok {
			marked = append(marked, variable)
		} else if outer != "" {
			all = outer + "," + all
		}
	}
	return append(marked, marker+"="+all)
}

func isMarked(pid int, mark string) bool {
	env, _ := readProc(pid, "environ")
	for variable := range bytes.SplitSeq(env, []byte{0}) {
		if marks, ok := bytes.CutPrefix(variable, []byte(marker+"=")); ok && bytes.Contains(marks, []byte(mark)) {
			return true
		}
	}
	return false
}

// below returns the processes for which is returns true, and what they started.
func below(all []Status, is func(Status) bool) []Status {
	parents, found := make(map[int]int, len(all)), map[int]bool{}
	for _, s := range all {
		parents[s.PID] = s.Parent
		found[s.PID] = is(s)
	}
	return slices.DeleteFunc(slices.Clone(all), func(s Status) bool {
		pid := s.PID
		for range all { // the parents may form a loop if they changed while they were read
			if found[pid] {
				return false
			}
			pid = parents[pid]
		}
		return true
	})
}
