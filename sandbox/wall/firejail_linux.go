package wall

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// The walls of firejail, from 0.9.72 on.
//
// What they guard: beside an entry of the policy, below the same top-level
// folder (or in the same home), there is nothing but other entries; a command
// has an empty /tmp of its own, a /dev with the harmless devices, processes and
// shared memory of its own, and a network with nothing but loopback, unless the
// policy opens it. It has no capabilities, as root either.
//
// What they do not guard:
//   - The rest of the machine, such as /etc, a home in which no entry lies, and
//     other top-level folders, is there and as open as it is to the user, but for
//     what firejail makes read-only (/etc, /usr, /var). The keeper's Landlock
//     makes that EACCES; without Landlock it stays open.
//   - An entry that is itself a top-level folder or a home is shown as it is,
//     with all that lies beside other entries in it.
//   - A hidden path in a folder that is shown has its place taken by an empty
//     file or folder of root's.
//   - A protected symlink, or a protected file that does not exist, can be
//     changed, as with bubblewrap.
//   - firejail is setuid, and runs as root until the walls stand. It does not
//     end with the process that started it; the keeper sees to that.
//
// What they cannot show: [Policy.Tmp] as /tmp; it is shown under its own name.
// The home of another user. What is shown in a hidden folder. Paths with
// characters that firejail rejects or takes for a pattern.
//
// A home in which an entry lies is seen with a .bashrc and the like that
// firejail made up; nothing is written to the real one.

// mostFirejailArgs is how many arguments firejail takes, and
// firejailUnfit what it rejects in a path or takes for a pattern, beside
// control characters and two dots.
const (
	mostFirejailArgs = 127
	firejailUnfit    = `\&!?"<>%^{};,*[`
)

// firejailArgs is the command line of firejail that shows the entries of a
// policy and runs the keeper behind the walls. Descriptors that can be
// inherited reach the keeper. firejail takes no more than 255 variables of
// environment.
func firejailArgs(program string, p sandbox.Policy, entries []sandbox.Entry, keeper []string) ([]string, error) {
	entries, err := withTmp(entries, p.Tmp)
	if err != nil {
		return nil, err
	}
	j := jail{home: ownHome(), root: os.Getuid() == 0, entries: entries, mounts: mounts(entries)}
	paths, err := j.options()
	if err != nil {
		return nil, err
	}
	args := []string{program}
	args = append(args, firejailSystem...)
	if !p.Net {
		args = append(args, "--net=none")
	}
	args = append(args, paths...)
	args = append(append(args, "--"), keeper...)
	if len(args) > mostFirejailArgs {
		return nil, &sandbox.WallError{Wall: sandbox.Firejail, Reason: fmt.Sprintf("it takes %d arguments at most, and showing and hiding so many paths needs %d", mostFirejailArgs, len(args)),
			Next: "hide folders in the place of single files, or use the wall hidden"}
	}
	return args, nil
}

// firejailSystem are the options that do not depend on the policy.
var firejailSystem = []string{
	"--noprofile", "--quiet", "--keep-fd=all", "--nonewprivs", "--caps.drop=all", "--noroot", "--nodbus",
	"--ipc-namespace", "--private-dev", "--deterministic-exit-code", "--deterministic-shutdown",
}

// withTmp are entries with the folder for temporary files among them.
func withTmp(entries []sandbox.Entry, tmp string) ([]sandbox.Entry, error) {
	if tmp == "" {
		return entries, nil
	}
	real, err := filepath.EvalSymlinks(tmp)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Path == real {
			return entries, nil
		}
	}
	entries = append(slices.Clip(entries), sandbox.Entry{Path: real, Access: sandbox.AccessWrite, Dir: true})
	slices.SortFunc(entries, func(a, b sandbox.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return entries, nil
}

// ownHome is this user's home as firejail sees it; empty means none.
func ownHome() string {
	u, err := user.Current()
	if err != nil || u.HomeDir == "/" {
		return ""
	}
	return filepath.Clean(u.HomeDir)
}

// jail turns entries into options.
type jail struct {
	home    string
	root    bool
	entries []sandbox.Entry
	mounts  []mount
}

// options are the options for all paths.
func (j jail) options() (args []string, err error) {
	temporary := []string{"--private-tmp"}
	for _, m := range j.mounts {
		if err := j.check(m); err != nil {
			return nil, err
		}
		if sandbox.Holds("/tmp", m.Path) || m.Path == "/" {
			temporary = nil
		}
		args = append(args, j.show(m)...)
	}
	for _, e := range j.entries {
		if e.Access != sandbox.AccessNone || e.Absent || !j.seen(e.Path) {
			continue
		}
		if err := fitsFirejail(e.Path); err != nil {
			return nil, err
		}
		args = append(args, "--blacklist="+e.Path)
	}
	return append(temporary, args...), nil
}

// check refuses what firejail cannot show, or would leave out silently.
func (j jail) check(m mount) error {
	around, in := j.around(m.Path)
	switch {
	case in && around.Kind == mountHideDir:
		return &sandbox.WallError{Wall: sandbox.Firejail, Reason: fmt.Sprintf("it cannot show %s in the hidden folder %s", m.Path, around.Path), Next: "use the wall hidden or bwrap"}
	case m.Kind == mountWrite && !j.root && sandbox.Holds("/home", m.Path) && !sandbox.Holds(j.home, m.Path):
		return &sandbox.WallError{Wall: sandbox.Firejail, Reason: fmt.Sprintf("it shows nobody's home but one's own, and %s is not below %q", m.Path, j.home), Next: "use the wall hidden or bwrap"}
	}
	return fitsFirejail(m.Path)
}

// fitsFirejail refuses a path that would not arrive as it is.
func fitsFirejail(path string) error {
	unfit := strings.Contains(path, "..") || strings.ContainsAny(path, firejailUnfit) ||
		strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f })
	if !unfit {
		return nil
	}
	return &sandbox.WallError{Wall: sandbox.Firejail, Reason: fmt.Sprintf("it takes no path such as %q: control characters, two dots and any of %s", path, firejailUnfit), Next: "use the wall hidden or bwrap"}
}

// show are the options for what is mounted. Its place is shown where everything
// beside it is to vanish; its access is changed where it would be another.
func (j jail) show(m mount) (args []string) {
	around, inside := j.around(m.Path)
	if !inside && j.sealed(m.Path) {
		args = append(args, "--whitelist="+m.Path)
	}
	switch {
	case m.Kind == mountRead && m.Path != "/" && !(systemFolder(m.Path) && !inside):
		args = append(args, "--read-only="+m.Path)
	case m.Kind == mountWrite && inside && around.Kind == mountWrite:
		// Held in place: made a mount, which only the first of the two does.
		args = append(args, "--read-only="+m.Path, "--read-write="+m.Path)
	case m.Kind == mountWrite && (inside || systemFolder(m.Path)):
		args = append(args, "--read-write="+m.Path)
	}
	return args
}

// around is the innermost mount in which a path lies.
func (j jail) around(path string) (found mount, ok bool) {
	for _, m := range j.mounts {
		if m.Path != path && m.Kind != mountLink && sandbox.Holds(m.Path, path) {
			found, ok = m, true
		}
	}
	return found, ok
}

// sealed reports whether the top-level folder, or home, of a path is one in
// which nothing is there but entries.
func (j jail) sealed(path string) bool {
	top := j.top(path)
	for _, m := range j.mounts {
		if sandbox.Holds(m.Path, top) {
			return false
		}
	}
	return path != top && !systemFolder(path) && slices.ContainsFunc(j.mounts, func(m mount) bool { return j.top(m.Path) == top })
}

// seen reports whether a hidden path would be seen if it were not hidden.
func (j jail) seen(path string) bool {
	_, inside := j.around(path)
	return inside || !j.sealed(path)
}

// top is the folder of a path that firejail can empty but for what is shown.
func (j jail) top(path string) string {
	if j.home != "" && sandbox.Holds(j.home, path) {
		return j.home
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return "/" + first
}

// systemFolder reports whether a path lies in a folder that firejail makes
// read-only, or needs as it is.
func systemFolder(path string) bool {
	for _, dir := range [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/dev", "/proc", "/sys", "/run"} {
		if sandbox.Holds(dir, path) {
			return true
		}
	}
	return false
}

// findFirejail is the path of firejail. The error is a [*WallError].
func findFirejail() (string, error) {
	return findWrapper(sandbox.Firejail, "apt install firejail (dnf, pacman and apk call it so too), 0.9.72 or later")
}
