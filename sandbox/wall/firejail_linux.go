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
	"hone/sandbox/internal/kernel"
)

// The walls of firejail, from 0.9.72 on.
//
// What they guard: a top-level directory (or a home) in which an entry of the
// policy lies contains only entries. A command has an empty /tmp of its own, a
// /dev with harmless devices, its own processes and shared memory, and a network
// with only loopback unless the policy opens the network. It has no
// capabilities, even as root.
//
// What they do not guard:
//   - The rest of the machine, such as /etc, other homes and other top-level
//     directories, is visible. firejail makes /etc, /usr and /var read-only; the
//     keeper's Landlock denies all of it (EACCES). Without Landlock the rest is
//     as open as it is to the user.
//   - If an entry is itself a top-level directory or a home, everything in it is
//     shown, not only other entries.
//   - A hidden path in a visible directory is replaced by an empty file or
//     directory that belongs to root.
//   - A protected symlink, or a protected file that does not exist, can be
//     changed, as with bubblewrap.
//   - firejail is setuid and runs as root until the walls are built. It does not
//     end with the process that started it; the keeper ends it.
//
// What they cannot show: Policy.Tmp as /tmp (it keeps its own name), the home of
// another user, an entry in a hidden directory, and paths with characters that
// firejail rejects or reads as a pattern.
//
// firejail adds files such as .bashrc to a home in which an entry lies. It
// writes nothing to the real home.

func firejailKind() kind {
	return kind{
		level: sandbox.LevelGuarded, namespaces: true,
		args:     firejailArgs,
		install:  "apt install firejail, 0.9.72 or later (dnf, pacman and apk have the same package)",
		restrain: func(s spec) kernel.Restraint { return guardFiles(s, "/tmp", "/dev/shm", s.Policy.Tmp) },
		advice: func(spec) (string, string) {
			return "", useOther + "; firejail must be setuid, 0.9.72 or later, allow this user (man firejail-users), and not run in another sandbox"
		},
	}
}

const useOther = "use the hidden or the bwrap wall"

const (
	// maxFirejailArgs is how many arguments firejail accepts.
	maxFirejailArgs = 127
	// firejailUnfit are the characters that firejail rejects in a path or reads
	// as a pattern. It also rejects control characters and two dots.
	firejailUnfit = `\&!?"<>%^{};,*[`
)

// The keeper inherits descriptors. firejail accepts at most 255 environment variables.
func firejailArgs(program string, p sandbox.Policy, entries []sandbox.Entry, keeper []string) ([]string, error) {
	if p.Tmp != "" {
		tmp, err := filepath.EvalSymlinks(p.Tmp)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(entries, func(e sandbox.Entry) bool { return e.Path == tmp }) {
			entries = append(slices.Clip(entries), sandbox.Entry{Path: tmp, Access: sandbox.AccessWrite, Dir: true})
			slices.SortFunc(entries, func(a, b sandbox.Entry) int { return cmp.Compare(a.Path, b.Path) })
		}
	}
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
	args := slices.Concat([]string{program}, firejailSystem, paths, []string{"--"}, keeper)
	if len(args) > maxFirejailArgs {
		return nil, &sandbox.WallError{Wall: sandbox.Firejail, Reason: fmt.Sprintf("it accepts at most %d arguments, and the policy's paths need %d", maxFirejailArgs, len(args)),
			Next: "hide directories instead of single files, or use the hidden wall"}
	}
	return args, nil
}

// firejailSystem are the options that do not depend on the policy.
var firejailSystem = []string{
	"--noprofile", "--quiet", "--keep-fd=all", "--nonewprivs", "--caps.drop=all", "--noroot", "--nodbus",
	"--ipc-namespace", "--private-dev", "--deterministic-exit-code", "--deterministic-shutdown",
}

type jail struct {
	home    string
	root    bool
	entries []sandbox.Entry
	mounts  []mount
}

func (j jail) options() (args []string, err error) {
	temporary := []string{"--private-tmp"}
	for _, m := range j.mounts {
		if err := j.check(m); err != nil {
			return nil, err
		}
		if sandbox.Within("/tmp", m.Path) || m.Path == "/" {
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

// firejail cannot show such a mount, or would omit it silently.
func (j jail) check(m mount) error {
	around, in := j.around(m.Path)
	switch {
	case in && around.Kind == mountHideDir:
		return &sandbox.WallError{Wall: sandbox.Firejail, Reason: fmt.Sprintf("it cannot show %s in the hidden directory %s", m.Path, around.Path), Next: useOther}
	case m.Kind == mountWrite && !j.root && sandbox.Within("/home", m.Path) && !sandbox.Within(j.home, m.Path):
		return &sandbox.WallError{Wall: sandbox.Firejail, Reason: fmt.Sprintf("it shows only the user's own home, and %s is not in %q", m.Path, j.home), Next: useOther}
	}
	return fitsFirejail(m.Path)
}

// firejail would reject or change such a path.
func fitsFirejail(path string) error {
	unfit := strings.Contains(path, "..") || strings.ContainsAny(path, firejailUnfit) ||
		strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f })
	if !unfit {
		return nil
	}
	return &sandbox.WallError{Wall: sandbox.Firejail, Reason: fmt.Sprintf("it cannot show the path %q: it rejects control characters, two dots and any of %s", path, firejailUnfit), Next: useOther}
}

// They show its path if all around it is hidden, and set its access if that differs from what firejail gives.
func (j jail) show(m mount) (args []string) {
	around, inside := j.around(m.Path)
	if !inside && j.sealed(m.Path) {
		args = append(args, "--whitelist="+m.Path)
	}
	switch {
	case m.Kind == mountRead && m.Path != "/" && !(inSystem(m.Path) && !inside):
		args = append(args, "--read-only="+m.Path)
	case m.Kind == mountWrite && inside && around.Kind == mountWrite:
		// The first of the two makes it a mount, so that it cannot be moved.
		args = append(args, "--read-only="+m.Path, "--read-write="+m.Path)
	case m.Kind == mountWrite && (inside || inSystem(m.Path)):
		args = append(args, "--read-write="+m.Path)
	}
	return args
}

func (j jail) around(path string) (found mount, ok bool) {
	for _, m := range j.mounts {
		if m.Path != path && m.Kind != mountLink && sandbox.Within(m.Path, path) {
			found, ok = m, true
		}
	}
	return found, ok
}

// sealed reports whether the top-level directory or home of a path contains only
// entries.
func (j jail) sealed(path string) bool {
	top := j.top(path)
	for _, m := range j.mounts {
		if sandbox.Within(m.Path, top) {
			return false
		}
	}
	return path != top && !inSystem(path) && slices.ContainsFunc(j.mounts, func(m mount) bool { return j.top(m.Path) == top })
}

// seen reports whether a path would be visible if the policy did not hide it.
func (j jail) seen(path string) bool {
	_, inside := j.around(path)
	return inside || !j.sealed(path)
}

// firejail can hide everything but entries in this directory.
func (j jail) top(path string) string {
	if j.home != "" && sandbox.Within(j.home, path) {
		return j.home
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return "/" + first
}

// firejail makes these directories read-only or needs them unchanged.
func inSystem(path string) bool {
	for _, dir := range [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/dev", "/proc", "/sys", "/run"} {
		if sandbox.Within(dir, path) {
			return true
		}
	}
	return false
}
