package prove

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// fileAttempts returns attempts to reach files outside the policy.
func fileAttempts() []Attempt {
	return append(withFiles(slices.Concat(readAttempts(), changeAttempts(), linkAttempts())...), machineAttempts()...)
}

// withFiles gives each attempt files outside.
func withFiles(all ...Attempt) []Attempt {
	for i := range all {
		all[i].Set = setFiles
	}
	return all
}

func readAttempts() []Attempt {
	return []Attempt{
		{Name: "read-file", Short: true, Try: func(s Scene) error { return s.readSecret(s.outside("secret")) }},
		{Name: "stat-file", Try: func(s Scene) error { return stat(s.outside("secret")) }},
		{Name: "list-directory", Try: func(s Scene) error { return list(s.outside()) }},
		{Name: "path-up", Try: func(s Scene) error { return s.readSecret(s.work() + "/../../outside/" + s.Name + "/secret") }},
		{Name: "directory-up", Try: func(s Scene) error {
			dir, err := unix.Open(s.work(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return errUnknown(err.Error())
			}
			defer unix.Close(dir)
			return openAt(dir, "../../outside/"+s.Name+"/secret", unix.O_RDONLY)
		}},
		{Name: "proc-self-root", Try: func(s Scene) error { return s.readSecret("/proc/self/root" + s.outside("secret")) }},
		{Name: "proc-self-cwd", Try: func(s Scene) error { return s.readSecret("/proc/self/cwd/../outside/" + s.Name + "/secret") }},
		{Name: "linked-directory", Try: tryLinked},
		{Name: "descriptors", Try: tryDescriptors},
		{Name: "file-handle", Try: tryHandle},
	}
}

func changeAttempts() []Attempt {
	change := func(name string, do func(path string) error) Attempt {
		return Attempt{Name: name, Try: func(s Scene) error { return do(s.outside("file")) }}
	}
	overwrite := change("overwrite-file", func(path string) error { return put(path, unix.O_WRONLY) })
	overwrite.Short = true
	return []Attempt{
		overwrite,
		{Name: "create-file", Try: func(s Scene) error { return put(s.outside("new"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) }},
		change("append-file", func(path string) error { return put(path, unix.O_WRONLY|unix.O_APPEND) }),
		change("truncate-file", func(path string) error { return unix.Truncate(path, 1) }),
		change("remove-file", unix.Unlink),
		{Name: "make-directory", Try: func(s Scene) error { return unix.Mkdir(s.outside("new"), 0o755) }},
		{Name: "remove-directory", Try: func(s Scene) error { return unix.Rmdir(s.outside("empty")) }},
		{Name: "move-out", Try: func(s Scene) error { return unix.Rename(s.work("mine"), s.outside("mine")) }},
		{Name: "move-in", Try: func(s Scene) error { return unix.Rename(s.outside("file"), s.work("taken")) }},
		change("chmod-file", func(path string) error { return unix.Chmod(path, 0o666) }),
		change("chown-file", func(path string) error { return unix.Chown(path, os.Getuid(), os.Getgid()) }),
		change("touch-file", func(path string) error { return unix.Utimes(path, make([]unix.Timeval, 2)) }),
		change("set-attribute", func(path string) error { return unix.Setxattr(path, "user.hone", []byte("x"), 0) }),
		{Name: "make-socket", Try: func(s Scene) error { return bindAt(s.outside("new")) }},
		{Name: "write-readable", Try: func(s Scene) error { return put(s.lib("file-"+s.Name), unix.O_WRONLY) }},
		{Name: "create-readable", Try: func(s Scene) error { return put(s.lib("new-"+s.Name), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) }},
		{Name: "chmod-readable", Try: func(s Scene) error { return unix.Chmod(s.lib("file-"+s.Name), 0o666) }},
	}
}

func linkAttempts() []Attempt {
	return []Attempt{
		{Name: "hard-link", Try: func(s Scene) error { return unix.Link(s.outside("file"), s.work("hard")) }},
		{Name: "hard-link-read", Try: func(s Scene) error {
			if err := unix.Link(s.outside("secret"), s.work("hard")); err != nil {
				return err
			}
			return s.readSecret(s.work("hard"))
		}},
		{Name: "hard-link-of-descriptor", Try: tryLinkDescriptor},
		{Name: "hard-link-there", Try: func(s Scene) error { return put(s.work("hard"), unix.O_WRONLY) }},
		{Name: "symlink", Try: func(s Scene) error {
			if err := unix.Symlink(s.outside("secret"), s.work("soft")); err != nil {
				return errUnknown(err.Error())
			}
			return s.readSecret(s.work("soft"))
		}},
		{Name: "symlink-there", Short: true, Try: func(s Scene) error { return s.readSecret(s.work("link")) }},
		{Name: "symlink-there-write", Try: func(s Scene) error { return put(s.work("folder", "file"), unix.O_WRONLY) }},
		{Name: "symlink-swapped", Try: trySwap},
	}
}

// The machine's own files that attempts open.
const (
	shadow       = "/etc/shadow"
	memoryDevice = "/dev/mem"
	kernelLog    = "/dev/kmsg"
	kernelMemory = "/proc/kcore"
	corePattern  = "/proc/sys/kernel/core_pattern"
	sysrq        = "/proc/sysrq-trigger"
	dockerSocket = "/var/run/docker.sock"
)

func machineFiles() []string {
	return []string{shadow, memoryDevice, kernelLog, kernelMemory, corePattern, sysrq, dockerSocket}
}

// machineAttempts returns attempts on the machine's own files. They open the files
// and do not read them.
func machineAttempts() []Attempt {
	look := func(name, path string, flags int) Attempt {
		return Attempt{Name: name, Try: func(s Scene) error { return s.machine(path, flags) }}
	}
	return []Attempt{
		look("shadow", shadow, unix.O_RDONLY),
		{Name: "home", Try: func(s Scene) error {
			if s.Home == "" {
				return errUnknown("no home")
			}
			return s.reveals(s.Home)
		}},
		{Name: "ssh-keys", Try: func(s Scene) error {
			if s.Home == "" {
				return errUnknown("no home")
			}
			return s.machine(filepath.Join(s.Home, ".ssh"), unix.O_RDONLY|unix.O_DIRECTORY)
		}},
		{Name: "directory-around", Try: func(s Scene) error { return s.reveals(s.Dir) }},
		{Name: "run-directory", Try: func(s Scene) error { return s.reveals("/run") }},
		{Name: "docker-socket", Try: func(s Scene) error {
			if !s.There[dockerSocket] {
				return errUnknown("this machine has no " + dockerSocket)
			}
			return fileDescriptor(call(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: dockerSocket}))
		}},
		look("memory-device", memoryDevice, unix.O_RDONLY),
		look("kernel-log", kernelLog, unix.O_RDONLY),
		{Name: "block-device", Try: func(s Scene) error {
			if s.BlockDevice == "" {
				return errUnknown("no block device")
			}
			return open(s.BlockDevice, unix.O_RDONLY)
		}},
		{Name: "make-device", Set: setFiles, Try: func(s Scene) error {
			const null = 1<<8 | 3
			return unix.Mknod(s.work("device"), unix.S_IFCHR|0o666, null)
		}},
		look("core-pattern", corePattern, unix.O_WRONLY),
		look("sysrq", sysrq, unix.O_WRONLY),
		look("kernel-memory", kernelMemory, unix.O_RDONLY),
		{Name: "shared-memory-file", Try: func(s Scene) error {
			if s.ShmFile == "" {
				return errUnknown("no /dev/shm")
			}
			return s.readSecret(s.ShmFile)
		}},
	}
}

// reveals lists a directory, and returns nil if it contains anything that does not
// lead to a path of the policy.
func (s Scene) reveals(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		leads := func(shown string) bool {
			return shown == path || strings.HasPrefix(shown, path+"/") || strings.HasPrefix(path, shown+"/")
		}
		if !slices.ContainsFunc(s.Shown, leads) {
			return nil
		}
	}
	return errHeld("it contains only what the policy shows")
}

func tryLinked(s Scene) error {
	if err := put(s.linked("new"), unix.O_WRONLY|unix.O_CREAT); err != nil {
		return errUnknown("the directory cannot be written: " + err.Error())
	}
	return s.readSecret(s.linked("..", "outside", s.Name, "secret"))
}

// tryDescriptors looks for descriptors that this process inherited.
func tryDescriptors(s Scene) error {
	for fd := 3; fd < 1024; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			return nil
		}
	}
	if s.FD == 0 {
		return errUnknown("none was left open")
	}
	return unix.EBADF
}

func tryHandle(s Scene) error {
	if s.Handle == nil {
		return errUnknown("the file system has no handles")
	}
	dir, err := unix.Open(s.work(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errUnknown(err.Error())
	}
	defer unix.Close(dir)
	fd, err := unix.OpenByHandleAt(dir, unix.NewFileHandle(s.HandleType, s.Handle), unix.O_RDONLY|unix.O_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func tryLinkDescriptor(s Scene) error {
	fd, err := unix.Open(s.outside("secret"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Linkat(unix.AT_FDCWD, descriptor(fd), unix.AT_FDCWD, s.work("hard"), unix.AT_SYMLINK_FOLLOW); err != nil {
		return err
	}
	return s.readSecret(s.work("hard"))
}

// trySwap writes to a directory while it is exchanged with a symlink that leads
// outside, and finally through the symlink.
func trySwap(s Scene) error {
	if err := unix.Symlink(s.outside("empty"), s.work("bait")); err != nil {
		return errUnknown(err.Error())
	}
	if err := unix.Mkdir(s.work("real"), 0o755); err != nil {
		return errUnknown(err.Error())
	}
	const rounds = 300
	swap := func() error {
		return unix.Renameat2(unix.AT_FDCWD, s.work("bait"), unix.AT_FDCWD, s.work("real"), unix.RENAME_EXCHANGE)
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for range rounds {
			_ = put(s.work("real", "new"), unix.O_WRONLY|unix.O_CREAT)
		}
	})
	for range rounds { // an even number, so both end at their own paths
		if err := swap(); err != nil {
			writer.Wait()
			return errUnknown(err.Error())
		}
	}
	writer.Wait()
	return put(s.work("bait", "last"), unix.O_WRONLY|unix.O_CREAT)
}
