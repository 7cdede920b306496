package workshop

import (
	"bufio"
	"bytes"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// caches shows what package managers have downloaded. It configures them to use
// only that or, with the network, to download more into the run's home. Behind
// walls with overlays they then find the user's caches too, and what they change
// there stays in the run. The user's caches are never written.
func (o *outfit) caches() {
	o.goCaches()
	o.cargoCaches()
	o.javaCaches()
	o.nodeCaches()
	o.pythonCaches()
	o.otherCaches()
	o.overlaidCaches()
}

// It is empty if the directory does not exist or is unfit.
func (o *outfit) showDir(dir, name string) string {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if dir == "" || !isDir(path) || !o.show(path) {
		return ""
	}
	return path
}

// Without the network Go reads the user's module cache in place. With it, Go uses an overlay of that cache at the same path, so
// that what it compiled there for the user fits here; or else copies modules to the run's home, first from that cache.
func (o *outfit) goCaches() {
	o.set("GOENV", "off")
	o.set("GOPATH", o.inHome("go"))
	o.goBuildCache()
	o.set("GOTOOLCHAIN", "local")
	o.set("GOTELEMETRY", "off")
	for _, name := range []string{"GOFLAGS", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOEXPERIMENT", "CGO_ENABLED"} {
		if value := o.goVar(name); value != "" {
			o.set(name, withoutFlag(value, "-modcacherw"))
		}
	}
	cache := o.showDir(o.goModCache(), "")
	if !o.net {
		if cache != "" {
			o.set("GOMODCACHE", cache)
		}
		o.set("GOPROXY", "off")
		o.set("GOSUMDB", "off")
		return
	}
	o.set("GOMODCACHE", o.inHome("go/pkg/mod"))
	proxies := withoutPasswords(o.goVar("GOPROXY"))
	if cache != "" {
		o.overlay(cache, cache, "GOMODCACHE="+cache, "GOPROXY="+proxies)
	}
	if dir := filepath.Join(cache, "cache", "download"); cache != "" && isDir(dir) {
		proxies = (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String() + "," + proxies
	}
	o.set("GOPROXY", proxies)
	if db := o.goVar("GOSUMDB"); db != "" {
		o.set("GOSUMDB", db)
	}
}

// The default ones remain if there are no others.
func withoutPasswords(proxies string) string {
	kept := slices.DeleteFunc(strings.FieldsFunc(proxies, func(r rune) bool { return r == ',' || r == '|' }), secretURL)
	if len(kept) == 0 {
		return "https://proxy.golang.org,direct"
	}
	return strings.Join(kept, ",")
}

func secretURL(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	return err != nil || u.User != nil || strings.Contains(address, "@")
}

func withoutFlag(flags, flag string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(flags), func(f string) bool {
		return f == flag || strings.HasPrefix(f, flag+"=") || f == "-"+flag
	}), " ")
}

func (o *outfit) goModCache() string {
	dir := o.goVar("GOMODCACHE")
	if dir == "" && len(o.gopath()) > 0 {
		dir = filepath.Join(o.gopath()[0], "pkg", "mod")
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

func (o *outfit) gopath() []string {
	if path := o.goVar("GOPATH"); path != "" {
		return filepath.SplitList(path)
	}
	if o.home == "" {
		return nil
	}
	return []string{o.homePath("go")}
}

// A setting is a variable, or a line of the file that `go env -w` writes.
func (o *outfit) goVar(name string) string {
	if value := o.get(name); value != "" {
		return value
	}
	file := o.get("GOENV")
	if file == "" {
		file = filepath.Join(o.get("XDG_CONFIG_HOME"), "go", "env")
		if o.get("XDG_CONFIG_HOME") == "" {
			file = o.homePath(".config/go/env")
		}
	}
	if !filepath.IsAbs(file) || o.inside(file) {
		return ""
	}
	lines := bufio.NewScanner(bytes.NewReader(readSettings(file)))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+"="); ok {
			return value
		}
	}
	return ""
}

// maxSettings is how many bytes of a file with settings are read.
const maxSettings = 1 << 20

func readSettings(path string) []byte {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSettings))
	if err != nil {
		return nil
	}
	return data
}

// Cargo's home is in the run's home, with links to the user's programs and, without the network, to the downloaded crates; with
// it, there are overlays of these. Cargo's settings may contain tokens and are not shown.
func (o *outfit) cargoCaches() {
	o.set("CARGO_HOME", o.inHome(".cargo"))
	cargo := o.dir("CARGO_HOME", ".cargo")
	names := []string{"bin"}
	if o.net {
		o.overlayDir(cargo, "registry", ".cargo/registry")
		o.overlayDir(cargo, "git", ".cargo/git")
	} else {
		o.set("CARGO_NET_OFFLINE", "true")
		names = append(names, "registry", "git")
	}
	for _, name := range names {
		if dir := o.showDir(cargo, name); dir != "" {
			o.link(".cargo/"+name, dir)
		}
	}
	rustup := o.dir("RUSTUP_HOME", ".rustup")
	if o.showDir(rustup, "toolchains") != "" {
		o.show(filepath.Join(rustup, "settings.toml"))
		o.set("RUSTUP_HOME", rustup)
		o.set("RUSTUP_AUTO_INSTALL", "0")
	}
}

// Maven and Gradle write to their caches even when they only read, so their caches are in the run's home. Without the network
// Maven's is a link to the user's repository; with it Maven (3.9 or later) reads that repository first. Gradle has a variable
// for a read-only cache. The Java virtual machine ignores HOME and TMPDIR, so it needs options.
func (o *outfit) javaCaches() {
	if home := o.inHome(""); !strings.ContainsAny(home, " \t") {
		options := "-Duser.home=" + home + " -Djava.io.tmpdir=" + filepath.Join(o.run, tmpDir)
		o.set("MAVEN_OPTS", options)
		o.set("GRADLE_OPTS", options)
	}
	if repository := o.showDir(o.homePath(".m2"), "repository"); repository != "" {
		if o.net {
			o.set("MAVEN_ARGS", "-Dmaven.repo.local.tail="+repository)
		} else {
			o.link(".m2/repository", repository)
		}
	}
	if !o.net {
		o.set("MAVEN_ARGS", "--offline")
	}
	o.set("GRADLE_USER_HOME", o.inHome(".gradle"))
	gradle := o.dir("GRADLE_USER_HOME", ".gradle")
	if o.showDir(gradle, "caches/modules-2") != "" {
		o.set("GRADLE_RO_DEP_CACHE", filepath.Join(gradle, "caches"))
	}
}

// npm's cache is in the run's home; the packages in it are a link to the user's or, with the network, an overlay of them.
func (o *outfit) nodeCaches() {
	o.set("npm_config_cache", o.inHome(".npm"))
	o.set("npm_config_update_notifier", "false")
	o.set("npm_config_fund", "false")
	o.set("npm_config_audit", "false")
	npm := o.dir("npm_config_cache", ".npm")
	if o.net {
		o.overlayDir(npm, "_cacache", ".npm/_cacache")
	} else {
		o.set("npm_config_offline", "true")
		o.set("COREPACK_ENABLE_NETWORK", "0")
		if cache := o.showDir(npm, "_cacache"); cache != "" {
			o.link(".npm/_cacache", cache)
		}
	}
	o.setDir("COREPACK_HOME", ".cache/node/corepack")
	o.setDir("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright")
}

func (o *outfit) setDir(variable, usual string) {
	if dir := o.dir(variable, usual); dir != "" && o.show(dir) {
		o.set(variable, dir)
	}
}

// Packages that the user installed can be imported. pip cannot use its cache without an index, so that is shown only with the
// network.
func (o *outfit) pythonCaches() {
	o.set("PIP_DISABLE_PIP_VERSION_CHECK", "1")
	if !o.net {
		o.set("PIP_NO_INDEX", "1")
		o.set("UV_OFFLINE", "1")
	}
	base := o.dir("PYTHONUSERBASE", ".local")
	sites, err := filepath.Glob(filepath.Join(base, "lib", "python3*", "site-packages"))
	if base == "" || err != nil || len(sites) == 0 {
		return
	}
	for _, site := range sites {
		o.show(site)
	}
	o.set("PYTHONUSERBASE", base)
}

// .NET has a variable for a read-only cache.
func (o *outfit) otherCaches() {
	o.set("DOTNET_CLI_HOME", o.inHome(""))
	o.set("DOTNET_CLI_TELEMETRY_OPTOUT", "1")
	o.set("DOTNET_NOLOGO", "1")
	if packages := o.dir("NUGET_PACKAGES", ".nuget/packages"); packages != "" && o.show(packages) {
		o.set("NUGET_FALLBACK_PACKAGES", packages)
	}
}
