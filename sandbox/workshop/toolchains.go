package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// It returns the existing directories of PATH that are shown or are in the workspace. The links of those in the workspace are
// not followed.
func (w *Workshop) toolchains() []string {
	dirs := w.pathDirs()
	for _, t := range toolchains() {
		for _, m := range t.managers {
			root := w.dir(m.variable, m.usual)
			used := w.get(m.variable) != "" || slices.ContainsFunc(dirs, func(d string) bool { return sandbox.Within(root, d) })
			if root != "" && used && w.show(root) {
				w.set(m.variable, root)
			}
		}
		for _, name := range t.shown {
			if dir := w.dir(name, ""); dir != "" && w.show(dir) {
				w.set(name, dir)
			}
		}
	}
	w.show(w.dir("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"))
	return slices.DeleteFunc(dirs, func(dir string) bool { return !w.showPrograms(dir) })
}

// Relative and empty entries mean another directory for each command.
func (w *Workshop) pathDirs() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(w.get("PATH")) {
		dir = filepath.Clean(dir)
		if filepath.IsAbs(dir) && !windowsDrive(dir) && isDir(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// It reports whether the directory stays on PATH.
func (w *Workshop) showPrograms(dir string) bool {
	if w.inside(dir) {
		return sandbox.Within(w.Root, dir)
	}
	if slices.ContainsFunc(slices.Concat(w.Read, w.Write), func(opened string) bool { return sandbox.Within(opened, dir) }) {
		return true
	}
	// The links in a distribution's own directories lead to its own files.
	local := !w.shown(dir) || sandbox.Within("/usr/local", dir)
	if !local || !w.show(dir) {
		return !local
	}
	real := w.realPath(dir)
	w.showAll(w.toolchain(real))
	w.follow(real, maxHops)
	return true
}

const (
	// maxHops is how many links from toolchain to toolchain are followed, such as
	// from a program to its virtual environment and on to its interpreter.
	maxHops = 4
	// maxPrograms is how many files of a directory are checked for links.
	maxPrograms = 4096
)

func (w *Workshop) follow(bin string, hops int) {
	for _, name := range linksIn(bin) {
		path := filepath.Join(bin, name)
		real, err := filepath.EvalSymlinks(path)
		if err != nil || w.inside(real) || w.secret(real) || !sandbox.IsProgram(real) || w.shown(real) {
			continue
		}
		chain := w.toolchain(filepath.Dir(real))
		w.show(path)
		if target, err := os.Readlink(path); err == nil {
			w.show(absolute(bin, target))
		}
		if w.showAll(chain) && hops > 0 {
			w.follow(filepath.Dir(real), hops-1)
		}
	}
}

func absolute(dir, target string) string {
	if filepath.IsAbs(target) {
		return target
	}
	return filepath.Join(dir, target)
}

func linksIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxPrograms)
	var names []string
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// It reports whether any of the paths is shown.
func (w *Workshop) showAll(paths []string) (any bool) {
	for _, path := range paths {
		any = w.show(path) || any
	}
	return any
}

// It is the parent of a bin if that is certainly a toolchain and nothing else; of any other, which is not a repository, the
// folders that programs are installed in. Of a package it is the node_modules around it.
func (w *Workshop) toolchain(bin string) (paths []string) {
	sep := string(filepath.Separator)
	if before, _, ok := strings.Cut(bin+sep, sep+"node_modules"+sep); ok {
		return []string{before + sep + "node_modules"}
	}
	parent := filepath.Dir(bin)
	if !slices.Contains([]string{"bin", "sbin", "condabin", "Scripts", "shims"}, filepath.Base(bin)) ||
		slices.Contains(w.notToolchains(), parent) || w.unfit(parent) || exists(filepath.Join(parent, ".git")) {
		return nil
	}
	for _, name := range []string{"pyvenv.cfg", "conda-meta", "go.env", "pkg/tool", "release", "jre", "lib/gcc"} {
		if exists(filepath.Join(parent, name)) {
			return []string{parent}
		}
	}
	for _, name := range []string{"lib", "lib32", "lib64", "libexec", "include", "share", "boot"} {
		if path := filepath.Join(parent, name); isDir(path) {
			paths = append(paths, path)
		}
	}
	if len(paths) > 0 {
		paths = append(paths, bin)
	}
	return paths
}

// They have a bin and also contain the user's projects or keys.
func (w *Workshop) notToolchains() []string {
	dirs := append(w.gopath(), w.homePath(".local"), w.dir("CARGO_HOME", ".cargo"))
	for _, dir := range slices.Clone(dirs) {
		dirs = append(dirs, w.realPath(dir))
	}
	return dirs
}
