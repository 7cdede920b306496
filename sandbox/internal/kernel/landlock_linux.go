package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// Landlock restricts what a thread, and all that it starts, may open and change
// to named paths and what is below them. open lists what older
// kernels miss. No ABI restricts stat, chdir, chmod, chown, utimes, extended
// attributes and inotify, and none can exclude a file from a granted directory.

// newestLandlock is the newest ABI whose rights this package knows.
const newestLandlock = 10

// The rights on files, by what they are good for.
const (
	rightsToRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR

	// rightsOnFiles are the rights that a file can have. The others are only for
	// directories.
	rightsOnFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX

	// neverGranted are the rights to make devices.
	neverGranted = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// LandlockAdvice tells the user what to do if there is no Landlock.
const LandlockAdvice = "Landlock needs Linux 5.13 and must be switched on (lsm=landlock,… on the kernel's command line); or use the hidden wall"

// It is 0 if there is no Landlock.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return min(int(abi), newestLandlock)
}

// It restricts the calling thread. abi is 0 if Landlock is not used; unheld is that of [grants].
func holdFiles(p sandbox.Policy, entries []sandbox.Entry) (abi int, unheld []string, err error) {
	if entries == nil && p.Wall.Mounts() {
		return 0, nil, nil
	}
	abi = landlockABI()
	if abi == 0 && !p.Wall.Mounts() {
		return 0, nil, &sandbox.WallError{Wall: sandbox.Landlock, Reason: "this kernel has no Landlock", Next: LandlockAdvice}
	}
	if abi == 0 {
		return 0, nil, nil
	}
	handled := handledBy(p, abi)
	rules, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&handled)), unsafe.Sizeof(handled), 0)
	if errno != 0 {
		return 0, nil, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer unix.Close(int(rules))
	all, unheld := grants(entries, handled.Handled_access_fs)
	for _, g := range all {
		if err := g.add(rules, handled.Handled_access_fs); err != nil {
			return 0, nil, fmt.Errorf("%s: %w", g.path, err)
		}
	}
	if handled.Handled_access_net&unix.LANDLOCK_ACCESS_NET_CONNECT_TCP != 0 {
		for _, door := range p.Doors { // at every address, because Landlock does not know addresses
			_, port, _ := net.SplitHostPort(door.Addr)
			n, err := strconv.ParseUint(port, 10, 16)
			if err == nil {
				rule := struct{ rights, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, n}
				err = addRule(rules, 2, unsafe.Pointer(&rule)) // LANDLOCK_RULE_NET_PORT
			}
			if err != nil {
				return 0, nil, fmt.Errorf("door %s: %w", door.Addr, err)
			}
		}
	}
	// The rules apply to the calling thread, and to no other thread of the process.
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0); errno != 0 {
		return 0, nil, os.NewSyscallError("landlock_restrict_self", errno)
	}
	return abi, unheld, nil
}

// closesNet reports whether Landlock and the filter of system calls must close the network. Commands cannot
// connect to their own servers then; but listening is allowed, and other machines may connect to those.
func closesNet(p sandbox.Policy) bool { return !p.Net && !p.Wall.Namespaces() }

func handledBy(p sandbox.Policy, abi int) unix.LandlockRulesetAttr {
	rights := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1}
	for _, more := range []struct {
		abi        int
		files, net uint64
		scoped     uint64
	}{
		{abi: 2, files: unix.LANDLOCK_ACCESS_FS_REFER},
		{abi: 3, files: unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{abi: 4, net: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		{abi: 5, files: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{abi: 6, scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL},
		{abi: 9, files: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
		{abi: 10, net: unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP},
	} {
		if abi < more.abi {
			break
		}
		rights.Handled_access_fs |= more.files
		rights.Scoped |= more.scoped
		if closesNet(p) {
			rights.Handled_access_net |= more.net
		}
	}
	return rights
}

type grant struct {
	path   string
	rights uint64
}

// grants returns what commands may open. If a read-only directory contains something hidden, everything around
// the hidden path is granted instead of the directory; the names in the directory can still be listed. unheld
// tells the user which entries Landlock cannot enforce.
func grants(entries []sandbox.Entry, handled uint64) (all []grant, unheld []string) {
	places := sandbox.PlacesOf(entries)
	maps.DeleteFunc(places, func(_ string, e sandbox.Entry) bool { return e.Access == sandbox.AccessNone })
	around := func(e sandbox.Entry) sandbox.Access { return places.Around(e.Path).Access }
	var hidden, fixed []string
	for _, e := range entries {
		inWritable := around(e) == sandbox.AccessWrite
		switch {
		case e.Link != "":
			continue
		case e.Access == sandbox.AccessNone && inWritable && !e.Absent:
			hidden = append(hidden, e.Path)
		case e.Access == sandbox.AccessRead && inWritable:
			fixed = append(fixed, e.Path)
		}
		switch {
		case e.Absent || e.Access == sandbox.AccessNone:
		case e.Access == sandbox.AccessWrite:
			all = append(all, grant{e.Path, handled &^ neverGranted})
		default:
			var below []string // those in writable directories are omitted: Landlock cannot hide them
			for _, h := range entries {
				if h.Access == sandbox.AccessNone && !h.Absent && h.Path != e.Path && sandbox.Within(e.Path, h.Path) && around(h) == sandbox.AccessRead {
					below = append(below, h.Path)
				}
			}
			rest, ok := grantsAround(e.Path, below)
			if !ok {
				rest, hidden = []grant{{e.Path, rightsToRead}}, append(hidden, below...)
			}
			all = append(all, rest...)
		}
	}
	if len(hidden) > 0 {
		unheld = append(unheld, "hidden, but commands can read it: "+firstOf(hidden))
	}
	if len(fixed) > 0 {
		unheld = append(unheld, "protected, but commands can change it while they run: "+firstOf(fixed))
	}
	return all, unheld
}

// maxAround is how many grants may replace one directory. Beyond it the directory
// is granted with what is hidden in it, and [grants] reports that.
const maxAround = 4096

// ok is false if too many grants are needed.
func grantsAround(dir string, hidden []string) (all []grant, ok bool) {
	if len(hidden) == 0 {
		return []grant{{dir, rightsToRead}}, true
	}
	all = []grant{{dir, unix.LANDLOCK_ACCESS_FS_READ_DIR}}
	children, _ := os.ReadDir(dir)
	for _, child := range children {
		path := filepath.Join(dir, child.Name())
		if child.Type()&fs.ModeSymlink != 0 || slices.Contains(hidden, path) {
			continue
		}
		below := slices.DeleteFunc(slices.Clone(hidden), func(h string) bool { return !sandbox.Within(path, h) })
		more, ok := grantsAround(path, below)
		if all = append(all, more...); !ok || len(all) > maxAround {
			return nil, false
		}
	}
	return all, true
}

func firstOf(paths []string) string {
	if len(paths) == 1 {
		return paths[0]
	}
	return fmt.Sprintf("%s and %d more", paths[0], len(paths)-1)
}

// A path that cannot be opened or has become a symlink is skipped: nothing is granted then.
func (g grant) add(rules uintptr, handled uint64) error {
	at, err := unix.Open(g.path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var info unix.Stat_t
	if err := unix.Fstat(at, &info); err != nil {
		return err
	}
	rights := g.rights & handled
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil
	case unix.S_IFDIR:
	default:
		rights &= rightsOnFiles
	}
	if rights == 0 {
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(at)}
	return addRule(rules, unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&rule))
}

func addRule(rules, kind uintptr, rule unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, kind, uintptr(rule), 0, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_add_rule", errno)
	}
	return nil
}
