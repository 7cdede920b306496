//go:build unix

package workshop

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// With the network there are overlays of the user's caches, unless the configuration
// opens or hides them, or they are not fit to be shown.
func TestOverlays(t *testing.T) {
	const (
		goMod    = "person/go/pkg/mod = person/go/pkg/mod GOMODCACHE=%/person/go/pkg/mod GOPROXY=https://proxy.example"
		registry = "cache/run/home/.cargo/registry = person/.cargo/registry"
		npm      = "cache/run/home/.npm/_cacache = person/.npm/_cacache"
		pip      = "cache/run/home/.cache/pip = person/.cache/pip"
	)
	for name, c := range map[string]struct {
		change func(b *bench)
		want   []string
	}{
		"all":                 {func(*bench) {}, []string{goMod, registry, npm, pip}},
		"without the network": {func(b *bench) { b.shop.Net = false }, nil},
		"hidden":              {func(b *bench) { b.shop.Hide = []string{b.home + "/.npm", b.home + "/.cargo/registry/x"} }, []string{goMod, pip}},
		"shared":              {func(b *bench) { b.shop.Write = []string{b.home + "/go"} }, []string{registry, npm, pip}},
		"a variable of the configuration": {
			func(b *bench) { b.shop.Keep = []string{"GOPROXY"} },
			[]string{strings.TrimSuffix(goMod, " GOPROXY=https://proxy.example"), registry, npm, pip},
		},
		"other places": {
			func(b *bench) {
				b.env("GOMODCACHE=%/other/mod", "npm_config_cache=%/other", "CARGO_HOME=%/missing", "PIP_CACHE_DIR=%/other/pip")
			},
			[]string{strings.ReplaceAll(goMod, "person/go/pkg/mod", "other/mod"), "cache/run/home/.npm/_cacache = other/_cacache", "cache/run/home/.cache/pip = other/pip"},
		},
		"unfit places": {
			func(b *bench) {
				b.env("GOMODCACHE=%/person", "npm_config_cache=%/src/project", "CARGO_HOME=%/person/.ssh", "PIP_CACHE_DIR=%/person/.config")
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "person/go/pkg/mod/x", "person/.cargo/registry/x", "person/.cargo/credentials.toml", "person/.npm/_cacache/x", "person/.cache/pip/x",
				"person/.config/x", "person/.ssh/registry/x", "other/mod/x", "other/_cacache/x", "other/pip/x", "src/project/_cacache/x")
			b.env("GOPROXY=https://proxy.example")
			b.shop.Net = true
			c.change(b)
			p, _ := b.policy(t)
			var got []string
			for _, o := range p.Overlays {
				got = append(got, strings.ReplaceAll(strings.Join(append([]string{strings.TrimPrefix(o.Path, b.base+"/"), "=", strings.TrimPrefix(o.Lower, b.base+"/")}, o.Env...), " "), b.base, "%"))
				if info, err := os.Lstat(o.Path); err != nil || !info.IsDir() {
					t.Errorf("%s is not a directory: %v", o.Path, err)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			b.check(t, p, "none", "cache/run/layers", "person/.cargo/credentials.toml")
		})
	}
}
