//go:build unix

package workshop

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/sandbox"
)

// overlays returns each overlay of a policy as one text, in which % stands for the
// common directory.
func (b *bench) overlays(t *testing.T, p sandbox.Policy) (texts []string) {
	t.Helper()
	for _, o := range p.Overlays {
		texts = append(texts, strings.ReplaceAll(strings.Join(append([]string{strings.TrimPrefix(o.Path, b.base+"/"), "=", strings.TrimPrefix(o.Lower, b.base+"/")}, o.Env...), " "), b.base, "%"))
		if info, err := os.Lstat(o.Path); err != nil || !info.IsDir() {
			t.Errorf("%s is not a directory: %v", o.Path, err)
		}
	}
	slices.Sort(texts)
	return texts
}

// With the network there are overlays of the user's caches, unless the configuration
// opens or hides them, or they are not fit to be shown.
func TestOverlays(t *testing.T) {
	const (
		goMod    = "person/go/pkg/mod = person/go/pkg/mod GOMODCACHE=%/person/go/pkg/mod GOPROXY=https://proxy.example"
		registry = "cache/run/home/.cargo/registry = person/.cargo/registry"
		npm      = "cache/run/home/.npm/_cacache = person/.npm/_cacache"
		pip      = "cache/run/home/.cache/pip = person/.cache/pip"
		maven    = "cache/run/home/.m2/repository = person/.m2/repository"
	)
	for name, c := range map[string]struct {
		change func(b *bench)
		want   []string
	}{
		"all":                 {func(*bench) {}, []string{goMod, registry, npm, pip, maven}},
		"without the network": {func(b *bench) { b.shop.Net = false }, []string{pip}},
		"hidden":              {func(b *bench) { b.shop.Hide = []string{b.home + "/.npm", b.home + "/.cargo/registry/x"} }, []string{goMod, pip, maven}},
		"shared":              {func(b *bench) { b.shop.Write = []string{b.home + "/go"} }, []string{registry, npm, pip, maven}},
		"a variable of the configuration": {
			func(b *bench) { b.shop.Keep = []string{"GOPROXY"} },
			[]string{strings.TrimSuffix(goMod, " GOPROXY=https://proxy.example"), registry, npm, pip, maven},
		},
		"other places": {
			func(b *bench) {
				b.env("GOMODCACHE=%/other/mod", "npm_config_cache=%/other", "CARGO_HOME=%/missing", "PIP_CACHE_DIR=%/other/pip")
			},
			[]string{strings.ReplaceAll(goMod, "person/go/pkg/mod", "other/mod"), "cache/run/home/.npm/_cacache = other/_cacache", "cache/run/home/.cache/pip = other/pip", maven},
		},
		"unfit places": {
			func(b *bench) {
				b.env("GOMODCACHE=%/person", "npm_config_cache=%/src/project", "CARGO_HOME=%/person/.ssh", "PIP_CACHE_DIR=%/person/.config")
			},
			[]string{maven},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "person/go/pkg/mod/x", "person/.cargo/registry/x", "person/.cargo/credentials.toml", "person/.npm/_cacache/x", "person/.cache/pip/x", "person/.m2/repository/x",
				"person/.config/x", "person/.ssh/registry/x", "other/mod/x", "other/_cacache/x", "other/pip/x", "src/project/_cacache/x")
			b.env("GOPROXY=https://proxy.example")
			b.shop.Net = true
			c.change(b)
			p, _ := b.policy(t)
			if d := cmp.Diff(slices.Sorted(slices.Values(c.want)), b.overlays(t, p)); d != "" {
				t.Error(d)
			}
			b.check(t, p, "none", "cache/run/layers", "person/.cargo/credentials.toml")
		})
	}
}

// Caches that their programs also write without the network are overlays then, too.
// Compilers' caches are none for the roles of a phase, which have no Self.
func TestOverlaidCaches(t *testing.T) {
	const storeVars = " npm_config_store_dir=%/cache/run/home/" + ".local/share/pnpm/store" + " pnpm_config_store_dir=%/cache/run/home/" + ".local/share/pnpm/store"
	overlaid := func(at, lower string) string { return "cache/run/home/" + at + " = " + lower }
	for name, c := range map[string]struct {
		files []string
		vars  []string
		role  bool
		want  []string
	}{
		"usual places": {
			files: []string{"person/.cache/uv/x", "person/" + ".local/share/pnpm/store" + "/x", "person/.cache/pnpm/x", "person/.cache/yarn/x", "person/.yarn/berry/cache/x", "person/.yarn/berry/metadata/x", "person/.ccache/x", "person/.cache/sccache/x"},
			want: []string{
				overlaid(".cache/uv", "person/.cache/uv"), overlaid(".local/share/pnpm/store", "person/"+".local/share/pnpm/store") + storeVars,
				overlaid(".cache/pnpm", "person/.cache/pnpm"), overlaid(".cache/yarn", "person/.cache/yarn"), overlaid(".yarn/berry/cache", "person/.yarn/berry/cache"),
				overlaid(".yarn/berry/metadata", "person/.yarn/berry/metadata"), overlaid(".cache/ccache", "person/.ccache"), overlaid(".cache/sccache", "person/.cache/sccache"),
			},
		},
		"places of variables": {
			files: []string{"caches/uv/x", "data/yarn/berry/cache/x", "person/.cache/uv/x", "cc/x", "person/.ccache/x", "pnpm/store/x"},
			vars:  []string{"XDG_CACHE_HOME=%/caches", "XDG_DATA_HOME=%/data", "CCACHE_DIR=%/cc", "PNPM_HOME=%/pnpm", "YARN_GLOBAL_FOLDER=relative"},
			want: []string{overlaid(".cache/uv", "caches/uv"), overlaid(".local/share/pnpm/store", "pnpm/store") + storeVars,
				overlaid(".yarn/berry/cache", "data/yarn/berry/cache"), overlaid(".cache/ccache", "cc")},
		},
		"a role":                               {files: []string{"person/.cache/ccache/x", "person/.cache/sccache/x"}, role: true},
		"settings that may contain a password": {files: []string{"remote/x"}, vars: []string{"CCACHE_DIR=%/remote"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.files...)
			b.write(t, "remote/ccache.conf", "remote_storage = redis://me:password@host\n")
			b.env(c.vars...)
			if !c.role {
				b.shop.Self = "/bin/hone"
			}
			p, _ := b.policy(t)
			if d := cmp.Diff(slices.Sorted(slices.Values(c.want)), b.overlays(t, p)); d != "" {
				t.Error(d)
			}
		})
	}
}
