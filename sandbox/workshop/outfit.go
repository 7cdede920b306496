package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"hone/sandbox"
	"hone/sandbox/internal/environ"
)

// outfit gathers what a person's toolchains need: folders to show, variables to
// set, and links in the per-run home. It believes the person's environment and
// home; what lies in the workspace may have been written by a model, so nothing
// that is read there, and no symlink there, leads to something that is shown.
type outfit struct {
	env  []string // hone's own
	home string   // the person's; empty where it is not known
	root string   // the workspace
	real string   // the workspace without symlinks
	run  string   // the folder of this run
	kept []string // the home, the workspace and the run's folder, under all their names
	net  bool
	keys []place // where the person's keys are

	read  []string // to show
	reals []string // the same without symlinks
	ours  int      // how many of them are the system's
	vars  []string // to set, as KEY=VALUE
	links []link   // to make in the per-run home
}

// place is a path under both of its names: as it is called, and without
// symlinks.
type place struct{ name, real string }

// link is a symlink in the per-run home.
type link struct{ Name, Target string }

// newOutfit looks at what there is on this machine.
func newOutfit(w Workshop) *outfit {
	o := &outfit{env: w.Environ, root: w.Root, real: realPath(w.Root), run: w.Home, net: w.Net}
	o.kept = []string{o.root, o.real, o.run, realPath(o.run)}
	if home := environ.Value(w.Environ, "HOME"); filepath.IsAbs(home) {
		o.home = filepath.Clean(home)
		o.kept = append(o.kept, o.home, realPath(o.home))
		for _, name := range homeSecrets() {
			o.keys = append(o.keys, place{o.below(name), realPath(o.below(name))})
		}
	}
	for _, path := range System() {
		o.add(path)
	}
	o.ours = len(o.read)
	return o
}

// get is a variable of hone's own environment.
func (o *outfit) get(name string) string { return environ.Value(o.env, name) }

func (o *outfit) add(path string) {
	o.read = append(o.read, path)
	o.reals = append(o.reals, realPath(path))
}

func (o *outfit) set(name, value string) { o.vars = append(o.vars, name+"="+value) }

// link has a name in the per-run home lead to a path that is shown.
func (o *outfit) link(name, target string) {
	o.links = append(o.links, link{Name: name, Target: target})
}

// own is a path in the per-run home.
func (o *outfit) own(name string) string {
	return filepath.Join(o.run, homeFolder, filepath.FromSlash(name))
}

// dir is the folder that a variable names, or the usual one below the home;
// empty where there is no such folder.
func (o *outfit) dir(variable, usual string) string {
	dir := o.get(variable)
	if dir == "" && usual != "" {
		dir = o.below(usual)
	}
	if !filepath.IsAbs(dir) || !isDir(dir) {
		return ""
	}
	return filepath.Clean(dir)
}

// below is a path below the person's home; empty where that is not known.
func (o *outfit) below(name string) string {
	if o.home == "" {
		return ""
	}
	return filepath.Join(o.home, filepath.FromSlash(name))
}

// inside reports whether a path lies in the workspace, by its name or by what
// it leads to.
func (o *outfit) inside(path string) bool {
	return sandbox.Holds(o.root, path) || sandbox.Holds(o.real, realPath(path))
}

// show shows a path, if that is fit to be shown, and reports whether commands
// will find it.
func (o *outfit) show(path string) bool {
	switch {
	case !filepath.IsAbs(path) || !utf8.ValidString(path):
		return false
	case sandbox.Holds(o.root, filepath.Clean(path)):
		return exists(path)
	case o.inside(path) || !exists(path):
		return false
	case o.shown(filepath.Clean(path)):
		return true
	case o.unfit(path):
		return false
	}
	o.add(filepath.Clean(path))
	return true
}

// shown reports whether what a path leads to is shown under that name.
func (o *outfit) shown(path string) bool {
	real := realPath(path)
	for i, r := range o.read {
		if sandbox.Holds(r, path) && (real == path || sandbox.Holds(o.reals[i], real)) {
			return true
		}
	}
	return false
}

// unfit reports whether showing a folder would show more than a toolchain: it
// is or holds the home, the workspace or this run's folder, it is a folder at
// the top of the machine or of everybody's, or it is none of files.
func (o *outfit) unfit(path string) bool {
	for _, p := range []string{filepath.Clean(path), realPath(path)} {
		if o.tooWide(p) {
			return true
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&fs.ModeSticky != 0 {
		return true
	}
	real := realPath(path)
	return sandbox.Holds("/run", real) || slices.ContainsFunc([]string{"/proc", "/sys", "/dev", "/etc"}, func(top string) bool {
		return sandbox.Holds(top, real) || sandbox.Holds(top, filepath.Clean(path))
	})
}

// tooWide is unfit for one of a path's names.
func (o *outfit) tooWide(path string) bool {
	parent := filepath.Dir(path)
	if filepath.Dir(parent) == parent || slices.Contains([]string{"/home", "/Users", "/var", "/mnt"}, parent) {
		return true
	}
	if slices.ContainsFunc(o.kept, func(kept string) bool { return sandbox.Holds(path, kept) }) {
		return true
	}
	return o.home != "" && slices.ContainsFunc(homeFolders(), func(name string) bool { return path == o.below(name) })
}

// homeFolders are folders below a home that hold everything of a person's, and
// the ones that hold keys.
func homeFolders() []string {
	return []string{
		".config", ".cache", ".local", ".local/share", ".local/state", "Library", "Desktop", "Documents", "Downloads",
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store",
	}
}

// windowsDrive reports whether a folder is one of Windows' that WSL puts on
// PATH: its programs run outside of all walls.
func windowsDrive(dir string) bool {
	drive, _, ok := strings.Cut(strings.TrimPrefix(dir, "/mnt/"), "/")
	return ok && strings.HasPrefix(dir, "/mnt/") && len(drive) == 1
}
