package prove

import (
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// sharedAttempts returns attempts on what processes share by number or name.
func sharedAttempts() []Attempt {
	return []Attempt{
		{Name: "sysv-memory", Try: func(s Scene) error {
			id, err := strconv.Atoi(s.Shm)
			if err != nil {
				return errUnknown("no shared memory")
			}
			memory, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
			if err != nil {
				return err
			}
			return unix.SysvShmDetach(memory)
		}},
		{Name: "message-queue", Try: func(s Scene) error {
			if s.Queue == "" {
				return errUnknown("no message queue")
			}
			return openQueue(s.Queue, unix.O_RDONLY)
		}},
	}
}

// programAttempts returns attempts through programs of the machine, if they exist.
func programAttempts() []Attempt {
	return []Attempt{
		{Name: "git-outside", Set: setFiles, Try: func(s Scene) error {
			return s.askGit("", "-C", s.outside(), "config", "--local", "hone.secret")
		}},
		{Name: "git-dir-outside", Set: setFiles, Try: func(s Scene) error {
			return s.askGit("GIT_DIR="+s.outside(".git"), "config", "--local", "hone.secret")
		}},
		{Name: "sudo", Try: func(Scene) error {
			program, err := exec.LookPath("sudo")
			if err != nil {
				return errUnknown("no sudo")
			}
			return heldError(exec.Command(program, "-n", "true").Run())
		}},
		{Name: "claims", Set: setFiles, Alone: true, Try: func(s Scene) error { return s.readSecret(s.outside("secret")) }},
	}
}

// askGit asks git for the secret in a repository's configuration.
func (s Scene) askGit(variable string, args ...string) error {
	program, err := exec.LookPath("git")
	if err != nil {
		return errUnknown("no git")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = s.work()
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+s.work(), variable)
	text, err := cmd.Output()
	if err != nil {
		return heldError(err)
	}
	return s.secret(text[:max(len(text)-1, 0)])
}
