package stage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"hone/sandbox/internal/process"
)

// Scene describes to an attempt what was set up outside the walls. It does not
// contain the secret: an attempt recognizes the secret by its digest.
type Scene struct {
	Dir   string // the directory of the scene; the policy shows only parts of it
	Name  string // the attempt's name
	Given string // what its Prepare returned

	Facts   map[string]string // what each Prepare returned, by the attempts' names
	Lacking map[string]string // why attempts cannot be made here, by their names

	Program string   // the path of this program inside
	Shown   []string // the policy's paths
	Env     []string // the names of the attempts' variables
	Digest  string   // of the secret
	Prover  Process

	Processes int   // the limits of attempts that exceed them
	Memory    int64 // bytes
}

func (s Scene) of(name string) Scene {
	s.Name, s.Given = name, s.Facts[name]
	return s
}

// Outside returns a path in the attempt's directory outside the policy. It contains
// "secret" and "file".
func (s Scene) Outside(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "outside", s.Name}, rest...)...)
}

// Work returns a path in the attempt's writable directory.
func (s Scene) Work(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "work", s.Name}, rest...)...)
}

// Lib returns a path in the read-only directory, where each attempt may have one of its
// own, which its Prepare makes.
func (s Scene) Lib(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "lib"}, rest...)...)
}

// Cache returns a path in a directory outside of which there is an overlay inside.
func (s Scene) Cache(rest ...string) string {
	return filepath.Join(append([]string{s.Dir, "caches", s.Name}, rest...)...)
}

// Write writes a file of the scene, and makes its directory.
func (s Scene) Write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// Secret returns nil if text is the secret.
func (s Scene) Secret(text []byte) error {
	if digest(text) != s.Digest {
		return Held("it is not the secret")
	}
	return nil
}

// ReadSecret reads a file and returns nil if it contains the secret.
func (s Scene) ReadSecret(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return s.Secret(text)
}

func digest(secret []byte) string {
	sum := sha256.Sum256(secret)
	return hex.EncodeToString(sum[:])
}

// Again returns a command that does the work of the attempt's Child.
func (s Scene) Again(args ...string) *exec.Cmd {
	return &exec.Cmd{Path: s.Program, Args: append([]string{helperName, "child", s.Name}, args...)}
}

// RunAgain runs the attempt's Child with attributes of the process, and returns its
// error, if that has a number of the system.
func (s Scene) RunAgain(attributes *syscall.SysProcAttr, args ...string) error {
	cmd := s.Again(args...)
	cmd.SysProcAttr = attributes
	err := cmd.Run()
	if exit, ok := err.(*exec.ExitError); ok && exit.Exited() && exit.ExitCode() > 0 {
		return unix.Errno(exit.ExitCode()) // see status
	}
	return err
}

// Process identifies a process outside by its number and the time of its start.
type Process struct {
	PID  int
	Born uint64 // in the kernel's ticks
}

// Identify returns the identity of a visible process.
func Identify(pid int) (Process, error) {
	s, ok := process.ReadStatus(pid)
	if !ok {
		return Process{}, unix.ESRCH
	}
	return Process{pid, s.Born}, nil
}

// Check returns an error if the process's number means no process, or another one,
// here.
func (p Process) Check() error {
	here, err := Identify(p.PID)
	if err == nil && here != p {
		return unix.ESRCH
	}
	return nil // it may be reachable even if it is not visible
}

// Proc returns the path of a file in the process's /proc; the error means that it
// does not exist.
func (p Process) Proc(name string) (string, error) {
	if p.Check() != nil {
		return "", unix.ENOENT
	}
	return fmt.Sprintf("/proc/%d/%s", p.PID, name), nil
}
