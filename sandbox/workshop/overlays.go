package workshop

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
	"hone/sandbox/internal/environ"
)

// userCache is a cache that its program writes even when it only reads.
type userCache struct {
	inHome   string   // its usual directory in a home
	places   []string // where it may be, the first that exists; ~ is the user's home
	online   bool     // of no use without the network
	compiled bool     // contains what the user compiled
}

// Commands only see overlays of these caches.
func userCaches() []userCache {
	return []userCache{
		{inHome: ".cache/pip", places: []string{"$PIP_CACHE_DIR", "$XDG_CACHE_HOME/pip", "~/.cache/pip"}, online: true},
		{inHome: ".cache/uv", places: []string{"$UV_CACHE_DIR", "$XDG_CACHE_HOME/uv", "~/.cache/uv"}},
		{inHome: pnpmStore, places: []string{"$PNPM_HOME/store", "$XDG_DATA_HOME/pnpm/store", "~/" + pnpmStore}},
		{inHome: ".cache/pnpm", places: []string{"$XDG_CACHE_HOME/pnpm", "~/.cache/pnpm"}},
		{inHome: ".cache/yarn", places: []string{"$YARN_CACHE_FOLDER", "$XDG_CACHE_HOME/yarn", "~/.cache/yarn"}},
		{inHome: ".yarn/berry/cache", places: []string{"$YARN_GLOBAL_FOLDER/cache", "$XDG_DATA_HOME/yarn/berry/cache", "~/.yarn/berry/cache"}},
		{inHome: ".yarn/berry/metadata", places: []string{"$YARN_GLOBAL_FOLDER/metadata", "$XDG_DATA_HOME/yarn/berry/metadata", "~/.yarn/berry/metadata"}},
		{inHome: ".cache/ccache", places: []string{"$CCACHE_DIR", "~/.ccache", "$XDG_CACHE_HOME/ccache", "~/.cache/ccache"}, compiled: true},
		{inHome: ".cache/sccache", places: []string{"$SCCACHE_DIR", "$XDG_CACHE_HOME/sccache", "~/.cache/sccache"}, compiled: true},
	}
}

// pnpmStore is where pnpm keeps packages in a home.
const pnpmStore = ".local/share/pnpm/store"

// Commands see no compiler's cache if they may not see Go's build cache.
func (o *outfit) overlaidCaches() {
	for _, c := range userCaches() {
		dir := o.firstDir(c.places)
		if dir == "" || c.online && !o.net || c.compiled && (o.self == "" || remoteCache(dir)) {
			continue
		}
		var env []string
		if path := o.inHome(c.inHome); c.inHome == pnpmStore { // pnpm looks for a store on the workspace's file system
			env = []string{"npm_config_store_dir=" + path, "pnpm_config_store_dir=" + path}
		}
		o.overlay(dir, o.inHome(c.inHome), env...)
	}
}

// A place may start with ~ or a variable of the user.
func (o *outfit) firstDir(places []string) string {
	for _, place := range places {
		base, rest, _ := strings.Cut(place, "/")
		dir := o.home
		if variable, ok := strings.CutPrefix(base, "$"); ok {
			dir = o.get(variable)
		}
		if dir = filepath.Join(dir, filepath.FromSlash(rest)); filepath.IsAbs(dir) && isDir(dir) {
			return dir
		}
	}
	return ""
}

// ccache's settings, which can lie in its cache, may name a server whose address contains a password.
func remoteCache(dir string) bool {
	return bytes.Contains(readSettings(filepath.Join(dir, "ccache.conf")), []byte("://"))
}

// env are the variables of commands that find the cache there.
func (o *outfit) overlay(lower, path string, env ...string) {
	if !filepath.IsAbs(lower) || !isDir(lower) || o.inside(lower) || o.unfit(lower) || o.secret(lower) {
		return
	}
	env = slices.DeleteFunc(env, func(kv string) bool { return slices.Contains(o.keep, environ.Name(kv)) })
	o.overlays = append(o.overlays, sandbox.Overlay{Path: path, Lower: filepath.Clean(lower), Env: env})
}

func (o *outfit) overlayDir(dir, name, inHome string) {
	if dir != "" {
		o.overlay(filepath.Join(dir, name), o.inHome(inHome))
	}
}

// Overlays of directories that the policy hides or opens, in part or as a whole, are left out.
func (o *outfit) useOverlays(p *sandbox.Policy) {
	p.Layers = filepath.Join(o.run, layersDir)
	p.Overlays = slices.DeleteFunc(o.overlays, func(v sandbox.Overlay) bool {
		return slices.ContainsFunc(slices.Concat(p.Write, p.Hide), func(path string) bool {
			lower, path := o.realPath(v.Lower), o.realPath(path)
			return sandbox.Within(path, lower) || sandbox.Within(lower, path)
		})
	})
}
