package prove

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/workshop"
)

// stage is the scene with what only the prover knows: the secret, the state before
// the attempts, and which servers were reached.
type stage struct {
	Scene
	all      []Attempt
	value    string            // the secret
	before   map[string]string // the state before the attempts, by their names
	contacts contacts
	victim   *victim // nil if no attempt needs one
	undo     []func()
}

// atEnd registers a function for takeDown, which calls them in reverse order.
func (st *stage) atEnd(do func()) { st.undo = append(st.undo, do) }

// takeDown removes the scene.
func (st *stage) takeDown() {
	for _, do := range slices.Backward(st.undo) {
		do()
	}
}

// at returns the scene of an attempt.
func (st *stage) at(a Attempt) Scene {
	s := st.Scene
	s.Name = a.Name
	return s
}

// policy returns the policy of the walls around some attempts.
func (st *stage) policy(attempts []Attempt) sandbox.Policy {
	p := sandbox.Policy{
		Write: []string{filepath.Join(st.Dir, "work"), st.linked()},
		Read:  append(workshop.System(), st.lib()),
		Doors: []sandbox.Door{{Addr: "127.0.0.1:0", Serve: st.contacts.answer("door")}},

		Placeholders: map[string]sandbox.Placeholder{},
		Aside:        filepath.Join(st.Dir, "aside"),
		Records:      filepath.Join(st.Dir, "records"),
		Layers:       filepath.Join(st.Dir, "layers"),
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
			p.Placeholders[s.work(".config", "hone.toml")] = sandbox.Placeholder{}
		case setSecret:
			p.Hide = append(p.Hide, s.guarded())
		case setCache:
			p.Read = append(p.Read, s.cache())
			p.Overlays = append(p.Overlays, sandbox.Overlay{Path: s.cache(), Lower: s.cache()})
		case setEndpoint:
			p.Hide = append(p.Hide, s.endpoint())
		}
	}
	if attempts[0].Alone { // some of these exceed the limits
		p.Limits = sandbox.Limits{Processes: st.Processes, Memory: st.Memory}
	}
	st.Shown = slices.Concat(p.Write, p.Read, []string{filepath.Join(st.Dir, "linked-to")})
	return p
}

// look describes the state of what an attempt must not change, for comparison.
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
	case setCache:
		describe(&seen, s.cache(), true)
	}
	describe(&seen, s.outside(), true)
	describe(&seen, s.lib("file-"+a.Name), true)
	describe(&seen, s.lib("new-"+a.Name), true)
	return seen.String()
}

// describe describes a file, or a directory with its contents. If strict is set
// it includes the time of the last change, which no program can set; otherwise
// the contents, because walls may have restored them.
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

// kind describes whether a path is a file, a directory or a symlink.
func kind(to *strings.Builder, path string) {
	info, err := os.Lstat(path)
	if err != nil {
		fmt.Fprintln(to, path, err)
		return
	}
	fmt.Fprintln(to, path, info.Mode().Type())
}

// write writes the scene to a file that attempts can read, and returns its path.
func (st *stage) write() (string, error) {
	text, err := json.Marshal(st.Scene)
	if err != nil {
		return "", err
	}
	path := st.lib("scene.json")
	return path, os.WriteFile(path, text, 0o644)
}
