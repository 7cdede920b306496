package wall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// newRoot is a file system that is being built. The process enters it last.
type newRoot struct {
	fd   int // its root directory
	dir  *os.Root
	spec spec
}

// This process is the first of its namespaces.
func buildHidden(s spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts from those outside: %w", err)
	}
	r, err := makeRoot(s)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"make /tmp", r.tmp},
		{"show the policy's paths", r.show},
		{"mount /proc", r.proc},
		{"make /dev", r.dev},
		{"raise the loopback interface", func() error {
			if !s.ownNet() {
				return nil
			}
			return raiseLoopback()
		}},
		{"enter the new root", r.enter},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// No process sees it yet.
func makeRoot(s spec) (*newRoot, error) {
	fd, err := newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "mode", "0755", "size", "4m")
	if err != nil {
		return nil, fmt.Errorf("make a root: %w", err)
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, fmt.Errorf("mount a root: %w", err)
	}
	dir, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
	return &newRoot{fd: fd, dir: dir, spec: s}, err
}

// The file system is not mounted. Options are pairs of a key and a value; an empty value sets a flag.
func newFS(kind string, attributes int, options ...string) (int, error) {
	fd, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	for pair := range slices.Chunk(options, 2) {
		if pair[1] == "" {
			err = unix.FsconfigSetFlag(fd, pair[0])
		} else {
			err = unix.FsconfigSetString(fd, pair[0], pair[1])
		}
		if err != nil {
			return -1, fmt.Errorf("set %s of a new %s: %w", pair[0], kind, err)
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return -1, err
	}
	return unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, attributes)
}

// The copy has all mounts below the path, to be mounted elsewhere. No symlink is followed.
func openTree(dir int, path string) (int, error) {
	at, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	return unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
}

func (r *newRoot) show() error {
	var closed []string // hidden directories; they become read-only when everything is mounted
	for _, e := range mounts(r.spec.Entries) {
		if err := r.put(e); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		if e.Access == sandbox.AccessNone && e.Dir {
			closed = append(closed, e.Path)
		}
	}
	for _, path := range closed {
		at, err := r.open(path)
		if err == nil {
			err = unix.MountSetattr(at, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
			unix.Close(at)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (r *newRoot) put(e sandbox.Entry) error {
	attributes := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	switch {
	case e.Link != "":
		return r.link(e.Path, e.Link)
	case e.Lower != "":
		fd, err := newOverlay(e.Lower, layerOf(r.spec.Policy.Layers, e.Path))
		return r.attach(fd, err, e.Path, true, attributes)
	case e.Access == sandbox.AccessNone && e.Dir:
		fd, err := newFS("tmpfs", int(attributes), "mode", "0555", "size", "1m")
		return r.attach(fd, err, e.Path, true, 0)
	case e.Access == sandbox.AccessNone:
		fd, err := openTree(unix.AT_FDCWD, os.DevNull) // even root cannot open a device on such a mount
		return r.attach(fd, err, e.Path, false, attributes|unix.MOUNT_ATTR_RDONLY)
	case e.Access == sandbox.AccessRead:
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	fd, err := openTree(unix.AT_FDCWD, e.Path)
	return r.attach(fd, err, e.Path, e.Dir, attributes)
}

// The path is made if it does not exist. opened is the error of opening the tree, and is returned if it is not nil.
func (r *newRoot) attach(fd int, opened error, path string, dir bool, attributes uint64) error {
	if opened != nil {
		return opened
	}
	defer unix.Close(fd)
	if attributes != 0 {
		err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes})
		if err != nil {
			return err
		}
	}
	at, err := r.point(path, dir)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// Symlinks are not followed to it: what is made through one cannot be opened.
func (r *newRoot) point(path string, dir bool) (int, error) {
	at, err := r.open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return at, err
	}
	around := path
	if !dir {
		around = filepath.Dir(path)
	}
	err = r.dir.MkdirAll(relToRoot(around), 0o755)
	if err == nil && !dir {
		var f *os.File
		if f, err = r.dir.OpenFile(relToRoot(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return -1, err
	}
	return r.open(path)
}

// It follows no symlink.
func (r *newRoot) open(path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	return unix.Openat2(r.fd, relToRoot(path), &how)
}

func relToRoot(path string) string {
	if rest := strings.TrimLeft(path, "/"); rest != "" {
		return rest
	}
	return "."
}

func (r *newRoot) link(path, target string) error {
	if err := r.dir.MkdirAll(relToRoot(filepath.Dir(path)), 0o755); err != nil {
		return err
	}
	if err := r.dir.Symlink(target, relToRoot(path)); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// All of it is read-only: it also has the machine's settings and modes, and their owner may be the machine's root.
func (r *newRoot) proc() error {
	fd, err := newFS("proc", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err := r.attach(fd, err, "/proc", true, 0); err != nil {
		return err
	}
	for _, path := range secretProc() {
		if err := r.put(sandbox.Entry{Path: path, Access: sandbox.AccessNone}); err != nil {
			return err
		}
	}
	return nil
}

// secretProc returns the files of /proc that may reveal secrets of others.
func secretProc() (paths []string) {
	for _, name := range []string{"kcore", "keys", "key-users", "kmsg", "timer_list", "sched_debug", "kpagecount", "kpageflags", "kpagecgroup"} {
		if _, err := os.Lstat("/proc/" + name); err == nil {
			paths = append(paths, "/proc/"+name)
		}
	}
	return paths
}

// dev makes the devices that programs expect, the machine's that contain no data, and terminals of its own. Devices can be written on a
// read-only mount, but their modes and owners, which are the machine's, cannot be changed.
func (r *newRoot) dev() error {
	const attributes = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		fd, err := openTree(unix.AT_FDCWD, "/dev/"+name)
		if err := r.attach(fd, err, "/dev/"+name, false, attributes|unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	pts, err := newFS("devpts", attributes, "newinstance", "", "ptmxmode", "0666", "mode", "0620")
	if err := r.attach(pts, err, "/dev/pts", true, 0); err != nil {
		return err
	}
	shm, err := newFS("tmpfs", attributes|unix.MOUNT_ATTR_NODEV, "mode", "1777", "size", r.size())
	if err := r.attach(shm, err, "/dev/shm", true, 0); err != nil {
		return err
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := r.link("/dev/"+name, target); err != nil {
			return err
		}
	}
	return nil
}

// The policy's paths below the machine's own /tmp are mounted in it later, on directories that are made in the policy's
// directory.
func (r *newRoot) tmp() error {
	fd, err := newFS("tmpfs", 0, "mode", "1777", "size", r.size())
	if at := r.spec.Policy.Tmp; at != "" {
		unix.Close(fd)
		fd, err = openTree(unix.AT_FDCWD, at)
	}
	return r.attach(fd, err, "/tmp", true, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// A tmpfs takes per cent of the machine's memory.
func (r *newRoot) size() string {
	if most := r.spec.Policy.Limits.Memory; most > 0 {
		return strconv.FormatInt(most, 10)
	}
	return "25%"
}

func (r *newRoot) enter() error {
	if err := unix.MountSetattr(r.fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return err
	}
	if err := unix.Fchdir(r.fd); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Chdir("/")
}
