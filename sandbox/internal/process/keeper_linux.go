package process

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

type marks struct {
	place, process mark
	commands       atomic.Uint64
}

// NewKeeper returns a keeper of commands that run for a directory. Another process of
// the same user finds them by the directory; see [Keeper.EndEarlier].
func NewKeeper(dir string) *Keeper {
	k := &Keeper{}
	k.place = placeMark(placeOf(dir))
	k.process = k.place.process(rand.Uint64())
	return k
}

// It stays if the directory is renamed.
func placeOf(dir string) uint64 {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return rand.Uint64()
	}
	sum := sha256.Sum256(fmt.Appendln(nil, os.Geteuid(), stat.Dev, stat.Ino))
	return binary.BigEndian.Uint64(sum[:])
}

func (k *Keeper) commandMark() mark {
	if k == nil {
		return randomMark()
	}
	return k.process.command(k.commands.Add(1))
}

// Env returns the variable that marks the processes of a command that something else
// starts, as KEY=VALUE.
func (k *Keeper) Env() []string {
	if k == nil {
		return nil
	}
	return k.process.env(nil)
}

// EndEarlier kills what the commands of earlier keepers of the directory left running,
// and returns the names of the programs. Those keepers' processes must have ended.
func (k *Keeper) EndEarlier() (programs []string) {
	if k == nil {
		return nil
	}
	spared := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !spared[pid]; {
		spared[pid] = true
		s, _ := ReadStatus(pid)
		pid = s.Parent
	}
	session, _ := unix.Getsid(0)
	return k.place.end(SweepTime, func(s Status) bool { return spared[s.PID] || s.Session == session })
}

func self() (string, error) { return "/proc/self/exe", nil }

func (k *Keeper) args() []string {
	session, _ := unix.Getsid(0)
	return []string{k.process.text, strconv.FormatUint(k.process.limit, 10), strconv.Itoa(session)}
}

// The arguments tell the keeper enough.
func (k *Keeper) tellAll() {}

// No user waits for it, so it looks several times: a process that starts during a look may be missed.
func endLeftovers(args []string, _ map[int]bool) {
	if len(args) != 3 {
		return
	}
	m := mark{text: args[0], span: 1 << commandBits}
	m.limit, _ = strconv.ParseUint(args[1], 10, 64)
	session, _ := strconv.Atoi(args[2])
	for range 3 {
		m.end(time.Minute, func(s Status) bool { return s.PID == os.Getpid() || s.Session == session })
		time.Sleep(10 * time.Millisecond)
	}
}

// It also kills what the marked processes started, until no more are found or the time is over. It returns the names of their
// programs.
func (m mark) end(limit time.Duration, spare func(Status) bool) (programs []string) {
	if !slices.ContainsFunc(pids(), m.isOn) {
		return nil // nearly always
	}
	deadline := time.Now().Add(limit)
	killed := map[process]bool{}
	for quiet := 0; quiet < 2 && time.Now().Before(deadline); quiet++ {
		for _, s := range m.members(All(), spare) {
			name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.PID), "comm"))
			if unix.Kill(s.PID, unix.SIGKILL) != nil {
				continue
			}
			if quiet = -1; !killed[s.process] {
				killed[s.process] = true
				programs = append(programs, strings.TrimSpace(string(name)))
			}
		}
		if len(killed) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return programs
}

func (m mark) members(all []Status, spare func(Status) bool) []Status {
	parents, marked := make(map[int]int, len(all)), map[int]bool{}
	for _, s := range all {
		parents[s.PID] = s.Parent
		marked[s.PID] = !spare(s) && m.isOn(s.PID)
	}
	return slices.DeleteFunc(all, func(s Status) bool {
		pid := s.PID
		for range all { // the parents may form a loop if they changed while they were read
			if marked[pid] {
				return s.Zombie || spare(s)
			}
			pid = parents[pid]
		}
		return true
	})
}
