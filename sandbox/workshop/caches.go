package workshop

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// toolchain is what commands find of the toolchains of one language. Package managers are
// configured to use only what they have downloaded or, with the network, to download more into
// the run's home. The user's caches are never written.
type toolchain struct {
	name string
	// managers install toolchains below one directory, in which only the files that
	// credentials names are secret. It is shown if PATH or the variable names it.
	managers []manager
	shown    []string // variables that name a directory to show
	set      []string // KEY=VALUE; a value that starts with ~/ is in the run's home
	offline  []string // the same, without the network
	caches   []cache
	more     func(*Workshop) // what does not fit into a row; may be nil
}

type manager struct{ variable, usual string }

// cache is a directory of the user's.
type cache struct {
	at     []string // where it may be, the first that exists; ~ is the user's home
	inHome string   // where commands find it in the run's home; empty: in place, by the variable
	by     string   // the variable that names it in place
	parts  []string // patterns of what is shown of it in place; nil means all
	set    []string // KEY=VALUE of commands that use the overlay
	how    how
}

// how is how commands find a cache in the run's home.
type how int

const (
	lent     how = iota // a link or, with the network, an overlay
	written             // an overlay: its program writes even when it only reads
	compiled            // the same; contains what the user compiled
)

func toolchains() []toolchain {
	return []toolchain{
		{name: "Go", managers: []manager{{"GOENV_ROOT", ".goenv"}}, shown: []string{"GOROOT"},
			set: []string{"GOENV=off", "GOPATH=~/go", "GOTOOLCHAIN=local", "GOTELEMETRY=off"}, more: (*Workshop).goCaches},
		{name: "Rust", managers: []manager{{"ELAN_HOME", ".elan"}}, set: []string{"CARGO_HOME=~/.cargo", "RUSTUP_AUTO_INSTALL=0"}, offline: []string{"CARGO_NET_OFFLINE=true"},
			caches: []cache{ // cargo's settings may contain tokens and are not shown
				{at: []string{"$CARGO_HOME/registry", "~/.cargo/registry"}, inHome: ".cargo/registry"},
				{at: []string{"$CARGO_HOME/git", "~/.cargo/git"}, inHome: ".cargo/git"},
				{at: []string{"$RUSTUP_HOME", "~/.rustup"}, by: "RUSTUP_HOME", parts: []string{"toolchains", "settings.toml"}},
			}},
		{name: "Java", managers: []manager{{"JENV_ROOT", ".jenv"}},
			shown: []string{"JAVA_HOME", "JDK_HOME", "MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT", "SCALA_HOME", "KOTLIN_HOME"},
			set:   []string{"GRADLE_USER_HOME=~/.gradle"}, offline: []string{"MAVEN_ARGS=--offline"},
			caches: []cache{ // Maven and Gradle write to their caches even when they only read; Gradle has a variable for a read-only one
				{at: []string{"~/.m2/repository"}, inHome: ".m2/repository"},
				{at: []string{"$GRADLE_USER_HOME/caches", "~/.gradle/caches"}, by: "GRADLE_RO_DEP_CACHE", parts: []string{"modules-2"}},
			}, more: (*Workshop).java},
		{name: "Node", managers: []manager{{"NODENV_ROOT", ".nodenv"}, {"VOLTA_HOME", ".volta"}, {"BUN_INSTALL", ".bun"}, {"DENO_INSTALL", ".deno"}}, shown: []string{"NODE_HOME"},
			set:     []string{"npm_config_cache=~/.npm", "npm_config_update_notifier=false", "npm_config_fund=false", "npm_config_audit=false"},
			offline: []string{"npm_config_offline=true", "COREPACK_ENABLE_NETWORK=0"},
			caches: []cache{
				{at: []string{"$npm_config_cache/_cacache", "~/.npm/_cacache"}, inHome: ".npm/_cacache"},
				{at: []string{"$COREPACK_HOME", "~/.cache/node/corepack"}, by: "COREPACK_HOME"},
				{at: []string{"$PLAYWRIGHT_BROWSERS_PATH", "~/.cache/ms-playwright"}, by: "PLAYWRIGHT_BROWSERS_PATH"},
				// pnpm looks for a store on the workspace's file system.
				{at: []string{"$PNPM_HOME/store", "$XDG_DATA_HOME/pnpm/store", "~/.local/share/pnpm/store"}, inHome: ".local/share/pnpm/store", how: written,
					set: []string{"npm_config_store_dir=~/.local/share/pnpm/store", "pnpm_config_store_dir=~/.local/share/pnpm/store"}},
				{at: []string{"$XDG_CACHE_HOME/pnpm", "~/.cache/pnpm"}, inHome: ".cache/pnpm", how: written},
				{at: []string{"$YARN_CACHE_FOLDER", "$XDG_CACHE_HOME/yarn", "~/.cache/yarn"}, inHome: ".cache/yarn", how: written},
				{at: []string{"$YARN_GLOBAL_FOLDER/cache", "$XDG_DATA_HOME/yarn/berry/cache", "~/.yarn/berry/cache"}, inHome: ".yarn/berry/cache", how: written},
				{at: []string{"$YARN_GLOBAL_FOLDER/metadata", "$XDG_DATA_HOME/yarn/berry/metadata", "~/.yarn/berry/metadata"}, inHome: ".yarn/berry/metadata", how: written},
			}},
		{name: "Python", managers: []manager{{"PYENV_ROOT", ".pyenv"}, {"RYE_HOME", ".rye"}}, shown: []string{"VIRTUAL_ENV", "CONDA_PREFIX"},
			set: []string{"PIP_DISABLE_PIP_VERSION_CHECK=1"}, offline: []string{"PIP_NO_INDEX=1", "UV_OFFLINE=1"},
			caches: []cache{
				{at: []string{"$PIP_CACHE_DIR", "$XDG_CACHE_HOME/pip", "~/.cache/pip"}, inHome: ".cache/pip", how: written},
				{at: []string{"$UV_CACHE_DIR", "$XDG_CACHE_HOME/uv", "~/.cache/uv"}, inHome: ".cache/uv", how: written},
				{at: []string{"$PYTHONUSERBASE", "~/.local"}, by: "PYTHONUSERBASE", parts: []string{"lib/python3*/site-packages"}}, // what the user installed
			}},
		{name: "Ruby", managers: []manager{{"RBENV_ROOT", ".rbenv"}}, shown: []string{"GEM_HOME"}},
		{name: "PHP", managers: []manager{{"PHPENV_ROOT", ".phpenv"}}},
		{name: ".NET", managers: []manager{{"DOTNET_ROOT", ".dotnet"}},
			set:    []string{"DOTNET_CLI_HOME=~/", "DOTNET_CLI_TELEMETRY_OPTOUT=1", "DOTNET_NOLOGO=1"},
			caches: []cache{{at: []string{"$NUGET_PACKAGES", "~/.nuget/packages"}, by: "NUGET_FALLBACK_PACKAGES"}}},
		{name: "C, CMake",
			caches: []cache{
				{at: []string{"$CCACHE_DIR", "~/.ccache", "$XDG_CACHE_HOME/ccache", "~/.cache/ccache"}, inHome: ".cache/ccache", how: compiled},
				{at: []string{"$SCCACHE_DIR", "$XDG_CACHE_HOME/sccache", "~/.cache/sccache"}, inHome: ".cache/sccache", how: compiled},
			}},
		{name: "several", managers: []manager{{"PLENV_ROOT", ".plenv"}, {"ASDF_DATA_DIR", ".asdf"}, {"PROTO_HOME", ".proto"}, {"OPAMROOT", ".opam"}, {"MISE_DATA_DIR", ".local/share/mise"}}},
	}
}

func (w *Workshop) setAll(vars []string) {
	for _, kv := range vars {
		name, value, _ := strings.Cut(kv, "=")
		w.set(name, w.ofRun(value))
	}
}

func (w *Workshop) ofRun(value string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		return w.inHome(rest)
	}
	return value
}

func (w *Workshop) caches() {
	for _, t := range toolchains() {
		w.setAll(t.set)
		if !w.Net {
			w.setAll(t.offline)
		}
		for _, c := range t.caches {
			w.cache(c)
		}
		if t.more != nil {
			t.more(w)
		}
	}
}

// Commands see no compiler's cache if they may not see Go's build cache.
func (w *Workshop) cache(c cache) {
	at := c.at
	if first, _, _ := strings.Cut(at[0], "/"); c.how < written && w.get(strings.TrimPrefix(first, "$")) != "" {
		at = at[:1] // the variable names the only place
	}
	dir := ""
	for _, place := range at { // it may start with ~ or a variable of the user
		base, rest, _ := strings.Cut(place, "/")
		top := w.userHome
		if variable, ok := strings.CutPrefix(base, "$"); ok {
			top = w.get(variable)
		}
		if top = filepath.Join(top, filepath.FromSlash(rest)); dir == "" && filepath.IsAbs(top) && isDir(top) {
			dir = top
		}
	}
	switch {
	case dir == "":
	case c.by != "":
		parts := []string{dir}
		if c.parts != nil {
			parts = globs(dir, c.parts)
		}
		if w.showAll(parts) {
			w.set(c.by, dir)
		}
	case c.how == lent && !w.Net:
		if w.show(dir) {
			w.link(c.inHome, dir)
		}
	case c.how == compiled && (w.Self == "" || bytes.Contains(readSettings(filepath.Join(dir, "ccache.conf")), []byte("://"))):
		// These settings may name a server whose address contains a password.
	default:
		var set []string
		for _, kv := range c.set {
			name, value, _ := strings.Cut(kv, "=")
			set = append(set, name+"="+w.ofRun(value))
		}
		w.overlay(dir, w.inHome(c.inHome), set...)
	}
}

// The Java virtual machine ignores HOME and TMPDIR, so it needs options.
func (w *Workshop) java() {
	if home := w.inHome(""); !strings.ContainsAny(home, " \t") {
		options := "-Duser.home=" + home + " -Djava.io.tmpdir=" + filepath.Join(w.Home, tmpDir)
		w.set("MAVEN_OPTS", options)
		w.set("GRADLE_OPTS", options)
	}
}

// env are the variables of commands that find the cache there.
func (w *Workshop) overlay(lower, path string, env ...string) {
	if !filepath.IsAbs(lower) || !isDir(lower) || w.inside(lower) || w.unfit(lower) || w.secret(lower) {
		return
	}
	env = slices.DeleteFunc(env, func(kv string) bool { return slices.Contains(w.Keep, sandbox.EnvName(kv)) })
	w.overlays = append(w.overlays, sandbox.Overlay{Path: path, Lower: filepath.Clean(lower), Env: env})
}
