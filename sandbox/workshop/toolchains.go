package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// manager is a program that installs toolchains below one directory, in which only
// the files of [credentialNames] are secret.
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

func toolVariables() []string {
	return []string{
		"JAVA_HOME", "JDK_HOME", "GOROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "ANDROID_HOME", "ANDROID_SDK_ROOT",
		"MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "NODE_HOME", "SCALA_HOME", "KOTLIN_HOME", "GEM_HOME",
	}
}

// It returns the existing directories of PATH that are shown or are in the workspace. The links of those in the workspace are
// not followed.
func (o *outfit) toolchains() []string {
	dirs := o.pathDirs()
	for _, m := range managers() {
		root := o.dir(m.variable, m.usual)
		used := o.get(m.variable) != "" || slices.ContainsFunc(dirs, func(d string) bool { return sandbox.Within(root, d) })
		if root != "" && used && o.show(root) {
			o.set(m.variable, root)
		}
	}
	for _, name := range toolVariables() {
		if dir := o.dir(name, ""); dir != "" && o.show(dir) {
			o.set(name, dir)
		}
	}
	o.show(o.dir("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"))
	return slices.DeleteFunc(dirs, func(dir string) bool { return !o.showPrograms(dir) })
}

// Relative and empty entries mean another directory for each command.
func (o *outfit) pathDirs() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(o.get("PATH")) {
		dir = filepath.Clean(dir)
		if filepath.IsAbs(dir) && !windowsDrive(dir) && isDir(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// It reports whether the directory stays on PATH.
func (o *outfit) showPrograms(dir string) bool {
	if o.inside(dir) {
		return sandbox.Within(o.root, dir)
	}
	if slices.ContainsFunc(o.opened, func(opened string) bool { return sandbox.Within(opened, dir) }) {
		return true
	}
	// The links in a distribution's own directories lead to its own files.
	local := !o.shown(dir) || sandbox.Within("/usr/local", dir)
	if !local || !o.show(dir) {
		return !local
	}
	real := o.realPath(dir)
	if chain := o.toolchain(real); chain != "" {
		o.show(chain)
	}
	o.follow(real, maxHops)
	return true
}

const (
	// maxHops is how many links from toolchain to toolchain are followed, such as
	// from a program to its virtual environment and on to its interpreter.
	maxHops = 4
	// maxPrograms is how many files of a directory are checked for links.
	maxPrograms = 4096
)

func (o *outfit) follow(bin string, hops int) {
	for _, name := range linksIn(bin) {
		path := filepath.Join(bin, name)
		real, err := filepath.EvalSymlinks(path)
		if err != nil || o.inside(real) || o.secret(real) || !isProgram(real) || o.shown(real) {
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

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// It is the parent of a bin that also contains libraries and is not a repository, or the node_modules around a package.
func (o *outfit) toolchain(bin string) string {
	sep := string(filepath.Separator)
	if before, _, ok := strings.Cut(bin+sep, sep+"node_modules"+sep); ok {
		return before + sep + "node_modules"
	}
	parent := filepath.Dir(bin)
	if !slices.Contains([]string{"bin", "sbin", "condabin", "Scripts", "shims"}, filepath.Base(bin)) ||
		slices.Contains(o.notToolchains(), parent) || o.unfit(parent) || exists(filepath.Join(parent, ".git")) {
		return ""
	}
	for _, name := range []string{"lib", "lib64", "libexec", "pkg", "jre", "share", "boot", "conda-meta", "pyvenv.cfg"} {
		if exists(filepath.Join(parent, name)) {
			return parent
		}
	}
	return ""
}

// They have a bin and also contain the user's projects or keys.
func (o *outfit) notToolchains() []string {
	dirs := append(o.gopath(), o.homePath(".local"), o.dir("CARGO_HOME", ".cargo"))
	for _, dir := range slices.Clone(dirs) {
		dirs = append(dirs, o.realPath(dir))
	}
	return dirs
}
