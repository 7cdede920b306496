package table

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/prove/table/stage"
)

// fileAttempts returns attempts to reach files outside the policy.
func fileAttempts() []attempt {
	return slices.Concat(readAttempts(), changeAttempts(), linkAttempts(), machineAttempts())
}

// file returns a Prepare that writes a file.
func file(path func(scene) string) func(*stage.Stage, scene) (string, error) {
	return func(_ *stage.Stage, s scene) (string, error) { return "", s.Write(path(s), "untouched\n") }
}

func readAttempts() []attempt {
	return []attempt{
		{Name: "stat-file", Try: func(s scene) error { return stat(s.Outside("secret")) }},
		{Name: "list-directory", Try: func(s scene) error { return list(s.Outside()) }},
		{Name: "path-up", Try: func(s scene) error { return s.ReadSecret(s.Work() + "/../../outside/" + s.Name + "/secret") }},
		{Name: "directory-up", Try: func(s scene) error {
			dir, err := unix.Open(s.Work(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return stage.Unknown(err.Error())
			}
			defer unix.Close(dir)
			return stage.OpenAt(dir, "../../outside/"+s.Name+"/secret", unix.O_RDONLY)
		}},
		{Name: "proc-self-root", Try: func(s scene) error { return s.ReadSecret("/proc/self/root" + s.Outside("secret")) }},
		{Name: "proc-self-cwd", Try: func(s scene) error { return s.ReadSecret("/proc/self/cwd/../outside/" + s.Name + "/secret") }},
		{
			Name: "linked-directory", // the policy names a writable directory by a symlink
			Prepare: func(_ *stage.Stage, s scene) (string, error) {
				if err := os.Mkdir(filepath.Join(s.Dir, "linked-to"), 0o755); err != nil {
					return "", err
				}
				return "", os.Symlink("linked-to", filepath.Join(s.Dir, "linked"))
			},
			Policy: func(s scene, p *sandbox.Policy) { p.Write = append(p.Write, filepath.Join(s.Dir, "linked")) },
			Try: func(s scene) error {
				linked := filepath.Join(s.Dir, "linked")
				if err := stage.Put(linked+"/new", unix.O_WRONLY|unix.O_CREAT); err != nil {
					return stage.Unknown("the directory cannot be written: " + err.Error())
				}
				return s.ReadSecret(linked + "/../outside/" + s.Name + "/secret")
			},
		},
		{
			Name: "file-handle",
			Prepare: func(_ *stage.Stage, s scene) (string, error) {
				handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.Outside("secret"), 0)
				if err != nil {
					return "", stage.Unknown("the file system has no handles")
				}
				return strconv.Itoa(int(handle.Type())) + " " + base64.StdEncoding.EncodeToString(handle.Bytes()), nil
			},
			Try: tryHandle,
		},
	}
}

func changeAttempts() []attempt {
	change := func(name string, do func(path string) error) attempt {
		return attempt{Name: name, Try: func(s scene) error { return do(s.Outside("file")) }}
	}
	empty := func(_ *stage.Stage, s scene) (string, error) { return "", os.Mkdir(s.Outside("empty"), 0o755) }
	readable := file(func(s scene) string { return s.Lib(s.Name, "file") })
	return []attempt{
		{Name: "create-file", Try: func(s scene) error { return stage.Put(s.Outside("new"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) }},
		change("append-file", func(path string) error { return stage.Put(path, unix.O_WRONLY|unix.O_APPEND) }),
		change("truncate-file", func(path string) error { return unix.Truncate(path, 1) }),
		change("remove-file", unix.Unlink),
		{Name: "make-directory", Try: func(s scene) error { return unix.Mkdir(s.Outside("new"), 0o755) }},
		{Name: "remove-directory", Prepare: empty, Try: func(s scene) error { return unix.Rmdir(s.Outside("empty")) }},
		{Name: "move-out", Prepare: file(func(s scene) string { return s.Work("mine") }), Try: func(s scene) error {
			return unix.Rename(s.Work("mine"), s.Outside("mine"))
		}},
		{Name: "move-in", Try: func(s scene) error { return unix.Rename(s.Outside("file"), s.Work("taken")) }},
		change("chmod-file", func(path string) error { return unix.Chmod(path, 0o666) }),
		change("chown-file", func(path string) error { return unix.Chown(path, os.Getuid(), os.Getgid()) }),
		change("touch-file", func(path string) error { return unix.Utimes(path, make([]unix.Timeval, 2)) }),
		change("set-attribute", func(path string) error { return unix.Setxattr(path, "user.hone", []byte("x"), 0) }),
		{Name: "make-socket", Try: func(s scene) error { return bindAt(s.Outside("new")) }},
		{Name: "create-readable", Prepare: readable, Try: func(s scene) error {
			return stage.Put(s.Lib(s.Name, "new"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		}},
		{Name: "chmod-readable", Prepare: readable, Try: func(s scene) error { return unix.Chmod(s.Lib(s.Name, "file"), 0o666) }},
	}
}

func linkAttempts() []attempt {
	return []attempt{
		{Name: "hard-link", Try: func(s scene) error { return unix.Link(s.Outside("file"), s.Work("hard")) }},
		{Name: "hard-link-read", Try: func(s scene) error {
			if err := unix.Link(s.Outside("secret"), s.Work("hard")); err != nil {
				return err
			}
			return s.ReadSecret(s.Work("hard"))
		}},
		{Name: "hard-link-of-descriptor", Try: tryLinkDescriptor},
		{
			Name: "hard-link-there",
			Prepare: func(_ *stage.Stage, s scene) (string, error) {
				return "", os.Link(s.Outside("file"), s.Work("hard"))
			},
			Try: func(s scene) error { return stage.Put(s.Work("hard"), unix.O_WRONLY) },
		},
		{Name: "set-user-id", Try: func(s scene) error {
			if err := stage.Put(s.Work("program"), unix.O_WRONLY|unix.O_CREAT); err != nil {
				return stage.Unknown(err.Error())
			}
			return unix.Chmod(s.Work("program"), 0o4755)
		}},
		{Name: "symlink", Try: func(s scene) error {
			if err := unix.Symlink(s.Outside("secret"), s.Work("soft")); err != nil {
				return stage.Unknown(err.Error())
			}
			return s.ReadSecret(s.Work("soft"))
		}},
		{
			Name: "symlink-there",
			Prepare: func(_ *stage.Stage, s scene) (string, error) {
				return "", os.Symlink(s.Outside("secret"), s.Work("link"))
			},
			Try: func(s scene) error { return s.ReadSecret(s.Work("link")) },
		},
		{
			Name:    "symlink-there-write",
			Prepare: func(_ *stage.Stage, s scene) (string, error) { return "", os.Symlink(s.Outside(), s.Work("folder")) },
			Try:     func(s scene) error { return stage.Put(s.Work("folder", "file"), unix.O_WRONLY) },
		},
		{
			Name:    "symlink-swapped",
			Prepare: func(_ *stage.Stage, s scene) (string, error) { return "", os.Mkdir(s.Outside("empty"), 0o755) },
			Try:     trySwap,
		},
	}
}

// there is a Prepare that finds out whether the machine has a file.
func there(path string) func(*stage.Stage, scene) (string, error) {
	return func(*stage.Stage, scene) (string, error) {
		if err := stat(path); err != nil {
			return "", stage.Unknown("this machine has no " + path)
		}
		return path, nil
	}
}

// home is a Prepare that finds the user's home, or a file in it.
func home(name string) func(*stage.Stage, scene) (string, error) {
	return func(st *stage.Stage, s scene) (string, error) {
		dir, err := os.UserHomeDir()
		if err != nil || list(dir) != nil {
			return "", stage.Unknown("no home")
		}
		return there(filepath.Join(dir, name))(st, s)
	}
}

// machineAttempts returns attempts on the machine's own files. They open the files
// and do not read them.
func machineAttempts() []attempt {
	look := func(name, path string, flags int) attempt {
		return attempt{Name: name, Prepare: there(path), Try: func(s scene) error { return stage.Open(path, flags) }}
	}
	return []attempt{
		look("shadow", "/etc/shadow", unix.O_RDONLY),
		{Name: "home", Prepare: home(""), Try: func(s scene) error { return reveals(s, s.Given) }},
		{Name: "ssh-keys", Prepare: home(".ssh"), Try: func(s scene) error {
			return stage.Open(s.Given, unix.O_RDONLY|unix.O_DIRECTORY)
		}},
		{Name: "directory-around", Try: func(s scene) error { return reveals(s, s.Dir) }},
		{Name: "run-directory", Try: func(s scene) error { return reveals(s, "/run") }},
		{Name: "docker-socket", Prepare: there("/var/run/docker.sock"), Try: func(s scene) error {
			return stage.Close(stage.Dial(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: s.Given}))
		}},
		look("memory-device", "/dev/mem", unix.O_RDONLY),
		{Name: "block-device", Prepare: findBlockDevice, Try: func(s scene) error { return stage.Open(s.Given, unix.O_RDONLY) }},
		{Name: "make-device", Try: func(s scene) error {
			const null = 1<<8 | 3
			return unix.Mknod(s.Work("device"), unix.S_IFCHR|0o666, null)
		}},
		look("core-pattern", "/proc/sys/kernel/core_pattern", unix.O_WRONLY),
		look("sysrq", "/proc/sysrq-trigger", unix.O_WRONLY),
		keepMode("chmod-device", "/dev/zero"),
		keepMode("chmod-proc", "/proc/version"),
		look("kernel-memory", "/proc/kcore", unix.O_RDONLY),
		{
			Name: "shared-memory-file",
			Prepare: func(st *stage.Stage, s scene) (string, error) {
				path := "/dev/shm/" + filepath.Base(s.Dir)
				if os.WriteFile(path, []byte(st.Value), 0o600) != nil {
					return "", stage.Unknown("no /dev/shm")
				}
				st.AtEnd(func() { os.Remove(path) })
				return path, nil
			},
			Try: func(s scene) error { return s.ReadSecret(s.Given) },
		},
	}
}

// keepMode gives a file of the machine the mode that it has.
func keepMode(name, path string) attempt {
	return attempt{Name: name, Prepare: there(path), Try: func(s scene) error {
		var info unix.Stat_t
		if err := unix.Stat(path, &info); err != nil {
			return err
		}
		return unix.Chmod(path, info.Mode&0o7777)
	}}
}

func findBlockDevice(*stage.Stage, scene) (string, error) {
	devices, _ := os.ReadDir("/dev") // without it there is no such attempt
	for _, d := range devices {
		if d.Type()&os.ModeDevice != 0 && d.Type()&os.ModeCharDevice == 0 {
			return "/dev/" + d.Name(), nil
		}
	}
	return "", stage.Unknown("no block device")
}

// reveals lists a directory, and returns nil if it contains anything that does not
// lead to a path of the policy.
func reveals(s scene, dir string) error {
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
	return stage.Held("it contains only what the policy shows")
}

func tryHandle(s scene) error {
	kind, text, _ := strings.Cut(s.Given, " ")
	number, err := strconv.Atoi(kind)
	if err != nil {
		return stage.Unknown(err.Error())
	}
	handle, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return stage.Unknown(err.Error())
	}
	dir, err := unix.Open(s.Work(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return stage.Unknown(err.Error())
	}
	defer unix.Close(dir)
	return stage.Close(unix.OpenByHandleAt(dir, unix.NewFileHandle(int32(number), handle), unix.O_RDONLY|unix.O_CLOEXEC))
}

func tryLinkDescriptor(s scene) error {
	fd, err := unix.Open(s.Outside("secret"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Linkat(unix.AT_FDCWD, descriptor(fd), unix.AT_FDCWD, s.Work("hard"), unix.AT_SYMLINK_FOLLOW); err != nil {
		return err
	}
	return s.ReadSecret(s.Work("hard"))
}

// trySwap writes to a directory while it is exchanged with a symlink that leads
// outside, and finally through the symlink.
func trySwap(s scene) error {
	if err := unix.Symlink(s.Outside("empty"), s.Work("bait")); err != nil {
		return stage.Unknown(err.Error())
	}
	if err := unix.Mkdir(s.Work("real"), 0o755); err != nil {
		return stage.Unknown(err.Error())
	}
	const rounds = 300
	swap := func() error {
		return unix.Renameat2(unix.AT_FDCWD, s.Work("bait"), unix.AT_FDCWD, s.Work("real"), unix.RENAME_EXCHANGE)
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for range rounds {
			_ = stage.Put(s.Work("real", "new"), unix.O_WRONLY|unix.O_CREAT)
		}
	})
	for range rounds { // an even number, so both end at their own paths
		if err := swap(); err != nil {
			writer.Wait()
			return stage.Unknown(err.Error())
		}
	}
	writer.Wait()
	return stage.Put(s.Work("bait", "last"), unix.O_WRONLY|unix.O_CREAT)
}
