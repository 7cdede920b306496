package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// OwnerOf returns the owner of a directory if this process is root and the owner is not;
// otherwise the zero User.
func OwnerOf(dir string) User {
	var info unix.Stat_t
	if os.Geteuid() != 0 || unix.Stat(dir, &info) != nil || info.Uid == 0 {
		return User{}
	}
	return User{int(info.Uid), int(info.Gid)}
}

// Check returns an error with a Hint if this process cannot run commands as the user.
func (u User) Check() error {
	if u == (User{}) {
		return nil
	}
	if !isMapped("/proc/self/uid_map", u.UID) || !isMapped("/proc/self/gid_map", u.GID) {
		return &userError{u, "that user does not exist in this container's user namespace"}
	}
	const needed = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID
	if Capabilities()&needed != needed {
		return &userError{u, "root has not the capabilities here to run commands as that user"}
	}
	return nil
}

type userError struct {
	owner  User
	reason string
}

func (e *userError) Error() string {
	return fmt.Sprintf("root is working here, the project's folder belongs to user %d, and %s", e.owner.UID, e.reason)
}

// Hint tells what to do.
func (e *userError) Hint() string {
	return `run hone as the owner of the folder (docker run --user "$(id -u):$(id -g)"; podman run --userns keep-id)`
}

func isMapped(table string, id int) bool {
	text, err := os.ReadFile(table)
	if err != nil {
		return true // it is not known to be missing
	}
	for line := range strings.Lines(string(text)) {
		var first, outside, count int
		if _, err := fmt.Sscan(line, &first, &outside, &count); err == nil && id >= first && id < first+count {
			return true
		}
	}
	return false
}

// Capabilities returns those that the calling thread may use, as a set of bits.
func Capabilities() uint64 {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return 0
	}
	return uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted)
}

// Own makes a directory and what is in it the user's.
func (u User) Own(dir string) error {
	if u == (User{}) {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, u.UID, u.GID)
		}
		return err
	})
}
