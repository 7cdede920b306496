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

// Scene is what was set up outside of the walls, as an attempt is told of it.
// It holds no secret: an attempt knows one when it has it, by its digest.
type Scene struct {
	Dir  string // the folder of the scene: outside of the policy but for what follows
	Name string // the attempt's, set inside

	Wall     sandbox.Wall
	Landlock int
	Program  string   // this program, as it is shown inside
	Shown    []string // the policy's paths
	Env      []string // the names of the variables that commands are given

	Digest string // of the secret, as [digest] makes it
	Key    string // the name of the variable that holds the secret

	Prover, Victim process
	Group          int     // the prover's process group
	Address        uintptr // where the victim keeps the secret
	PIDSpace       string  // the prover's namespace of processes

	Addr map[string]string // where somebody listens, by attempt

	Shm, Queue, ShmFile string // SysV's number, a POSIX queue's name, a file in /dev/shm; empty: none
	FD                  int    // a descriptor that the prover left open; 0: none
	Handle              []byte // the secret file's, for open_by_handle_at; nil: none
	HandleType          int32

	Home        string
	There       map[string]bool // the machine's files that are tried: whether they exist
	BlockDevice string
	Resolver    string

	Processes int   // the limits of the attempts that try them
	Memory    int64 // bytes
}

// process is a process outside, and when it began, by which another one of the
// same number is told from it.
type process struct {
	PID  int
	Born string
}

// outside is the attempt's folder that the policy does not have.
func (s Scene) outside(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "outside", s.Name}, rest...)...)
}

// work is the attempt's folder that may be written.
func (s Scene) work(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "work", s.Name}, rest...)...)
}

// lib is the folder that may be read.
func (s Scene) lib(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "lib"}, rest...)...)
}

// linked is a folder that may be written, under the symlink that the policy
// names it by.
func (s Scene) linked(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "linked"}, rest...)...)
}

// digest is what a scene holds of a secret.
func digest(secret []byte) string {
	sum := sha256.Sum256(secret)
	return hex.EncodeToString(sum[:])
}

// secret says whether these are the secret's bytes.
func (s Scene) secret(text []byte) error {
	if digest(text) != s.Digest {
		return errHeld("something else is there")
	}
	return nil
}

// readSecret reads a file, and says whether it holds the secret.
func (s Scene) readSecret(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return s.secret(text)
}

// bornAt is when a process began, by the kernel's clock; the error says that
// it cannot be seen.
func bornAt(pid int) (string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	const starttime = 19 // after the name, which may hold spaces
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= starttime {
		return "", fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	return fields[starttime], nil
}

// meet says whether a process outside can be told by its number here, or
// another one has that number.
func (p process) meet() error {
	if p.PID == 0 {
		return errUnknown("there is no such process")
	}
	born, err := bornAt(p.PID)
	if err == nil && born != p.Born {
		return unix.ESRCH
	}
	return nil // where nothing can be seen of it, it may be reached all the same
}

// proc is a file of a process outside; the error says that it is not there.
func (p process) proc(name string) (string, error) {
	if p.meet() != nil {
		return "", unix.ENOENT
	}
	return fmt.Sprintf("/proc/%d/%s", p.PID, name), nil
}

// ownProcesses says that this process is in a namespace of processes of its
// own, as /proc shows it.
func (s Scene) ownProcesses() bool {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) || s.PIDSpace == "" {
		return false
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && space != s.PIDSpace
}

// machine opens one of the machine's files, where it has it, and leaves it
// alone.
func (s Scene) machine(path string, flags int) error {
	if !s.There[path] {
		return errUnknown("this machine has no " + path)
	}
	return open(path, flags)
}

// addr is where somebody listens for this attempt.
func (s Scene) addr() (string, error) {
	if addr := s.Addr[s.Name]; addr != "" {
		return addr, nil
	}
	return "", errUnknown("nothing can listen there on this machine")
}

func (s Scene) config() string { return s.work(".git", "config") }

// hidden is the file that is hidden, itself or with its folder.
func (s Scene) hidden() string {
	switch s.Name {
	case "hidden-list", "hidden-slash", "hidden-inner", "hidden-create":
		return s.work("secrets", "key")
	case "hidden-folder-rename":
		return s.work("sub", ".env")
	}
	return s.work(".env")
}

// guarded is what the policy hides, once with a slash at its end.
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

// helperName is how this program knows that it was started to try walls.
const helperName = "hone-attempts"

// keyName is the variable that holds the secret, in the victim's environment.
const keyName = "HONE_PROVE_KEY"
