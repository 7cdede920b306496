package prove

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// guardedAttempts returns attempts on protected and hidden paths in a writable
// directory. For those that change something only the state afterwards counts,
// because walls may restore it.
func guardedAttempts() []Attempt {
	return slices.Concat(gitConfigAttempts(), gitFolderAttempts(), missingAttempts(), cacheAttempts(), runningAttempts(), secretAttempts())
}

// git returns an attempt on a repository's configuration and hooks.
func git(name string, try func(Scene) error) Attempt {
	return Attempt{Name: name, Try: try, Outside: true, Set: setGit}
}

func gitConfigAttempts() []Attempt {
	write := git("git-config-write", func(s Scene) error { return put(s.config(), unix.O_WRONLY) })
	write.Short = true
	return []Attempt{
		write,
		git("git-config-truncate", func(s Scene) error { return unix.Truncate(s.config(), 0) }),
		git("git-config-replace", func(s Scene) error {
			if err := put(s.work("new"), unix.O_WRONLY|unix.O_CREAT); err != nil {
				return errUnknown(err.Error())
			}
			return unix.Rename(s.work("new"), s.config())
		}),
		git("git-config-remove", func(s Scene) error { return unix.Unlink(s.config()) }),
		git("git-config-chmod", func(s Scene) error { return unix.Chmod(s.config(), 0o777) }),
		git("git-config-hard-link", func(s Scene) error {
			if err := unix.Link(s.config(), s.work("hard")); err != nil {
				return err
			}
			return put(s.work("hard"), unix.O_WRONLY)
		}),
		git("git-config-descriptor", tryDescriptorWrite),
		git("git-config-map", tryMapWrite),
	}
}

func gitFolderAttempts() []Attempt {
	return []Attempt{
		git("git-directory-move", func(s Scene) error {
			if err := unix.Rename(s.work(".git"), s.work("old")); err != nil {
				return err
			}
			return s.fakeGit()
		}),
		git("git-directory-exchange", func(s Scene) error {
			if err := unix.Mkdir(s.work("new"), 0o755); err != nil {
				return errUnknown(err.Error())
			}
			return unix.Renameat2(unix.AT_FDCWD, s.work("new"), unix.AT_FDCWD, s.work(".git"), unix.RENAME_EXCHANGE)
		}),
		git("git-directory-symlink", func(s Scene) error {
			if err := unix.Rename(s.work(".git"), s.work("old")); err != nil {
				return err
			}
			return unix.Symlink("old", s.work(".git"))
		}),
		git("git-tree-move", func(s Scene) error {
			if err := unix.Rename(s.work(), s.work()+"-old"); err != nil {
				return err
			}
			if err := unix.Mkdir(s.work(), 0o755); err != nil {
				return err
			}
			return s.fakeGit()
		}),
		git("git-hook-create", func(s Scene) error {
			return put(s.work(".git", "hooks", "pre-commit"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		}),
		git("git-hook-write", func(s Scene) error { return put(s.work(".git", "hooks", "sample"), unix.O_WRONLY) }),
		git("git-hook-chmod", func(s Scene) error { return unix.Chmod(s.work(".git", "hooks", "sample"), 0o755) }),
		git("git-hooks-move", func(s Scene) error { return unix.Rename(s.work(".git", "hooks"), s.work(".git", "old")) }),
	}
}

// cacheAttempts returns attempts on a directory of which there is an overlay, or which
// is read-only behind walls without overlays.
func cacheAttempts() []Attempt {
	return []Attempt{
		{Name: "cache-write", Outside: true, Set: setCache, Try: func(s Scene) error { return put(s.cache("file"), unix.O_WRONLY) }},
		{Name: "cache-chmod", Outside: true, Set: setCache, Try: func(s Scene) error { return unix.Chmod(s.cache("file"), 0o755) }},
		{Name: "cache-remove", Outside: true, Set: setCache, Try: func(s Scene) error {
			if err := unix.Unlink(s.cache("dir", "file")); err != nil {
				return err
			}
			return unix.Rmdir(s.cache("dir"))
		}},
	}
}

func missingAttempts() []Attempt {
	return []Attempt{
		{Name: "missing-file-create", Outside: true, Set: setMissing, Try: func(s Scene) error {
			return put(s.work(".config", "hone.toml"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		}},
		{Name: "missing-file-symlink", Outside: true, Set: setMissing, Try: func(s Scene) error {
			if err := put(s.work("mine"), unix.O_WRONLY|unix.O_CREAT); err != nil {
				return errUnknown(err.Error())
			}
			return unix.Symlink("../mine", s.work(".config", "hone.toml"))
		}},
		{Name: "missing-file-directory", Outside: true, Set: setMissing, Try: func(s Scene) error {
			if err := unix.Rename(s.work(".config"), s.work("old")); err != nil {
				return err
			}
			if err := unix.Mkdir(s.work(".config"), 0o755); err != nil {
				return err
			}
			return put(s.work(".config", "hone.toml"), unix.O_WRONLY|unix.O_CREAT)
		}},
	}
}

// runningAttempts returns attempts that matter while the command runs: the user's
// programs could read such a file, and another process could answer.
func runningAttempts() []Attempt {
	return []Attempt{
		{Name: "missing-file-meanwhile", Set: setMissing, Try: func(s Scene) error {
			if err := put(s.work(".config", "hone.toml"), unix.O_WRONLY|unix.O_CREAT); err != nil {
				return err
			}
			return open(s.work(".config", "hone.toml"), unix.O_RDONLY)
		}},
		{Name: "workspace-socket", Set: setEndpoint, Try: func(s Scene) error {
			if _, err := s.addr(); err != nil {
				return err
			}
			return connectPath(s.endpoint(), unix.SOCK_STREAM)
		}},
		{Name: "workspace-fifo", Set: setEndpoint, Try: func(s Scene) error { return open(s.endpoint(), unix.O_WRONLY|unix.O_NONBLOCK) }},
	}
}

func secretAttempts() []Attempt {
	secret := func(name string, try func(Scene) error) Attempt {
		return Attempt{Name: name, Try: try, Set: setSecret}
	}
	read := secret("hidden-read", func(s Scene) error { return s.readSecret(s.work(".env")) })
	read.Short = true
	return []Attempt{
		read,
		secret("hidden-hard-link", func(s Scene) error {
			if err := unix.Link(s.work(".env"), s.work("hard")); err != nil {
				return err
			}
			return s.readSecret(s.work("hard"))
		}),
		secret("hidden-rename", func(s Scene) error {
			if err := unix.Rename(s.work(".env"), s.work("plain")); err != nil {
				return err
			}
			return s.readSecret(s.work("plain"))
		}),
		secret("hidden-directory-rename", func(s Scene) error {
			if err := unix.Rename(s.work("sub"), s.work("sub2")); err != nil {
				return err
			}
			return s.readSecret(s.work("sub2", ".env"))
		}),
		secret("hidden-sendfile", trySendfile),
		secret("hidden-chmod", func(s Scene) error {
			if err := unix.Chmod(s.work(".env"), 0o666); err != nil {
				return err
			}
			return s.readSecret(s.work(".env"))
		}),
		secret("hidden-list", func(s Scene) error { return s.listHidden(s.work("secrets")) }),
		secret("hidden-slash", func(s Scene) error { return s.listHidden(s.work("secrets") + "/") }),
		secret("hidden-inner", func(s Scene) error { return s.readSecret(s.work("secrets", "key")) }),
		secret("hidden-case", func(s Scene) error { return s.readSecret(s.work(".ENV")) }),
		secret("hidden-up", func(s Scene) error { return s.readSecret(s.work() + "/../" + s.Name + "/./.env") }),
		secret("hidden-create", func(s Scene) error {
			return put(s.work("secrets", "new"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		}),
		secret("hidden-umount", func(s Scene) error {
			return onThread(func() error {
				if err := unix.Unmount(s.work(".env"), unix.MNT_DETACH); err != nil {
					return err
				}
				return s.readSecret(s.work(".env"))
			})
		}),
	}
}

// fakeGit makes another .git.
func (s Scene) fakeGit() error {
	if err := unix.Mkdir(s.work(".git"), 0o755); err != nil {
		return err
	}
	return put(s.config(), unix.O_WRONLY|unix.O_CREAT)
}

// listHidden lists a directory whose only file must not be visible.
func (s Scene) listHidden(path string) error {
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) == 0 {
		return errHeld("it is empty")
	}
	return err
}

// tryDescriptorWrite opens a file for reading, and again for writing through its
// descriptor.
func tryDescriptorWrite(s Scene) error {
	fd, err := unix.Open(s.config(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return put(descriptor(fd), unix.O_WRONLY)
}

// tryMapWrite maps a file that is open for reading, and makes the memory writable.
func tryMapWrite(s Scene) error {
	fd, err := unix.Open(s.config(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	memory, err := unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(memory) }()
	if err := unix.Mprotect(memory, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return err
	}
	memory[0] = '#'
	return nil
}

func trySendfile(s Scene) error {
	from, err := unix.Open(s.work(".env"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	to, err := unix.Open(s.work("copy"), unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return errUnknown(err.Error())
	}
	defer unix.Close(to)
	if _, err := unix.Sendfile(to, from, nil, 1<<16); err != nil {
		return err
	}
	return s.readSecret(s.work("copy"))
}
