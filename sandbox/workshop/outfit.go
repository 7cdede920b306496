package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"hone/sandbox"
	"hone/sandbox/internal/environ"
)

// outfit collects what the user's toolchains need: directories to show, variables
// to set, and links in the run's home. It trusts the user's environment and home.
// It does not trust the workspace, which a model may have written: no file and no
// symlink in it decides what is shown.
type outfit struct {
	env          []string // hone's own
	home         string   // the user's; empty if unknown
	root         string   // the workspace
	real         string   // the workspace without symlinks
	run          string   // the directory of this run
	private      []string // the home, the workspace and the run, under all their names
	opened       []string // what the configuration shows
	keep         []string // the variables that the configuration passes on
	repositories []string // git directories in the workspace, and .git files and symlinks
	self         string   // a program that calls Helper; empty if there is none
	net          bool
	paths        resolver
	keys         func() []place // the user's files with keys

	read   []string // the paths to show
	reals  []string // the same without symlinks
	system int      // how many of them System returned
	vars   []string // the variables to set, as KEY=VALUE
	links  []link   // the links to make in the run's home

	overlays []sandbox.Overlay // of the user's caches
}

// place is a path with and without symlinks.
type place struct{ name, real string }

type link struct{ Name, Target string }

func newOutfit(w Workshop) *outfit {
	o := &outfit{env: w.Environ, root: w.Root, run: w.Home, opened: slices.Concat(w.Read, w.Write), keep: w.Keep, self: w.Self, repositories: w.Repositories, net: w.Net, paths: resolver{}}
	o.real = o.realPath(o.root)
	o.private = []string{o.root, o.real, o.run, o.realPath(o.run)}
	if home := environ.Value(w.Environ, "HOME"); filepath.IsAbs(home) {
		o.home = filepath.Clean(home)
		o.private = append(o.private, o.home, o.realPath(o.home))
	}
	o.keys = sync.OnceValue(o.findKeys)
	return o
}

func (o *outfit) showSystem() {
	for _, path := range System() {
		o.add(path)
	}
	o.system = len(o.read)
}

// Each path is resolved once.
func (o *outfit) realPath(path string) string { return o.paths.real(filepath.Clean(path)) }

func (o *outfit) get(name string) string { return environ.Value(o.env, name) }

func (o *outfit) add(path string) {
	o.read = append(o.read, path)
	o.reals = append(o.reals, o.realPath(path))
}

func (o *outfit) set(name, value string) { o.vars = append(o.vars, name+"="+value) }

func (o *outfit) link(name, target string) {
	o.links = append(o.links, link{Name: name, Target: target})
}

func (o *outfit) inHome(name string) string {
	return filepath.Join(o.run, homeDir, filepath.FromSlash(name))
}

func (o *outfit) dir(variable, usual string) string {
	dir := o.get(variable)
	if dir == "" && usual != "" {
		dir = o.homePath(usual)
	}
	if !filepath.IsAbs(dir) || !isDir(dir) {
		return ""
	}
	return filepath.Clean(dir)
}

func (o *outfit) homePath(name string) string {
	if o.home == "" {
		return ""
	}
	return filepath.Join(o.home, filepath.FromSlash(name))
}

func (o *outfit) inside(path string) bool {
	return sandbox.Within(o.root, path) || sandbox.Within(o.real, o.realPath(path))
}

// It reports whether commands will find the path.
func (o *outfit) show(path string) bool {
	switch {
	case !filepath.IsAbs(path) || !utf8.ValidString(path):
		return false
	case sandbox.Within(o.root, filepath.Clean(path)):
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

func (o *outfit) shown(path string) bool {
	real := o.realPath(path)
	for i, r := range o.read {
		if sandbox.Within(r, path) && (real == path || sandbox.Within(o.reals[i], real)) {
			return true
		}
	}
	return false
}

// unfit reports whether a directory contains more than a toolchain: it contains
// the home, the workspace or the directory of this run, it is a top-level
// directory or one that all users share, or it contains no ordinary files.
func (o *outfit) unfit(path string) bool {
	for _, p := range []string{filepath.Clean(path), o.realPath(path)} {
		if o.tooWide(p) {
			return true
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&fs.ModeSticky != 0 {
		return true
	}
	real := o.realPath(path)
	return sandbox.Within("/run", real) || slices.ContainsFunc([]string{"/proc", "/sys", "/dev", "/etc"}, func(top string) bool {
		return sandbox.Within(top, real) || sandbox.Within(top, filepath.Clean(path))
	})
}

func (o *outfit) tooWide(path string) bool {
	parent := filepath.Dir(path)
	if filepath.Dir(parent) == parent || slices.Contains([]string{"/home", "/Users", "/var", "/mnt"}, parent) {
		return true
	}
	if slices.ContainsFunc(o.private, func(private string) bool { return sandbox.Within(path, private) }) {
		return true
	}
	return o.home != "" && slices.ContainsFunc(homeDirs(), func(name string) bool { return path == o.homePath(name) })
}

// homeDirs returns the directories of a home that contain much of the user's data
// or keys.
func homeDirs() []string {
	return []string{
		".config", ".cache", ".local", ".local/share", ".local/state", "Library", "Desktop", "Documents", "Downloads",
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store",
	}
}

// WSL adds such directories to PATH. Their programs run outside all walls.
func windowsDrive(dir string) bool {
	drive, _, ok := strings.Cut(strings.TrimPrefix(dir, "/mnt/"), "/")
	return ok && strings.HasPrefix(dir, "/mnt/") && len(drive) == 1
}
