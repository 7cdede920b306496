package table

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/prove/table/stage"
)

// guardedAttempts returns attempts on protected and hidden paths in a writable
// directory. For those that change something only the state afterwards counts,
// because walls may restore it.
func guardedAttempts() []attempt {
	return slices.Concat(gitConfigAttempts(), gitFolderAttempts(), missingAttempts(), cacheAttempts(), runningAttempts(), secretAttempts())
}

// git returns an attempt on a repository's configuration and hooks.
func git(name string, try func(scene) error) attempt { return stage.Git(attempt{Name: name, Try: try}) }

func config(s scene) string { return s.Work(".git", "config") }

func gitConfigAttempts() []attempt {
	return []attempt{
		git("git-config-truncate", func(s scene) error { return unix.Truncate(config(s), 0) }),
		git("git-config-replace", func(s scene) error {
			if err := stage.Put(s.Work("new"), unix.O_WRONLY|unix.O_CREAT); err != nil {
				return stage.Unknown(err.Error())
			}
			return unix.Rename(s.Work("new"), config(s))
		}),
		git("git-config-remove", func(s scene) error { return unix.Unlink(config(s)) }),
		git("git-config-chmod", func(s scene) error { return unix.Chmod(config(s), 0o777) }),
		git("git-config-hard-link", func(s scene) error {
			if err := unix.Link(config(s), s.Work("hard")); err != nil {
				return err
			}
			return stage.Put(s.Work("hard"), unix.O_WRONLY)
		}),
		git("git-config-descriptor", tryDescriptorWrite),
		git("git-config-map", tryMapWrite),
	}
}

func gitFolderAttempts() []attempt {
	return []attempt{
		git("git-directory-exchange", func(s scene) error {
			if err := unix.Mkdir(s.Work("new"), 0o755); err != nil {
				return stage.Unknown(err.Error())
			}
			return unix.Renameat2(unix.AT_FDCWD, s.Work("new"), unix.AT_FDCWD, s.Work(".git"), unix.RENAME_EXCHANGE)
		}),
		git("git-directory-symlink", func(s scene) error {
			if err := unix.Rename(s.Work(".git"), s.Work("old")); err != nil {
				return err
			}
			return unix.Symlink("old", s.Work(".git"))
		}),
		git("git-tree-move", func(s scene) error {
			if err := unix.Rename(s.Work(), s.Work()+"-old"); err != nil {
				return err
			}
			if err := unix.Mkdir(s.Work(), 0o755); err != nil {
				return err
			}
			return s.Write(config(s), "crossed\n")
		}),
		git("git-hook-create", func(s scene) error {
			return stage.Put(s.Work(".git", "hooks", "pre-commit"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		}),
		git("git-hook-write", func(s scene) error { return stage.Put(s.Work(".git", "hooks", "sample"), unix.O_WRONLY) }),
		git("git-hook-chmod", func(s scene) error { return unix.Chmod(s.Work(".git", "hooks", "sample"), 0o755) }),
		git("git-hooks-move", func(s scene) error { return unix.Rename(s.Work(".git", "hooks"), s.Work(".git", "old")) }),
	}
}

// cacheAttempts returns attempts on a directory of which there is an overlay, or which
// is read-only behind walls without overlays.
func cacheAttempts() []attempt {
	return []attempt{
		stage.Cache(attempt{Name: "cache-chmod", Try: func(s scene) error { return unix.Chmod(s.Cache("file"), 0o755) }}),
		stage.Cache(attempt{Name: "cache-remove", Try: func(s scene) error {
			if err := unix.Unlink(s.Cache("dir", "file")); err != nil {
				return err
			}
			return unix.Rmdir(s.Cache("dir"))
		}}),
	}
}

func missingAttempts() []attempt {
	return []attempt{
		stage.Missing(attempt{Name: "missing-file-symlink", Outside: true, Try: func(s scene) error {
			if err := stage.Put(s.Work("mine"), unix.O_WRONLY|unix.O_CREAT); err != nil {
				return stage.Unknown(err.Error())
			}
			return unix.Symlink("../mine", s.Work(".config", "hone.toml"))
		}}),
		stage.Missing(attempt{Name: "missing-file-directory", Outside: true, Try: func(s scene) error {
			if err := unix.Rename(s.Work(".config"), s.Work("old")); err != nil {
				return err
			}
			if err := unix.Mkdir(s.Work(".config"), 0o755); err != nil {
				return err
			}
			return stage.Put(s.Work(".config", "hone.toml"), unix.O_WRONLY|unix.O_CREAT)
		}}),
	}
}

// runningAttempts returns attempts that matter while the command runs: the user's
// programs could read such a file, and another process could answer.
func runningAttempts() []attempt {
	return []attempt{
		stage.Missing(attempt{Name: "missing-file-meanwhile", Try: func(s scene) error {
			if err := stage.Put(s.Work(".config", "hone.toml"), unix.O_WRONLY|unix.O_CREAT); err != nil {
				return err
			}
			return stage.Open(s.Work(".config", "hone.toml"), unix.O_RDONLY)
		}}),
		{
			Name: "workspace-fifo",
			Prepare: func(st *stage.Stage, s scene) (string, error) {
				if err := unix.Mkfifo(s.Work("endpoint"), 0o600); err != nil {
					return "", stage.Unknown(err.Error())
				}
				f, err := os.OpenFile(s.Work("endpoint"), os.O_RDWR, 0) // both ends, so that the attempt never waits
				if err == nil {
					st.AtEnd(func() { f.Close() })
				}
				return "", err
			},
			Policy: func(s scene, p *sandbox.Policy) { p.Hide = append(p.Hide, s.Work("endpoint")) },
			Try:    func(s scene) error { return stage.Open(s.Work("endpoint"), unix.O_WRONLY|unix.O_NONBLOCK) },
		},
	}
}

func secretAttempts() []attempt {
	hidden := func(name, file, hide string, try func(scene) error) attempt {
		return stage.Secret(attempt{Name: name, Try: try}, file, hide)
	}
	secret := func(name string, try func(scene) error) attempt { return hidden(name, ".env", ".env", try) }
	return []attempt{
		secret("hidden-hard-link", func(s scene) error {
			if err := unix.Link(s.Work(".env"), s.Work("hard")); err != nil {
				return err
			}
			return s.ReadSecret(s.Work("hard"))
		}),
		secret("hidden-rename", func(s scene) error {
			if err := unix.Rename(s.Work(".env"), s.Work("plain")); err != nil {
				return err
			}
			return s.ReadSecret(s.Work("plain"))
		}),
		hidden("hidden-directory-rename", "sub/.env", "sub/.env", func(s scene) error {
			if err := unix.Rename(s.Work("sub"), s.Work("sub2")); err != nil {
				return err
			}
			return s.ReadSecret(s.Work("sub2", ".env"))
		}),
		secret("hidden-sendfile", trySendfile),
		secret("hidden-chmod", func(s scene) error {
			if err := unix.Chmod(s.Work(".env"), 0o666); err != nil {
				return err
			}
			return s.ReadSecret(s.Work(".env"))
		}),
		hidden("hidden-slash", "secrets/key", "secrets/", func(s scene) error {
			entries, err := os.ReadDir(s.Work("secrets") + "/")
			if err == nil && len(entries) == 0 {
				return stage.Held("it is empty")
			}
			return err
		}),
		hidden("hidden-inner", "secrets/key", "secrets", func(s scene) error { return s.ReadSecret(s.Work("secrets", "key")) }),
		secret("hidden-case", func(s scene) error { return s.ReadSecret(s.Work(".ENV")) }),
		secret("hidden-up", func(s scene) error { return s.ReadSecret(s.Work() + "/../" + s.Name + "/./.env") }),
		hidden("hidden-create", "secrets/key", "secrets", func(s scene) error {
			return stage.Put(s.Work("secrets", "new"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		}),
		secret("hidden-umount", stage.Threaded(func(s scene) error {
			if err := unix.Unmount(s.Work(".env"), unix.MNT_DETACH); err != nil {
				return err
			}
			return s.ReadSecret(s.Work(".env"))
		})),
	}
}

// tryDescriptorWrite opens a file for reading, and again for writing through its
// descriptor.
func tryDescriptorWrite(s scene) error {
	fd, err := unix.Open(config(s), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return stage.Put(descriptor(fd), unix.O_WRONLY)
}

// tryMapWrite maps a file that is open for reading, and makes the memory writable.
func tryMapWrite(s scene) error {
	fd, err := unix.Open(config(s), unix.O_RDONLY|unix.O_CLOEXEC, 0)
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

func trySendfile(s scene) error {
	from, err := unix.Open(s.Work(".env"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	to, err := unix.Open(s.Work("copy"), unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return stage.Unknown(err.Error())
	}
	defer unix.Close(to)
	if _, err := unix.Sendfile(to, from, nil, 1<<16); err != nil {
		return err
	}
	return s.ReadSecret(s.Work("copy"))
}
