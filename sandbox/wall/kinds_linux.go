package wall

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
)

// kind is how one wall differs from the others.
type kind struct {
	wall sandbox.Wall
	// args returns the command line with which another program, which has the
	// wall's name, builds the wall and runs the supervisor behind it, and which may have
	// maxArgs arguments; nil if no other program is needed. install tells the user how to get it.
	args    func(program string, p sandbox.Policy, entries []sandbox.Entry, supervisor []string) ([]string, error)
	maxArgs int
	install string
	// next is what the user can do if the wall cannot be built here.
	next string
}

const (
	useOther  = "use the hidden or the bwrap wall"
	allowUser = "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns; " +
		"an AppArmor profile of bwrap; in a container its settings), or use the landlock wall"
)

// kinds are the walls of this system, the strongest first.
var kinds = []kind{
	{wall: sandbox.Hidden, next: allowUser},
	{
		wall: sandbox.Bubblewrap, args: bwrapArgs, maxArgs: 9000, next: allowUser,
		install: "apt install bubblewrap (dnf, pacman and apk have the same package)",
	},
	{wall: sandbox.Landlock, next: kernel.LandlockAdvice},
	{
		wall: sandbox.Firejail, args: firejailArgs, maxArgs: 127,
		install: "apt install firejail, 0.9.72 or later (dnf, pacman and apk have the same package)",
		next:    useOther + "; firejail must be setuid, 0.9.72 or later, allow this user (man firejail-users), and not run in another sandbox",
	},
	{wall: sandbox.NoWall},
}

// Kinds returns the walls of this system, the strongest first, even if some cannot
// be built here. Nil means that it has none.
func Kinds() []sandbox.Wall {
	var walls []sandbox.Wall
	for _, k := range kinds {
		if k.wall != sandbox.NoWall {
			walls = append(walls, k.wall)
		}
	}
	return walls
}

// spec tells a supervisor what to do: the policy, and what is known of it in this process only.
type spec struct {
	Policy  sandbox.Policy  // Layers is the directory for this command
	Entries []sandbox.Entry // of the policy, with what covers them
	// Outside are the namespaces of the process that built the walls, by kind.
	Outside map[string]string
	program string // builds the wall; empty if none is needed
	// Wrapper is the command line of the program that builds the wall and runs
	// the supervisor; empty if there is none.
	Wrapper []string

	Place   string          // the mark of its directory, see [Keeper]
	Command sandbox.Command // without streams. No Argv: build the walls, report what they reached, and exit
	Stdin   bool            // the command reads the input that is sent; otherwise none
}

func (s spec) kind() kind {
	return kinds[max(0, slices.IndexFunc(kinds, func(k kind) bool { return k.wall == s.Policy.Wall }))]
}

func (s spec) ownNet() bool { return !s.Policy.Net && s.Policy.Wall.Namespaces() }

// This process should have them for itself but shares them with the process that built the walls.
func (s spec) sharedNamespaces() []string {
	if !s.Policy.Wall.Namespaces() {
		return nil
	}
	kinds := []string{"mnt", "pid", "ipc"}
	if s.ownNet() {
		kinds = append(kinds, "net")
	}
	inside := kernel.NamespaceIDs()
	return slices.DeleteFunc(kinds, func(kind string) bool { return inside[kind] != s.Outside[kind] && inside[kind] != "" })
}

// wrapper returns the command line of the program that builds the wall; nil if none is needed.
func (s spec) wrapper() ([]string, error) {
	k := s.kind()
	if k.args == nil {
		return nil, nil
	}
	args, err := k.args(s.program, s.Policy, s.Entries, []string{selfPath, helperName, "wrapped"})
	if err == nil && len(args) > k.maxArgs {
		err = &sandbox.WallError{Wall: s.Policy.Wall, Reason: fmt.Sprintf("it accepts at most %d arguments, and the policy's paths need %d", k.maxArgs, len(args)),
			Next: "hide directories instead of single files, or use the hidden wall"}
	}
	return args, err
}

// grade returns the walls' grade. reached is what the kernel package says of this kernel.
func (s spec) grade(reached sandbox.Grade) sandbox.Grade {
	g := reached
	g.Wall, g.Net = s.Policy.Wall, "off"
	switch {
	case g.Wall == sandbox.NoWall:
		g.Net, g.Open = "on", []string{"everything that the user may do"}
	case s.Policy.Net:
		g.Net = "on"
	case len(s.Policy.Doors) > 0:
		g.Net = "doors"
	}
	return g
}

// unavailable says that the wall cannot be built, and what the user can do.
func (s spec) unavailable(err error) error {
	return &sandbox.WallError{Wall: s.Policy.Wall, Next: s.kind().next, Err: err}
}

// current returns the spec for a command that starts now, of what is there now: what was removed
// needs no mount, which would create it, and what is to be hidden may have come. What may be
// written must be there, and nothing may have become a symlink: a command behind other walls, such as the check,
// can write what these only show, and a wrapper would mount what a link leads to.
func (s spec) current() (_ spec, err error) {
	s.Entries = slices.Clone(s.Entries)
	for i, e := range s.Entries {
		if e.Link != "" || e.Absent && e.Access != sandbox.AccessNone {
			continue
		}
		now, err := filepath.EvalSymlinks(e.Path)
		switch gone := errors.Is(err, os.ErrNotExist); {
		case gone && e.Access != sandbox.AccessWrite:
			s.Entries[i].Absent = true
		case e.Absent && err == nil:
			info, err := os.Stat(now)
			s.Entries[i] = sandbox.Entry{Path: now, Absent: err != nil, Dir: err == nil && info.IsDir()}
		case !s.Policy.Wall.Mounts():
		case gone:
			return s, s.changed(e.Path + " was removed after the walls were built")
		case err == nil && now != e.Path:
			return s, s.changed(e.Path + " leads elsewhere: a symlink was put in its place after the walls were built")
		}
	}
	s.Wrapper, err = s.wrapper()
	return s, err
}

// changed says why a command cannot start; the walls of a resumed run are built of what is there then.
func (s spec) changed(why string) error {
	return &sandbox.WallError{Wall: s.Policy.Wall, Reason: why, Next: "see whether that is right, then resume the run"}
}

// bwrapArgs returns the command line with which bubblewrap (0.4 or later) shows the entries and
// runs the supervisor as process 1, which inherits descriptors. Paths may contain any character.
//
// If entries lie below /tmp, /tmp is empty for each command: in the policy's directory for it, an
// earlier command could have left a symlink where they are mounted.
func bwrapArgs(program string, p sandbox.Policy, entries []sandbox.Entry, supervisor []string) ([]string, error) {
	args := []string{program, "--unshare-all"}
	if p.Net {
		args = append(args, "--share-net")
	}
	args = append(args, "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--chdir", "/")
	list := mounts(entries)
	rooted := len(list) > 0 && list[0].Path == "/"
	if rooted {
		args, list = append(args, bwrapMount(list[0])...), list[1:]
	}
	args = append(args, "--proc", "/proc")
	for _, path := range secretProc() {
		args = append(args, "--ro-bind", os.DevNull, path)
	}
	args = append(args, "--dev", "/dev", "--tmpfs", "/dev/shm")
	below := func(e sandbox.Entry) bool { return e.Path != "/tmp" && sandbox.Within("/tmp", e.Path) }
	if p.Tmp == "" || slices.ContainsFunc(list, below) {
		args = append(args, "--tmpfs", "/tmp")
	} else {
		args = append(args, "--bind", p.Tmp, "/tmp")
	}
	var last []string // nothing can be mounted in these afterwards
	for _, e := range list {
		args = append(args, bwrapMount(e)...)
		if e.Access == sandbox.AccessNone && e.Dir {
			last = append(last, "--remount-ro", e.Path)
		}
	}
	last = append(last, "--remount-ro", "/dev", "--remount-ro", "/proc")
	if !rooted {
		last = append(last, "--remount-ro", "/")
	}
	return slices.Concat(args, last, []string{"--"}, supervisor), nil
}

func bwrapMount(e sandbox.Entry) []string {
	switch {
	case e.Link != "":
		return []string{"--symlink", e.Link, e.Path}
	case e.Access == sandbox.AccessNone && e.Dir:
		return []string{"--tmpfs", e.Path}
	case e.Access == sandbox.AccessNone:
		// A device that is mounted without --dev-bind cannot be opened.
		return []string{"--ro-bind", os.DevNull, e.Path}
	case sandbox.Within("/dev", e.Path):
		return []string{"--dev-bind", e.Path, e.Path}
	case e.Access == sandbox.AccessRead:
		return []string{"--ro-bind", e.Path, e.Path}
	}
	return []string{"--bind", e.Path, e.Path}
}

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
