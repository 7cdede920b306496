package prove

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// Scene describes to an attempt what was set up outside the walls. It does not
// contain the secret: an attempt recognizes the secret by its digest.
type Scene struct {
	Dir  string // the directory of the scene; the policy shows only parts of it
	Name string // the attempt's name

	Wall     sandbox.Wall
	Landlock int
	Program  string   // the path of this program inside
	Shown    []string // the policy's paths
	Env      []string // the names of the attempts' variables

	Digest string // of the secret, from [digest]
	Key    string // the name of the variable with the secret

	Prover, Victim process
	Group          int     // the prover's process group
	Address        uintptr // the secret's address in the victim
	PIDSpace       string  // the prover's namespace of processes

	Addr map[string]string // the addresses of servers, by attempt

	Shm, Queue, ShmFile string // a SysV number, a POSIX queue's name, a file in /dev/shm; empty if there is none
	FD                  int    // a descriptor that the prover left open; 0 if there is none
	Handle              []byte // the secret file's, for open_by_handle_at; nil if there is none
	HandleType          int32

	Home        string
	There       map[string]bool // whether the machine's files that attempts open exist
	BlockDevice string
	Resolver    string

	Processes int   // the limits of attempts that exceed them
	Memory    int64 // bytes
}

// process identifies a process outside by its number and the time of its start.
type process struct {
	PID  int
	Born string
}

// outside returns a path in the attempt's directory outside the policy.
func (s Scene) outside(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "outside", s.Name}, rest...)...)
}

// work returns a path in the attempt's writable directory.
func (s Scene) work(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "work", s.Name}, rest...)...)
}

// lib returns a path in the read-only directory.
func (s Scene) lib(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "lib"}, rest...)...)
}

// cache returns a path in a directory outside of which there is an overlay inside.
func (s Scene) cache(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "caches", s.Name}, rest...)...)
}

// linked returns a path in a writable directory that the policy names by a
// symlink.
func (s Scene) linked(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "linked"}, rest...)...)
}

// digest returns the digest of a secret.
func digest(secret []byte) string {
	sum := sha256.Sum256(secret)
	return hex.EncodeToString(sum[:])
}

// secret returns nil if text is the secret.
func (s Scene) secret(text []byte) error {
	if digest(text) != s.Digest {
		return errHeld("it is not the secret")
	}
	return nil
}

// readSecret reads a file and returns nil if it contains the secret.
func (s Scene) readSecret(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return s.secret(text)
}

// bornAt returns when a process started, by the kernel's clock. The error means
// that the process is not visible.
func bornAt(pid int) (string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	const starttime = 19 // after the name, which may contain spaces
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= starttime {
		return "", fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	return fields[starttime], nil
}

// identify returns an error if the process's number means no process, or another
// one, here.
func (p process) identify() error {
	if p.PID == 0 {
		return errUnknown("there is no such process")
	}
	born, err := bornAt(p.PID)
	if err == nil && born != p.Born {
		return unix.ESRCH
	}
	return nil // it may be reachable even if it is not visible
}

// proc returns the path of a file in the process's /proc; the error means that it
// does not exist.
func (p process) proc(name string) (string, error) {
	if p.identify() != nil {
		return "", unix.ENOENT
	}
	return fmt.Sprintf("/proc/%d/%s", p.PID, name), nil
}

// ownProcesses reports whether this process is in a process namespace of its own,
// according to /proc.
func (s Scene) ownProcesses() bool {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) || s.PIDSpace == "" {
		return false
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && space != s.PIDSpace
}

// machine opens one of the machine's files, if it exists, and closes it.
func (s Scene) machine(path string, flags int) error {
	if !s.There[path] {
		return errUnknown("this machine has no " + path)
	}
	return open(path, flags)
}

// addr returns the address of this attempt's server.
func (s Scene) addr() (string, error) {
	if addr := s.Addr[s.Name]; addr != "" {
		return addr, nil
	}
	return "", errUnknown("no server can listen there on this machine")
}

// config returns the attempt's .git/config.
func (s Scene) config() string { return s.work(".git", "config") }

// hidden returns the file that is hidden, by itself or with its directory.
func (s Scene) hidden() string {
	switch s.Name {
	case "hidden-list", "hidden-slash", "hidden-inner", "hidden-create":
		return s.work("secrets", "key")
	case "hidden-directory-rename":
		return s.work("sub", ".env")
	}
	return s.work(".env")
}

// endpoint returns the hidden socket or FIFO.
func (s Scene) endpoint() string { return s.work("endpoint") }

// guarded returns the path that the policy hides, in one attempt with a slash at
// its end.
func (s Scene) guarded() string {
	dir := filepath.Dir(s.hidden())
	switch {
	case s.Name == "hidden-slash":
		return dir + "/"
	case filepath.Base(dir) == "secrets":
		return dir
	}
	return s.hidden()
}

// helperName is the program's name when it is started to make attempts.
const helperName = "hone-attempts"

// keyName is the variable with the secret in the victim's environment.
const keyName = "HONE_PROVE_KEY"
