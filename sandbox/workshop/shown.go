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
)

// place is a path with and without symlinks.
type place struct{ name, real string }

type link struct{ Name, Target string }

func (w Workshop) prepared() *Workshop {
	w.paths = resolver{}
	w.real = w.realPath(w.Root)
	w.private = []string{w.Root, w.real, w.Home, w.realPath(w.Home)}
	if home := sandbox.EnvValue(w.Environ, "HOME"); filepath.IsAbs(home) {
		w.userHome = filepath.Clean(home)
		w.private = append(w.private, w.userHome, w.realPath(w.userHome))
	}
	w.keys = sync.OnceValue(w.findKeys)
	return &w
}

// Each path is resolved once.
func (w *Workshop) realPath(path string) string { return w.paths.real(filepath.Clean(path)) }

func (w *Workshop) get(name string) string { return sandbox.EnvValue(w.Environ, name) }

func (w *Workshop) add(path string) {
	w.read = append(w.read, path)
	w.reals = append(w.reals, w.realPath(path))
}

func (w *Workshop) set(name, value string) { w.vars = append(w.vars, name+"="+value) }

func (w *Workshop) link(name, target string) {
	w.links = append(w.links, link{Name: name, Target: target})
}

func (w *Workshop) inHome(name string) string {
	return filepath.Join(w.Home, homeDir, filepath.FromSlash(name))
}

func (w *Workshop) dir(variable, usual string) string {
	dir := w.get(variable)
	if dir == "" && usual != "" {
		dir = w.homePath(usual)
	}
	if !filepath.IsAbs(dir) || !isDir(dir) {
		return ""
	}
	return filepath.Clean(dir)
}

func (w *Workshop) homePath(name string) string {
	if w.userHome == "" {
		return ""
	}
	return filepath.Join(w.userHome, filepath.FromSlash(name))
}

func (w *Workshop) inside(path string) bool {
	return sandbox.Within(w.Root, path) || sandbox.Within(w.real, w.realPath(path))
}

// It reports whether commands will find the path.
func (w *Workshop) show(path string) bool {
	switch {
	case !filepath.IsAbs(path) || !utf8.ValidString(path):
		return false
	case sandbox.Within(w.Root, filepath.Clean(path)):
		return exists(path)
	case w.inside(path) || !exists(path):
		return false
	case w.shown(filepath.Clean(path)):
		return true
	case w.unfit(path):
		return false
	}
	w.add(filepath.Clean(path))
	return true
}

func (w *Workshop) shown(path string) bool {
	real := w.realPath(path)
	for i, r := range w.read {
		if sandbox.Within(r, path) && (real == path || sandbox.Within(w.reals[i], real)) {
			return true
		}
	}
	return false
}

// unfit reports whether a directory contains more than a toolchain: it contains
// the home, the workspace or the directory of this run, it is a top-level
// directory or one that all users share, or it contains no ordinary files.
func (w *Workshop) unfit(path string) bool {
	for _, p := range []string{filepath.Clean(path), w.realPath(path)} {
		if w.tooWide(p) {
			return true
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&fs.ModeSticky != 0 {
		return true
	}
	real := w.realPath(path)
	return sandbox.Within("/run", real) || slices.ContainsFunc([]string{"/proc", "/sys", "/dev", "/etc"}, func(top string) bool {
		return sandbox.Within(top, real) || sandbox.Within(top, filepath.Clean(path))
	})
}

func (w *Workshop) tooWide(path string) bool {
	parent := filepath.Dir(path)
	if filepath.Dir(parent) == parent || slices.Contains([]string{"/home", "/Users", "/var", "/mnt"}, parent) {
		return true
	}
	if slices.ContainsFunc(w.private, func(private string) bool { return sandbox.Within(path, private) }) {
		return true
	}
	return w.userHome != "" && slices.ContainsFunc([]string{ // they contain much of the user's data or keys
		".config", ".cache", ".local", ".local/share", ".local/state", "Library", "Desktop", "Documents", "Downloads",
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store",
	}, func(name string) bool { return path == w.homePath(name) })
}

// WSL adds such directories to PATH. Their programs run outside all walls.
func windowsDrive(dir string) bool {
	drive, _, ok := strings.Cut(strings.TrimPrefix(dir, "/mnt/"), "/")
	return ok && strings.HasPrefix(dir, "/mnt/") && len(drive) == 1
}
