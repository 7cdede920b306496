// Package workshop finds what the toolchains of a machine need to work behind
// walls: which folders to show, which variables to set, which files hold keys
// and are hidden, and which of git's files stay as they are.
//
// Call [Workshop.Policy], which looks at the machine, makes the folders of the
// run, and returns a policy and an environment. [System] alone is what programs
// need of the system. It does not search for keys: it hides files whose names
// are known to hold them.
package workshop

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"hone/sandbox"
	"hone/sandbox/internal/environ"
)

// Workshop is what a model's commands work with: a workspace, a home of their
// own, the person's toolchains to read, and an environment.
//
// Of the person's environment the commands have what a list of plain names
// lets through (language, terminal, compilers' settings), since nobody knows
// what else is in it: tokens, sockets of agents and of the desktop. Of the
// person's home they have the toolchains that PATH and the usual variables
// name, and what package managers have downloaded; never the home itself, and
// no file that is known to hold keys. A file with keys under another name in a
// toolchain's folder, or a password in a file of .git, is not known: the caller
// lists such files in Hide. The settings of package managers, such as which
// mirror they ask, stay away with the tokens that lie beside them.
type Workshop struct {
	// Root is the workspace, absolute: what may be written.
	Root string
	// Home is this run's folder, absolute, outside of Root, and for nobody
	// else: the folders home, tmp and aside are made in it. The first two may
	// be written, and keep what one command leaves for the next.
	Home string
	// Environ is hone's own environment, as KEY=VALUE.
	Environ []string
	// Keep are variables that the configuration lists; they are passed on
	// whatever they hold, and win over what Workshop would set, but for HOME,
	// PATH and TMPDIR.
	Keep []string
	// Drop are variables with providers' keys (ruling G6): they are not passed
	// on, unless Keep has them.
	Drop []string
	// Net lets commands reach the network: package managers may then download,
	// into the run's folder.
	Net bool
	// Write, Read and Hide are more of the same lists of a [Policy]. What Read
	// names itself is shown even where it is known to hold keys.
	Write, Read, Hide []string
	// Protect are more paths in Root, absolute or relative to it, that stay as
	// they are, beside hone's own settings (ruling G5) and what says what git
	// runs (ruling G9).
	Protect []string
	// Limits bound each command.
	Limits sandbox.Limits
}

// The folders of a run.
const (
	homeFolder  = "home"
	tmpFolder   = "tmp"
	asideFolder = "aside"
)

// Policy makes the run's folders and returns what commands may reach, and the
// whole environment that they have, sorted. It may be called again for the same
// Home, as a resumed run does; what commands left there is kept, but is never
// followed.
//
// TMPDIR is the run's tmp by its own name, which every wall shows, and not
// /tmp, which only some can show in its place; programs that insist on /tmp, as
// Java does unless it is told java.io.tmpdir, work behind those only. Without
// the network package managers are told so and read the person's caches in
// place; with it they download into the run's home. The error is a
// [*LeadsOutError] where a symlink in the workspace would show what lies
// outside of it.
func (w Workshop) Policy() (sandbox.Policy, []string, error) {
	w, err := w.clean()
	if err != nil {
		return sandbox.Policy{}, nil, err
	}
	o := newOutfit(w)
	path := o.toolchains()
	o.caches()
	o.certificates()
	protected, err := w.protected(o)
	if err != nil {
		return sandbox.Policy{}, nil, err
	}
	if err := o.makeHome(); err != nil {
		return sandbox.Policy{}, nil, fmt.Errorf("make the folders of the run: %w", err)
	}
	p := sandbox.Policy{
		Write:  append([]string{w.Root, filepath.Join(w.Home, homeFolder), filepath.Join(w.Home, tmpFolder)}, w.Write...),
		Read:   slices.Concat(o.read, protected, w.Read),
		Tmp:    filepath.Join(w.Home, tmpFolder),
		Aside:  filepath.Join(w.Home, asideFolder),
		Net:    w.Net,
		Limits: w.Limits,
	}
	shown := append(slices.Clone(p.Read), p.Write...)
	p.Hide = slices.Concat([]string{filepath.Join(w.Root, ".hone")}, o.credentials(append(w.Read, w.Write...), shown), w.Hide)
	return p, w.environment(o, path), nil
}

// clean is the workshop with clean paths.
func (w Workshop) clean() (Workshop, error) {
	for _, dir := range []string{w.Root, w.Home} {
		if !filepath.IsAbs(dir) || !utf8.ValidString(dir) {
			return w, fmt.Errorf("%q is not an absolute path in UTF-8", dir)
		}
		if !isDir(dir) {
			return w, fmt.Errorf("%q is not a folder", dir)
		}
	}
	w.Root, w.Home = filepath.Clean(w.Root), filepath.Clean(w.Home)
	root, run := realPath(w.Root), realPath(w.Home)
	switch {
	case filepath.Dir(root) == root:
		return w, fmt.Errorf("the workspace is the whole machine: choose a folder of your project")
	case sandbox.Holds(root, run):
		return w, fmt.Errorf("the run's folder %s lies in the workspace %s, where commands could change it", w.Home, w.Root)
	case sandbox.Holds(run, root):
		return w, fmt.Errorf("the workspace %s lies in the run's folder %s", w.Root, w.Home)
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

// protected are the paths in the workspace that stay as they are, and what of
// its repository lies elsewhere.
func (w Workshop) protected(o *outfit) ([]string, error) {
	git, err := o.gitFiles()
	if err != nil {
		return nil, err
	}
	paths := append(git, filepath.Join(w.Root, ".config", "hone.toml"), filepath.Join(w.Root, ".config", "bork.json"))
	for _, path := range w.Protect {
		paths = append(paths, filepath.Clean(absolute(w.Root, path)))
	}
	return o.held(paths, slices.Concat(w.Read, w.Write))
}

// environment is what commands are started with: what is plain of the person's,
// then what the outfit sets, then what the configuration lists.
func (w Workshop) environment(o *outfit, path []string) []string {
	vars := map[string]string{"TERM": "dumb", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "PAGER": "cat"}
	for _, kv := range environ.Without(w.Environ, w.Drop) {
		if name := environ.Name(kv); plain(name) && utf8.ValidString(kv) {
			vars[name] = environ.Value(w.Environ, name)
		}
	}
	for _, kv := range o.vars {
		vars[environ.Name(kv)] = environ.Value([]string{kv}, environ.Name(kv))
	}
	for _, kv := range w.Environ {
		if name := environ.Name(kv); slices.ContainsFunc(w.Keep, func(k string) bool { return environ.Same(k, name) }) {
			vars[name] = environ.Value(w.Environ, name)
		}
	}
	if len(path) == 0 {
		path = []string{"/usr/local/bin", "/usr/bin", "/bin"}
	}
	vars["PATH"] = strings.Join(path, string(filepath.ListSeparator))
	vars["HOME"] = o.own("")
	vars["TMPDIR"] = filepath.Join(w.Home, tmpFolder)
	var env []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// plain reports whether a variable is passed on: one that says how to work, and
// holds no key.
func plain(name string) bool {
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

// certificates passes on the person's own certificate authorities, as far as
// they are files, and with the network the proxies, as far as their addresses
// hold no password.
func (o *outfit) certificates() {
	for _, name := range []string{
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
		"PIP_CERT", "NIX_SSL_CERT_FILE", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",
	} {
		path := o.get(name)
		certificate := slices.Contains([]string{".pem", ".crt", ".cer"}, filepath.Ext(path)) && !isDir(path)
		if filepath.IsAbs(path) && exists(path) && (o.shown(filepath.Clean(path)) || certificate && o.show(path)) {
			o.set(name, path)
		}
	}
	if !o.net {
		return
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		if address := o.get(name); address != "" && !secretURL(address) {
			o.set(name, address)
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if hosts := o.get(name); hosts != "" {
			o.set(name, hosts)
		}
	}
}
