package wall

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// firejailUnfit are the characters that firejail rejects in a path or reads as a pattern.
const firejailUnfit = `\&!?"<>%^{};,*[`

var firejailSystem = []string{
	"--noprofile", "--quiet", "--keep-fd=all", "--nonewprivs", "--caps.drop=all", "--noroot", "--nodbus",
	"--ipc-namespace", "--private-dev", "--keep-var-tmp", "--deterministic-exit-code", "--deterministic-shutdown",
}

// firejailArgs returns the command line with which firejail (0.9.72 or later) shows the entries, hides the rest of
// their top-level directories and homes, and runs the supervisor, which inherits descriptors.
func firejailArgs(program string, p sandbox.Policy, entries []sandbox.Entry, supervisor []string) ([]string, error) {
	j := jail{root: os.Getuid() == 0, entries: entries, mounts: mounts(entries)}
	if u, err := user.Current(); err == nil && u.HomeDir != "/" {
		j.home = filepath.Clean(u.HomeDir) // as firejail sees it
	}
	paths, err := j.options()
	if err != nil {
		return nil, err
	}
	if !p.Net {
		paths = append([]string{"--net=none"}, paths...)
	}
	return slices.Concat([]string{program}, firejailSystem, paths, []string{"--"}, supervisor), nil
}

type jail struct {
	home            string
	root            bool
	entries, mounts []sandbox.Entry
}

// It refuses what firejail would omit silently.
func (j jail) options() (args []string, err error) {
	places := sandbox.PlacesOf(j.mounts)
	hidden := slices.DeleteFunc(slices.Clone(j.entries), func(e sandbox.Entry) bool {
		inside := places.Around(e.Path).Path != ""
		return e.Access != sandbox.AccessNone || e.Absent || !inside && j.sealed(e.Path)
	})
	for _, e := range slices.Concat(j.mounts, hidden) {
		unfit := func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(firejailUnfit, r) }
		if strings.Contains(e.Path, "..") || strings.ContainsFunc(e.Path, unfit) {
			return nil, cannotShow("the path %q: it rejects control characters, two dots and any of %s", e.Path, firejailUnfit)
		}
	}
	temporary := []string{"--private-tmp"}
	for _, m := range j.mounts {
		around := places.Around(m.Path)
		inside := around.Path != ""
		switch {
		case inside && around.Access == sandbox.AccessNone:
			return nil, cannotShow("%s in the hidden directory %s", m.Path, around.Path)
		case m.Access == sandbox.AccessWrite && !j.root && sandbox.Within("/home", m.Path) && !sandbox.Within(j.home, m.Path):
			return nil, cannotShow("%s, which is not in the user's own home %q", m.Path, j.home)
		}
		if sandbox.Within("/tmp", m.Path) || m.Path == "/" {
			temporary = nil
		}
		if !inside && j.sealed(m.Path) {
			args = append(args, "--whitelist="+m.Path)
		}
		switch {
		case m.Link != "" || m.Access == sandbox.AccessNone:
		case m.Access == sandbox.AccessRead && m.Path != "/" && (inside || !inSystem(m.Path)):
			args = append(args, "--read-only="+m.Path)
		case m.Access == sandbox.AccessWrite && inside && around.Access == sandbox.AccessWrite:
			// The first of the two makes it a mount, so that it cannot be moved.
			args = append(args, "--read-only="+m.Path, "--read-write="+m.Path)
		case m.Access == sandbox.AccessWrite && (inside || inSystem(m.Path) || sandbox.Within("/var", m.Path)):
			args = append(args, "--read-write="+m.Path)
		}
	}
	for _, e := range hidden {
		args = append(args, "--blacklist="+e.Path)
	}
	return append(temporary, args...), nil
}

func cannotShow(what string, args ...any) error {
	return &sandbox.WallError{Wall: sandbox.Firejail, Reason: "it cannot show " + fmt.Sprintf(what, args...), Next: useOther}
}

// sealed reports whether the top-level directory or home of a path contains only entries.
func (j jail) sealed(path string) bool {
	top := func(path string) string {
		if j.home != "" && sandbox.Within(j.home, path) {
			return j.home
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		return "/" + first
	}
	beside := func(m sandbox.Entry) bool { return top(m.Path) == top(path) }
	around := func(m sandbox.Entry) bool { return sandbox.Within(m.Path, top(path)) }
	return path != top(path) && !inSystem(path) && slices.ContainsFunc(j.mounts, beside) && !slices.ContainsFunc(j.mounts, around)
}

// firejail makes these directories read-only or needs them unchanged.
func inSystem(path string) bool {
	return slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/dev", "/proc", "/sys", "/run"},
		func(dir string) bool { return sandbox.Within(dir, path) })
}
