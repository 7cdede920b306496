package wall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"hone/sandbox"
)

// The walls of bubblewrap.
//
// What they guard: a command has a file system of its own, in which there is
// nothing but what the policy shows, an empty /tmp (or [Policy.Tmp]), a /dev
// with the harmless devices, and a /proc that knows its own processes alone; a
// network of its own with nothing but loopback, unless the policy opens it; and
// its own processes, shared memory and host name. It has no capabilities, as
// root either. When the process that started bubblewrap ends, all of it ends.
//
// What they do not guard:
//   - A hidden path in a folder that is shown has its place taken: by a device
//     that cannot be opened, or by an empty folder. That it exists is seen, and
//     git add fails on such a device, where the file is not ignored.
//   - A protected symlink, or a protected file that does not exist, is not held
//     in place by a mount: a command in whose folder it lies can change it.
//   - Where entries lie below /tmp and Policy.Tmp is set, the folders in which
//     they are mounted, and the symlinks to them, are made in Policy.Tmp.
//   - What the kernel shows of itself in /proc, and unix sockets in folders that
//     are shown, also read-only.
//   - Where bubblewrap is setuid, and user namespaces are off, it runs as root
//     until the walls stand.
//
// The keeper adds Landlock, seccomp and the limits.

// readOnlyProc are the parts of /proc that act on the whole machine, and are
// guarded by nothing but their owner, who is root: also root without
// capabilities.
var readOnlyProc = [...]string{"/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/mtrr"}

// mostBwrapArgs is how many arguments bubblewrap takes.
const mostBwrapArgs = 9000

// bwrapArgs is the command line of bubblewrap that shows the entries of a
// policy and runs the keeper behind the walls, as process 1. Descriptors that
// can be inherited reach the keeper. Any path will do. It needs bubblewrap 0.4.
func bwrapArgs(program string, p sandbox.Policy, entries []sandbox.Entry, keeper []string) ([]string, error) {
	list := mounts(entries)
	list, err := checkTmp(p.Tmp, list)
	if err != nil {
		return nil, err
	}
	args := []string{program, "--unshare-all"}
	if p.Net {
		args = append(args, "--share-net")
	}
	args = append(args, "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--chdir", "/")
	args = append(args, bwrapMounts(p.Tmp, list)...)
	args = append(append(args, "--"), keeper...)
	if len(args) > mostBwrapArgs {
		return nil, &sandbox.WallError{Wall: sandbox.Bubblewrap, Reason: fmt.Sprintf("it takes %d arguments at most, and showing and hiding %d paths needs %d", mostBwrapArgs, len(list), len(args)),
			Next: "hide folders in the place of single files, or use the wall hidden"}
	}
	return args, nil
}

// bwrapMounts are the options for everything that is mounted.
func bwrapMounts(tmp string, list []mount) (args []string) {
	rooted := len(list) > 0 && list[0].Path == "/"
	if rooted {
		args = append(args, bwrapMount(list[0])...)
		list = list[1:]
	}
	args = append(args, bwrapSystem(tmp)...)
	for _, m := range list {
		args = append(args, bwrapMount(m)...)
	}
	// Only now that everything has its place.
	for _, m := range list {
		if m.Kind == mountHideDir {
			args = append(args, "--remount-ro", m.Path)
		}
	}
	args = append(args, "--remount-ro", "/dev")
	if !rooted {
		args = append(args, "--remount-ro", "/")
	}
	return args
}

// bwrapSystem are the options for what every command finds.
func bwrapSystem(tmp string) []string {
	args := []string{"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"}
	for _, path := range readOnlyProc {
		args = append(args, "--ro-bind-try", path, path)
	}
	args = append(args, "--dev", "/dev", "--tmpfs", "/dev/shm")
	if tmp == "" {
		return append(args, "--tmpfs", "/tmp")
	}
	return append(args, "--bind", tmp, "/tmp")
}

func bwrapMount(m mount) []string {
	switch {
	case m.Kind == mountLink:
		return []string{"--symlink", m.Target, m.Path}
	case m.Kind == mountHideDir:
		return []string{"--tmpfs", m.Path}
	case m.Kind == mountHideFile:
		// No device can be opened where it is mounted without --dev-bind.
		return []string{"--ro-bind", os.DevNull, m.Path}
	case sandbox.Holds("/dev", m.Path):
		return []string{"--dev-bind", m.Path, m.Path}
	case m.Kind == mountRead:
		return []string{"--ro-bind", m.Path, m.Path}
	}
	return []string{"--bind", m.Path, m.Path}
}

// checkTmp refuses a folder for /tmp in which a symlink would take what is
// mounted below /tmp to some other place. It leaves out the symlinks that an
// earlier command was shown there.
func checkTmp(tmp string, list []mount) (left []mount, err error) {
	for _, m := range list {
		made := false
		if tmp != "" && m.Path != "/tmp" && sandbox.Holds("/tmp", m.Path) {
			if made, err = tmpPoint(tmp, m); err != nil {
				return nil, err
			}
		}
		if !made {
			left = append(left, m)
		}
	}
	return left, nil
}

// tmpPoint looks at where a mount has its place in the folder for /tmp; made
// says that it is a symlink that is there already.
func tmpPoint(tmp string, m mount) (made bool, err error) {
	tmp = filepath.Clean(tmp)
	point := filepath.Join(tmp, strings.TrimPrefix(m.Path, "/tmp"))
	if target, err := os.Readlink(point); err == nil && m.Kind == mountLink && target == m.Target {
		made, point = true, filepath.Dir(point)
	}
	for dir := point; len(dir) > len(tmp); dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return false, &sandbox.WallError{Wall: sandbox.Bubblewrap, Reason: fmt.Sprintf("%s, which is shown as /tmp, has a symlink at %s where %s is to be shown", tmp, dir, m.Path), Next: "remove " + dir}
		}
	}
	return made, nil
}

// findBwrap is the path of bubblewrap. The error is a [*WallError].
func findBwrap() (string, error) {
	return findWrapper(sandbox.Bubblewrap, "apt install bubblewrap (dnf, pacman and apk call it so too)")
}

// findWrapper is the path of a program that builds walls, which is called as
// they are. Whether it can build them here is seen when they are tried.
func findWrapper(wall sandbox.Wall, next string) (string, error) {
	path, err := exec.LookPath(string(wall))
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", &sandbox.WallError{Wall: wall, Reason: fmt.Sprintf("there is no %s in PATH", wall), Next: next, Err: err}
	}
	return path, nil
}

// whyNoNamespaces is the likely reason that a program cannot make namespaces,
// and what to do about it.
func whyNoNamespaces(program string) (reason, next string) {
	setuid := false
	if info, err := os.Stat(program); err == nil {
		setuid = info.Mode()&fs.ModeSetuid != 0
	}
	setting := func(path, value string) bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.TrimSpace(string(text)) == value
	}
	switch {
	case setuid:
		return "it is setuid and still cannot build walls, as in a container", "use the wall landlock"
	case setting("/proc/sys/user/max_user_namespaces", "0"):
		return "user namespaces are switched off", "sysctl user.max_user_namespaces=15000, or use the wall landlock"
	case setting("/proc/sys/kernel/unprivileged_userns_clone", "0") && os.Getuid() != 0:
		return "user namespaces are root's alone, and bwrap is not setuid", "sysctl kernel.unprivileged_userns_clone=1, or use the wall landlock"
	case setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") && os.Getuid() != 0:
		return "AppArmor keeps user namespaces from programs without a profile", "give bwrap an AppArmor profile that allows userns, or use the wall landlock"
	}
	return "it cannot build walls here, as in a container that refuses namespaces or mounts", "use the wall landlock"
}
