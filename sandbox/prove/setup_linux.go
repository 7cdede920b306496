package prove

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// setUp makes the scene for some attempts. The caller must take it down. An error
// leaves nothing behind.
func setUp(all []Attempt) (*stage, error) {
	dir, err := os.MkdirTemp("", "hone-prove-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory; TMPDIR must name a writable one: %w", err)
	}
	st := &stage{all: all, value: rand.Text(), before: map[string]string{}}
	st.atEnd(func() { os.RemoveAll(dir) })
	if st.Dir, err = filepath.EvalSymlinks(dir); err == nil {
		err = st.build()
	}
	if err != nil {
		st.takeDown()
		return nil, fmt.Errorf("set up the scene for the attempts: %w", err)
	}
	return st, nil
}

// build makes everything in the scene.
func (st *stage) build() error {
	st.Digest, st.Key = digest([]byte(st.value)), keyName
	st.Addr = map[string]string{}
	st.Processes, st.Memory = 120, 256<<20
	for _, step := range []func() error{st.directories, st.program, st.sites, st.identify, st.listen, st.share} {
		if err := step(); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(st.all, func(a Attempt) bool { return !a.Short }) {
		if err := st.startVictim(); err != nil {
			return err
		}
	}
	for _, a := range st.all {
		st.before[a.Name] = st.look(a)
	}
	return nil
}

// directories makes the directories of the scene.
func (st *stage) directories() error {
	for _, name := range []string{"outside", "work", "lib", "linked-to"} {
		if err := os.Mkdir(filepath.Join(st.Dir, name), 0o755); err != nil {
			return err
		}
	}
	return os.Symlink("linked-to", st.linked())
}

// program makes this program visible to attempts: by a symlink, or by a copy if
// its file was replaced since it started.
func (st *stage) program() error {
	st.Program = st.lib(helperName)
	path, err := os.Executable()
	if err == nil && sameFile(path, "/proc/self/exe") {
		return os.Symlink(path, st.Program)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(st.Program, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// sites makes the directories of each attempt, outside and inside.
func (st *stage) sites() error {
	for _, a := range st.all {
		if a.Set == setNone {
			continue
		}
		s := st.at(a)
		if err := os.Mkdir(s.work(), 0o755); err != nil {
			return err
		}
		for path, text := range s.files(a.Set) {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(text(st.value)), 0o600); err != nil {
				return err
			}
		}
		if err := s.links(); err != nil {
			return err
		}
	}
	return nil
}

// files returns the files in an attempt's directories, with functions that return
// their contents for a secret.
func (s Scene) files(of set) map[string]func(secret string) string {
	secret := func(secret string) string { return secret }
	text := func(text string) func(string) string { return func(string) string { return text } }
	files := map[string]func(string) string{}
	switch of {
	case setFiles:
		files[s.outside("secret")] = secret
		files[s.outside("file")] = text("untouched\n")
	case setGit:
		files[s.config()] = text("[core]\n")
		files[s.work(".git", "hooks", "sample")] = text("#!/bin/sh\n")
	case setMissing:
		files[s.work(".config", "other")] = text("untouched\n")
	case setSecret:
		files[s.hidden()] = secret
	case setCache:
		files[s.cache("file")] = text("untouched\n")
		files[s.cache("dir", "file")] = text("untouched\n")
	}
	switch s.Name {
	case "move-out":
		files[s.work("mine")] = text("untouched\n")
	case "write-readable", "chmod-readable":
		files[s.lib("file-"+s.Name)] = text("untouched\n")
	case "git-outside", "git-dir-outside":
		files[s.outside(".git", "config")] = func(secret string) string {
			return "[core]\n\trepositoryformatversion = 0\n[hone]\n\tsecret = " + secret + "\n"
		}
		files[s.outside(".git", "HEAD")] = text("ref: refs/heads/main\n")
		files[s.outside(".git", "objects", "none")] = text("")
		files[s.outside(".git", "refs", "none")] = text("")
	}
	return files
}

// links makes the links and the empty directory that some attempts need.
func (s Scene) links() error {
	switch s.Name {
	case "symlink-there":
		return os.Symlink(s.outside("secret"), s.work("link"))
	case "symlink-there-write":
		return os.Symlink(s.outside(), s.work("folder"))
	case "hard-link-there":
		return os.Link(s.outside("file"), s.work("hard"))
	case "remove-directory", "symlink-swapped":
		return os.Mkdir(s.outside("empty"), 0o755)
	}
	return nil
}
