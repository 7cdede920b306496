// Package workshop finds what the toolchains of a machine need to work behind
// walls: which directories to show, which variables to set, which files contain
// keys and are hidden, and which of git's files are protected.
//
// Call [Workshop.Equip]. It inspects the machine, makes the directories of the
// run, and completes a policy. [System] returns only what programs need of the system. The package does not search for keys: it hides
// files whose names are known to contain them.
package workshop

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"hone/sandbox"
)

// Workshop is what a model's commands work with: a workspace, a home of their
// own, the user's toolchains to read, and an environment.
//
// The commands get only harmless variables of the user's environment (language,
// terminal, compiler settings), because others may contain tokens or name the
// sockets of agents and the desktop. They can read the toolchains in the user's
// home that PATH and the usual variables name, and what package managers have
// downloaded; but never the home itself, nor a file that is known to contain
// keys. Keys in a file of another name, or a password in a file of .git, are not
// known: list such files in Hide. Settings of package managers, such as a mirror,
// are hidden because tokens are stored with them.
type Workshop struct {
	// Policy is what the settings of the walls say, and is added to. Its Net also lets package
	// managers download into the directory of the run. A path of Read is shown even if it is known
	// to contain keys. Sockets and FIFOs in Root are hidden unless Write or Read names them. Env, if
	// it is not nil, is the environment of commands without walls, for which nothing is shown or
	// made: the policy then only protects paths of Root.
	sandbox.Policy
	// Root is the workspace, an absolute path. Commands may write it.
	Root string
	// Home is a new directory, an absolute path outside Root that
	// nothing else uses. It will contain the directories home, tmp, aside and layers.
	// Commands may write the first two, which keep their contents from one
	// command to the next.
	Home string
	// Environ is hone's own environment, as KEY=VALUE.
	Environ []string
	// Keep are variables that the configuration lists. They are always passed
	// on and override those of the Workshop, except HOME, PATH and TMPDIR.
	Keep []string
	// Drop are variables with providers' keys (ruling G6). They are not passed
	// on unless Keep contains them.
	Drop []string
	// Self is the absolute path of a program that calls [Helper] first, such as hone
	// itself. With it Go (1.24 or later) reads the user's build cache. Empty means
	// that Go's build cache starts empty.
	Self string
	// Protect are further paths in Root, absolute or relative to it, that
	// commands must not change. hone's settings (ruling G5) and the files that
	// decide what git runs (ruling G9) are always protected.
	Protect []string
	// Repositories are the repositories in Root whose settings and hooks are read-only to
	// commands, as gitdir.Watch.Known returns them. The one at its top always is.
	Repositories []string
	// Links are files and directories of the user's home, as ~/PATH, that the commands' home has too.
	Links []string
	// ReadOnly makes all of Root read-only, whatever Write allows.
	ReadOnly bool

	// What follows is found out. The user's environment and home are trusted. The workspace is
	// not, because a model may have written it: no file and no symlink in it decides what is shown.

	userHome string   // empty if unknown
	real     string   // Root without symlinks
	private  []string // the user's home, Root and Home, under all their names
	paths    resolver
	keys     func() []place // the user's files with keys

	read   []string // the paths to show
	reals  []string // the same without symlinks
	system int      // how many of them System returned
	vars   []string // the variables to set, as KEY=VALUE
	links  []link   // the links to make in the home of the run

	overlays []sandbox.Overlay // of the user's caches
}

// The directories of a run.
const (
	homeDir   = "home"
	tmpDir    = "tmp"
	asideDir  = "aside"
	layersDir = "layers" // made by walls
)

// Equip makes the directories of the run, and returns all that commands may reach, with
// their complete environment, sorted. It may be called again for the same Home only before a command
// ran: it follows the symlinks that commands may leave there.
//
// TMPDIR is the real path of the run's tmp, which every wall shows; only some can
// show it as /tmp. Programs that always use /tmp, such as Java without
// java.io.tmpdir, work only behind those. Without the network, package managers
// are switched to offline mode and read the user's caches in place; with it they
// download into the run's home, or into overlays of the user's caches. Caches that
// are written even offline are overlays in both cases. The error is a [*EscapeError] if a symlink in
// the workspace would show something outside, and a [*PathError] if commands could change
// programs that run outside of walls, or if Hide has what they need.
func (w Workshop) Equip() (p sandbox.Policy, err error) {
	if w, err = w.clean(); err != nil {
		return p, err
	}
	return w.prepared().equip()
}

func (w *Workshop) equip() (p sandbox.Policy, err error) {
	p = w.Policy
	p.Tree = cmp.Or(w.Tree, w.Root)
	if p.Aside == "" {
		p.Aside = filepath.Join(w.Home, asideDir)
	}
	protected, err := w.protectedPaths(&p)
	if err != nil {
		return p, err
	}
	if p.Env != nil { // nothing hides the toolchains, so they are not inspected
		p.Write, p.Read, p.Hide = append([]string{w.Root}, w.Write...), append(protected, w.Read...), nil
		w.closeTree(&p)
		return p, nil
	}
	if err := w.checkPrograms(); err != nil {
		return p, err
	}
	for _, path := range System() {
		w.add(path)
	}
	w.system = len(w.read)
	path := w.toolchains()
	w.caches()
	w.certificates()
	if err := w.checkHidden(); err != nil {
		return p, err
	}
	if err := w.makeHome(); err != nil {
		return p, fmt.Errorf("make the directories of the run: %w", err)
	}
	p.Tmp = filepath.Join(w.Home, tmpDir)
	p.Write = append([]string{w.Root, filepath.Join(w.Home, homeDir), p.Tmp}, w.Write...)
	p.Read = slices.Concat(w.read, protected, w.Read)
	p.Env = w.environment(path)
	p.Hide = slices.Concat([]string{filepath.Join(w.Root, ".hone")}, w.credentials(append(w.Read, w.Write...), append(slices.Clone(p.Read), p.Write...)), w.Hide)
	for _, path := range endpoints(w.Root) {
		if !slices.Contains(w.Read, path) && !slices.Contains(w.Write, path) {
			p.Hide = append(p.Hide, path)
		}
	}
	p.Layers = filepath.Join(w.Home, layersDir)
	// Overlays of directories that the policy hides or opens, in part or as a whole, are left out.
	p.Overlays = slices.DeleteFunc(w.overlays, func(v sandbox.Overlay) bool {
		return slices.ContainsFunc(slices.Concat(p.Write, p.Hide), func(path string) bool {
			lower, path := w.realPath(v.Lower), w.realPath(path)
			return sandbox.Within(path, lower) || sandbox.Within(lower, path)
		})
	})
	w.closeTree(&p)
	return p, nil
}

func (w *Workshop) closeTree(p *sandbox.Policy) {
	if !w.ReadOnly {
		return
	}
	p.Write = slices.DeleteFunc(p.Write, w.inside)
	p.Read = append(p.Read, w.Root)
}

func (w Workshop) clean() (Workshop, error) {
	for _, dir := range []string{w.Root, w.Home} {
		if !filepath.IsAbs(dir) || !utf8.ValidString(dir) {
			return w, fmt.Errorf("%q is not an absolute path in UTF-8", dir)
		}
		switch info, err := os.Stat(dir); {
		case err != nil:
			return w, err
		case !info.IsDir():
			return w, fmt.Errorf("%q is not a directory", dir)
		}
	}
	w.Root, w.Home = filepath.Clean(w.Root), filepath.Clean(w.Home)
	root, run := realPath(w.Root), realPath(w.Home)
	switch {
	case filepath.Dir(root) == root:
		return w, fmt.Errorf("the workspace is the whole machine: choose the directory of your project")
	case sandbox.Within(root, run):
		return w, fmt.Errorf("the run's directory %s is in the workspace %s, where commands could change it", w.Home, w.Root)
	case sandbox.Within(run, root):
		return w, fmt.Errorf("the workspace %s is in the run's directory %s", w.Root, w.Home)
	}
	for _, list := range []*[]string{&w.Write, &w.Read, &w.Hide} {
		cleaned := make([]string, 0, len(*list))
		for _, path := range *list {
			cleaned = append(cleaned, filepath.Clean(path))
		}
		*list = cleaned
	}
	return w, nil
}

// protectedPaths returns them, and adds their placeholders to the policy.
func (w *Workshop) protectedPaths(p *sandbox.Policy) ([]string, error) {
	git := w.gitFiles()
	indirect := w.gitIndirect(w.gitRepositories())
	paths := slices.AppendSeq(slices.Clone(git), maps.Keys(indirect))
	paths = append(paths, filepath.Join(w.Root, ".config", "hone.toml"), filepath.Join(w.Root, ".config", "bork.json"))
	for _, path := range w.Protect {
		paths = append(paths, filepath.Clean(absolute(w.Root, path)))
	}
	protected, err := w.checkProtected(paths, slices.Concat(w.Read, w.Write))
	p.Placeholders = w.placeholders(protected, git, indirect)
	return protected, err
}

// Variables of toolchains override harmless ones of the user, and those of the configuration override these.
func (w *Workshop) environment(path []string) []string {
	vars := map[string]string{"TERM": "dumb", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "PAGER": "cat"}
	for _, kv := range sandbox.CleanEnv(w.Environ, w.Drop) {
		if name := sandbox.EnvName(kv); harmless(name) && utf8.ValidString(kv) {
			vars[name] = sandbox.EnvValue(w.Environ, name)
		}
	}
	for _, kv := range w.vars {
		vars[sandbox.EnvName(kv)] = sandbox.EnvValue([]string{kv}, sandbox.EnvName(kv))
	}
	for _, kv := range w.Environ {
		if len(sandbox.CleanEnv([]string{kv}, w.Keep)) == 0 { // Keep names it
			vars[sandbox.EnvName(kv)] = sandbox.EnvValue(w.Environ, sandbox.EnvName(kv))
		}
	}
	if len(path) == 0 {
		path = []string{"/usr/local/bin", "/usr/bin", "/bin"}
	}
	vars["PATH"] = strings.Join(path, string(filepath.ListSeparator))
	vars["HOME"] = w.inHome("")
	vars["TMPDIR"] = filepath.Join(w.Home, tmpDir)
	var env []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// A harmless variable only affects how programs work.
func harmless(name string) bool {
	if strings.HasPrefix(name, "LC_") {
		return true
	}
	return slices.Contains([]string{
		"LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "CI", "NO_COLOR", "FORCE_COLOR", "SOURCE_DATE_EPOCH",
		"CC", "CXX", "AR", "LD", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "DEBIAN_FRONTEND",
		"GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOMAXPROCS", "GOGC", "GODEBUG", "CGO_CFLAGS", "CGO_LDFLAGS",
		"RUSTUP_TOOLCHAIN", "RUSTFLAGS", "RUSTDOCFLAGS", "RUST_BACKTRACE", "CARGO_BUILD_JOBS", "CARGO_TERM_COLOR",
		"NODE_ENV", "PYENV_VERSION", "RBENV_VERSION", "NODENV_VERSION", "ASDF_DIR", "CONDA_DEFAULT_ENV",
		"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING",
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
		"SYSTEMROOT", "SystemRoot", "ComSpec", "PATHEXT", "WINDIR", "NUMBER_OF_PROCESSORS",
	}, name)
}

// The addresses of the proxies contain no password.
func (w *Workshop) certificates() {
	for _, name := range []string{
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
		"PIP_CERT", "NIX_SSL_CERT_FILE", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",
	} {
		path := w.get(name)
		certificate := slices.Contains([]string{".pem", ".crt", ".cer"}, filepath.Ext(path)) && !isDir(path)
		if filepath.IsAbs(path) && exists(path) && (w.shown(filepath.Clean(path)) || certificate && w.show(path)) {
			w.set(name, path)
		}
	}
	if !w.Net {
		return
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		if address := w.get(name); address != "" && !secretURL(address) {
			w.set(name, address)
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if hosts := w.get(name); hosts != "" {
			w.set(name, hosts)
		}
	}
}
