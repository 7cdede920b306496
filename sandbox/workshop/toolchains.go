package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// manager is a program that keeps toolchains below one folder, none of whose
// files are secret but those that [credentialNames] has.
type manager struct{ variable, usual string }

func managers() []manager {
	return []manager{
		{"PYENV_ROOT", ".pyenv"}, {"RBENV_ROOT", ".rbenv"}, {"NODENV_ROOT", ".nodenv"}, {"GOENV_ROOT", ".goenv"},
		{"JENV_ROOT", ".jenv"}, {"PLENV_ROOT", ".plenv"}, {"PHPENV_ROOT", ".phpenv"}, {"ASDF_DATA_DIR", ".asdf"},
		{"VOLTA_HOME", ".volta"}, {"PROTO_HOME", ".proto"}, {"RYE_HOME", ".rye"}, {"BUN_INSTALL", ".bun"},
		{"DENO_INSTALL", ".deno"}, {"DOTNET_ROOT", ".dotnet"}, {"OPAMROOT", ".opam"}, {"ELAN_HOME", ".elan"},
		{"MISE_DATA_DIR", ".local/share/mise"},
	}
}

// toolFolders are variables that name a toolchain's folder.
func toolFolders() []string {
	return []string{
		"JAVA_HOME", "JDK_HOME", "GOROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "ANDROID_HOME", "ANDROID_SDK_ROOT",
		"MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "NODE_HOME", "SCALA_HOME", "KOTLIN_HOME", "GEM_HOME",
	}
}

// toolchains shows the person's toolchains and returns PATH with what is left
// of it: folders that are there, and are shown or lie in the workspace. Of a
// folder in the workspace nothing is followed.
func (o *outfit) toolchains() []string {
	dirs := o.searched()
	for _, m := range managers() {
		root := o.dir(m.variable, m.usual)
		used := o.get(m.variable) != "" || slices.ContainsFunc(dirs, func(d string) bool { return sandbox.Holds(root, d) })
		if root != "" && used && o.show(root) {
			o.set(m.variable, root)
		}
	}
	for _, name := range toolFolders() {
		if dir := o.dir(name, ""); dir != "" && o.show(dir) {
			o.set(name, dir)
		}
	}
	o.show(o.dir("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"))
	var kept []string
	for _, dir := range dirs {
		if o.programs(dir) {
			kept = append(kept, dir)
		}
	}
	return kept
}

// searched are PATH's folders, once each. A relative or empty entry is left
// out: it means another folder for each command.
func (o *outfit) searched() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(o.get("PATH")) {
		dir = filepath.Clean(dir)
		if filepath.IsAbs(dir) && !windowsDrive(dir) && isDir(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// programs shows a folder of PATH, with the toolchain that it belongs to and
// what the links in it lead to.
func (o *outfit) programs(dir string) bool {
	if o.inside(dir) {
		return sandbox.Holds(o.root, dir)
	}
	// What a distribution's own folders link to is the distribution's.
	local := !o.shown(dir) || sandbox.Holds("/usr/local", dir)
	if !local || !o.show(dir) {
		return !local
	}
	real := realPath(dir)
	if chain := o.toolchain(real); chain != "" {
		o.show(chain)
	}
	o.follow(real, mostHops)
	return true
}

const (
	// mostHops is how many links from toolchain to toolchain are followed: from
	// a program to its virtual environment, to the interpreter of that.
	mostHops = 4
	// mostPrograms bounds the folders that are searched for links.
	mostPrograms = 4096
)

// follow shows what the links in a folder of programs lead to: the toolchain
// that the target belongs to, or the target alone.
func (o *outfit) follow(bin string, hops int) {
	for _, name := range linksIn(bin) {
		path := filepath.Join(bin, name)
		real, err := filepath.EvalSymlinks(path)
		if err != nil || o.inside(real) || o.secret(real) || !program(real) || o.shown(real) {
			continue
		}
		chain := o.toolchain(filepath.Dir(real))
		o.show(path)
		if target, err := os.Readlink(path); err == nil {
			o.show(absolute(bin, target))
		}
		if chain != "" && o.show(chain) && hops > 0 {
			o.follow(filepath.Dir(real), hops-1)
		}
	}
}

// absolute is a link's target, seen from the folder that the link is in.
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
	entries, _ := f.ReadDir(mostPrograms)
	var names []string
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// program reports whether a file can be run.
func program(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// toolchain is the folder of the toolchain that a folder of programs belongs
// to; empty where it belongs to none. It is the folder above a bin that has
// libraries beside it and is nobody's repository, or the node_modules that a
// package lies in.
func (o *outfit) toolchain(bin string) string {
	sep := string(filepath.Separator)
	if before, _, ok := strings.Cut(bin+sep, sep+"node_modules"+sep); ok {
		return before + sep + "node_modules"
	}
	parent := filepath.Dir(bin)
	if !slices.Contains([]string{"bin", "sbin", "condabin", "Scripts", "shims"}, filepath.Base(bin)) ||
		slices.Contains(o.onlyPrograms(), parent) || o.unfit(parent) || exists(filepath.Join(parent, ".git")) {
		return ""
	}
	for _, name := range []string{"lib", "lib64", "libexec", "pkg", "jre", "share", "boot", "conda-meta", "pyvenv.cfg"} {
		if exists(filepath.Join(parent, name)) {
			return parent
		}
	}
	return ""
}

// onlyPrograms are folders with programs in their bin of which the rest is not
// a toolchain: the person's own projects, or keys.
func (o *outfit) onlyPrograms() []string {
	dirs := append(o.gopath(), o.below(".local"), o.dir("CARGO_HOME", ".cargo"))
	for _, dir := range slices.Clone(dirs) {
		dirs = append(dirs, realPath(dir))
	}
	return dirs
}
