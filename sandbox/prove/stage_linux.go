package prove

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/workshop"
)

// keyName is the variable that holds the secret, in the victim's environment.
const keyName = "HONE_PROVE_KEY"

// What an attempt may need.
const (
	setNone    set = ""        // nothing, not even the folders
	setFiles   set = "files"   // files outside, and a folder that may be written
	setGit     set = "git"     // .git/config and .git/hooks may be read only, in a folder that may be written
	setMissing set = "missing" // .config/hone.toml may be read only, and is not there
	setSecret  set = "secret"  // a file with the secret is hidden, or the folder that it lies in
)

// stage is the scene as the prover has it: what was set up, how it looked, and
// who was reached.
type stage struct {
	Scene
	all    []Attempt
	value  string // the secret
	before map[string]string
	heard  ears
	victim *victim // nil: none is needed
	undo   []func()
}

// setUp makes the scene for some attempts. Whoever gets it takes it down; an
// error leaves nothing behind.
func setUp(all []Attempt) (*stage, error) {
	dir, err := os.MkdirTemp("", "hone-prove-")
	if err != nil {
		return nil, fmt.Errorf("no folder can be made where TMPDIR says, which must name one that can be written: %w", err)
	}
	st := &stage{all: all, value: rand.Text(), before: map[string]string{}}
	st.later(func() { os.RemoveAll(dir) })
	if st.Dir, err = filepath.EvalSymlinks(dir); err == nil {
		err = st.build()
	}
	if err != nil {
		st.takeDown()
		return nil, fmt.Errorf("set up what walls are tried with: %w", err)
	}
	return st, nil
}

// later is done when the scene is taken down, last things first.
func (st *stage) later(do func()) { st.undo = append(st.undo, do) }

func (st *stage) takeDown() {
	for _, do := range slices.Backward(st.undo) {
		do()
	}
}

func (st *stage) build() error {
	st.Digest, st.Key = digest([]byte(st.value)), keyName
	st.Addr = map[string]string{}
	st.Processes, st.Memory = 120, 256<<20
	for _, step := range []func() error{st.folders, st.program, st.sites, st.identify, st.listen, st.share} {
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

func (st *stage) folders() error {
	for _, name := range []string{"outside", "work", "lib", "linked-to"} {
		if err := os.Mkdir(filepath.Join(st.Dir, name), 0o755); err != nil {
			return err
		}
	}
	return os.Symlink("linked-to", st.linked())
}

// program puts this program where commands find it: by a symlink, or as a copy
// where its file was replaced meanwhile.
func (st *stage) program() error {
	st.Program = st.lib(helperName)
	path, err := os.Executable()
	if err == nil && same(path, "/proc/self/exe") {
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

func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// sites makes each attempt's folders, outside and inside.
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

// at is the scene as an attempt sees it.
func (st *stage) at(a Attempt) Scene {
	s := st.Scene
	s.Name = a.Name
	return s
}

// files are what lies in an attempt's folders, made with the secret.
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

// links makes the links, and the empty folder, that some attempts find.
func (s Scene) links() error {
	switch s.Name {
	case "symlink-there":
		return os.Symlink(s.outside("secret"), s.work("link"))
	case "symlink-there-write":
		return os.Symlink(s.outside(), s.work("folder"))
	case "hard-link-there":
		return os.Link(s.outside("file"), s.work("hard"))
	case "remove-folder", "symlink-swapped":
		return os.Mkdir(s.outside("empty"), 0o755)
	}
	return nil
}

// policy is what some attempts run behind.
func (st *stage) policy(attempts []Attempt) sandbox.Policy {
	p := sandbox.Policy{
		Write: []string{filepath.Join(st.Dir, "work"), st.linked()},
		Read:  append(workshop.System(), st.lib()),
		Doors: []sandbox.Door{{Addr: "127.0.0.1:0", Serve: st.heard.answer("door")}},
	}
	if program, err := os.Readlink(st.Program); err == nil {
		p.Read = append(p.Read, program)
	}
	for _, a := range attempts {
		s := st.at(a)
		switch a.Set {
		case setGit:
			p.Read = append(p.Read, s.config(), s.work(".git", "hooks"))
		case setMissing:
			p.Read = append(p.Read, s.work(".config", "hone.toml"))
		case setSecret:
			p.Hide = append(p.Hide, s.guarded())
		}
	}
	if attempts[0].Alone { // they are there to be passed
		p.Limits = sandbox.Limits{Processes: st.Processes, Memory: st.Memory}
	}
	st.Shown = slices.Concat(p.Write, p.Read, []string{filepath.Join(st.Dir, "linked-to")})
	return p
}

// look is how what an attempt may not change looks, in words that are compared.
func (st *stage) look(a Attempt) string {
	s := st.at(a)
	var seen strings.Builder
	switch a.Set {
	case setGit:
		kind(&seen, s.work(".git"))
		describe(&seen, s.config(), false)
		describe(&seen, s.work(".git", "hooks"), false)
	case setMissing:
		kind(&seen, s.work(".config"))
		describe(&seen, s.work(".config", "hone.toml"), false)
	}
	describe(&seen, s.outside(), true)
	describe(&seen, s.lib("file-"+a.Name), true)
	describe(&seen, s.lib("new-"+a.Name), true)
	return seen.String()
}

// describe describes a file, or a folder and what is in it. Where it is strict
// the time of the last change counts, which nothing gets past; else what there
// is, as walls may have put it back.
func describe(to *strings.Builder, path string, strict bool) {
	_ = filepath.WalkDir(path, func(path string, _ os.DirEntry, err error) error {
		var info unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &info)
		}
		if err != nil {
			fmt.Fprintln(to, path, err)
			return nil
		}
		fmt.Fprintf(to, "%s %o", path, info.Mode)
		if strict {
			fmt.Fprint(to, " ", info.Ino, info.Nlink, info.Size, info.Ctim)
		} else if info.Mode&unix.S_IFMT == unix.S_IFREG {
			text, err := os.ReadFile(path)
			fmt.Fprint(to, " ", digest(text), err)
		}
		fmt.Fprintln(to)
		return nil
	})
}

// kind says whether a path is a file, a folder or a symlink.
func kind(to *strings.Builder, path string) {
	info, err := os.Lstat(path)
	if err != nil {
		fmt.Fprintln(to, path, err)
		return
	}
	fmt.Fprintln(to, path, info.Mode().Type())
}

// write writes the scene where attempts read it.
func (st *stage) write() (string, error) {
	text, err := json.Marshal(st.Scene)
	if err != nil {
		return "", err
	}
	path := st.lib("scene.json")
	return path, os.WriteFile(path, text, 0o644)
}
