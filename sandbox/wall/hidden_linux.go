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
)

// newRoot is a file system that is being put together. It is entered last.
type newRoot struct {
	fd    int // its top
	empty int // an empty file that nobody may read
	spec  spec
}

// buildHidden puts together the file system that the command sees, and enters
// it. This process is the first of its namespaces.
func buildHidden(s spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cut the mounts off from those outside: %w", err)
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
		{"raise the loopback interface", r.loopback},
		{"enter the new root", r.enter},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// makeRoot mounts an empty file system over the root, where nobody sees it yet.
func makeRoot(s spec) (*newRoot, error) {
	fd, err := newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "mode", "0755", "size", "4m")
	if err != nil {
		return nil, fmt.Errorf("make a root: %w", err)
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, fmt.Errorf("mount a root: %w", err)
	}
	r := &newRoot{fd: fd, spec: s}
	if err := r.file(hiddenFile, 0); err != nil {
		return nil, err
	}
	r.empty, err = openTree(fd, hiddenFile)
	return r, err
}

// hiddenFile is what stands in the place of hidden files.
const hiddenFile = ".hidden"

// newFS makes a file system that is not mounted yet. Options are pairs of a key
// and a value.
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
			return -1, fmt.Errorf("%s of a new %s: %w", pair[0], kind, err)
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return -1, err
	}
	return unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, attributes)
}

// openTree takes a path with all that is mounted below it, to be mounted
// elsewhere. No symlink is followed.
func openTree(dir int, path string) (int, error) {
	at, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	return unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
}

// show mounts what the policy shows.
func (r *newRoot) show() error {
	var closed []string // hidden folders, made read-only when all is in its place
	for _, m := range mounts(r.spec.Entries) {
		if err := r.put(m); err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
		if m.Kind == mountHideDir {
			closed = append(closed, m.Path)
		}
	}
	for _, path := range closed {
		if err := r.change(path, 0, unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (r *newRoot) put(m mount) error {
	switch m.Kind {
	case mountLink:
		return r.link(m.Path, m.Target)
	case mountHideFile:
		fd, err := unix.OpenTree(r.empty, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
		return r.attach(fd, err, m.Path, false, unix.MOUNT_ATTR_RDONLY)
	case mountHideDir:
		fd, err := newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "mode", "0555", "size", "1m")
		return r.attach(fd, err, m.Path, true, 0)
	}
	attributes := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if m.Kind == mountRead {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	fd, err := openTree(unix.AT_FDCWD, m.Path)
	return r.attach(fd, err, m.Path, m.Dir, attributes)
}

// attach mounts a tree, whose opening may have failed, at a path of the new
// root, which is made where it is missing.
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

// point opens the place where something is to be mounted.
func (r *newRoot) point(path string, dir bool) (int, error) {
	at, err := r.open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return at, err
	}
	if dir {
		err = r.mkdir(path, 0o755)
	} else {
		err = r.file(path, 0o444)
	}
	if err != nil {
		return -1, err
	}
	return r.open(path)
}

// open opens a place of the new root. No symlink in it is followed.
func (r *newRoot) open(path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	return unix.Openat2(r.fd, below(path), &how)
}

// below is an absolute path as seen from the root.
func below(path string) string {
	if rest := strings.TrimLeft(path, "/"); rest != "" {
		return rest
	}
	return "."
}

// mkdir makes a folder, and those that hold it.
func (r *newRoot) mkdir(path string, mode uint32) error {
	if path = below(path); path == "." {
		return nil
	}
	if err := r.mkdir(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	err := r.in(path, func(dir int, name string) error { return unix.Mkdirat(dir, name, mode) })
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// file makes an empty file, and the folders that hold it.
func (r *newRoot) file(path string, mode uint32) error {
	if err := r.mkdir(filepath.Dir(below(path)), 0o755); err != nil {
		return err
	}
	return r.in(path, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, mode)
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
}

// link makes a symlink where nothing stands.
func (r *newRoot) link(path, target string) error {
	if err := r.mkdir(filepath.Dir(below(path)), 0o755); err != nil {
		return err
	}
	err := r.in(path, func(dir int, name string) error { return unix.Symlinkat(target, dir, name) })
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// in does something in the folder that holds a path.
func (r *newRoot) in(path string, do func(dir int, name string) error) error {
	dir, err := r.open(filepath.Dir(below(path)))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return do(dir, filepath.Base(path))
}

// change changes a mount's attributes.
func (r *newRoot) change(path string, flags uint, set uint64) error {
	at, err := r.open(path)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.MountSetattr(at, "", unix.AT_EMPTY_PATH|flags, &unix.MountAttr{Attr_set: set})
}

// proc mounts the processes of the new namespace. What is the machine's in it
// is read-only, because its root's user may be the machine's; what tells of
// others' secrets is hidden.
func (r *newRoot) proc() error {
	fd, err := newFS("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err := r.attach(fd, err, "/proc", true, 0); err != nil {
		return err
	}
	if err := r.limitProcesses(); err != nil {
		return err
	}
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "mtrr"} {
		path := "/proc/" + name
		fd, err := openTree(r.fd, below(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := r.attach(fd, err, path, true, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	return r.mask("/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg", "/proc/timer_list", "/proc/sched_debug", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup")
}

// mask hides files where they exist.
func (r *newRoot) mask(paths ...string) error {
	for _, path := range paths {
		at, err := r.open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		unix.Close(at)
		if err := r.put(mount{Path: path, Kind: mountHideFile}); err != nil {
			return err
		}
	}
	return nil
}

// dev makes the devices that programs expect: those of the machine that hold
// nothing, and terminals of its own.
func (r *newRoot) dev() error {
	const attributes = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		fd, err := openTree(unix.AT_FDCWD, "/dev/"+name)
		if err := r.attach(fd, err, "/dev/"+name, false, attributes); err != nil {
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

// tmp makes /tmp: the policy's folder, or an empty one for this command alone.
// What the policy shows of the machine's own /tmp is mounted in it later, on
// folders that are made in the policy's for that.
func (r *newRoot) tmp() error {
	fd, err := newFS("tmpfs", 0, "mode", "1777", "size", r.size())
	if at := r.spec.Policy.Tmp; at != "" {
		unix.Close(fd)
		fd, err = openTree(unix.AT_FDCWD, at)
	}
	return r.attach(fd, err, "/tmp", true, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// size is how much a file system in memory may hold: as much as the command may
// have of it anyway, or a quarter of the machine's.
func (r *newRoot) size() string {
	if most := r.spec.Policy.Limits.Memory; most > 0 {
		return strconv.FormatInt(most, 10)
	}
	return "25%"
}

// limitProcesses limits the numbers that processes can have in the namespace,
// which bounds root as well. Kernels before 6.14 have one limit for the
// machine, and do not let us.
func (r *newRoot) limitProcesses() error {
	const reserved = 300 // the kernel gives these numbers once
	most := r.spec.Policy.Limits.MaxProcesses()
	if most == 0 {
		return nil
	}
	fd, err := unix.Openat(r.fd, "proc/sys/kernel/pid_max", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	_, _ = unix.Write(fd, []byte(strconv.Itoa(most+reserved+1)))
	return nil
}

// loopback raises the loopback interface of the network namespace.
func (r *newRoot) loopback() error {
	if !r.spec.ownNet() {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// enter makes the new root the only one there is.
func (r *newRoot) enter() error {
	if err := unix.Unlinkat(r.fd, hiddenFile, 0); err != nil { // its mounts stay
		return err
	}
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
