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

// caches shows what package managers have downloaded, and sets them up to work
// with that alone or, with the network, to add to it in the per-run home: what
// they have is never written.
func (o *outfit) caches() {
	o.goCaches()
	o.cargoCaches()
	o.javaCaches()
	o.nodeCaches()
	o.pythonCaches()
	o.otherCaches()
}

// showDir shows a folder below another, and returns it; empty where it is not
// there or not fit.
func (o *outfit) showDir(dir, name string) string {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if dir == "" || !isDir(path) || !o.show(path) {
		return ""
	}
	return path
}

// goCaches: without the network Go reads the person's module cache in place;
// with it, modules go to the per-run home and come from that cache first.
func (o *outfit) goCaches() {
	o.set("GOENV", "off")
	o.set("GOPATH", o.own("go"))
	o.set("GOCACHE", o.own(".cache/go-build"))
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
	o.set("GOMODCACHE", o.own("go/pkg/mod"))
	proxies := withoutPasswords(o.goVar("GOPROXY"))
	if dir := filepath.Join(cache, "cache", "download"); cache != "" && isDir(dir) {
		proxies = (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String() + "," + proxies
	}
	o.set("GOPROXY", proxies)
	if db := o.goVar("GOSUMDB"); db != "" {
		o.set("GOSUMDB", db)
	}
}

// withoutPasswords are Go's proxies without those whose address holds a
// password; the usual ones where that leaves none.
func withoutPasswords(proxies string) string {
	kept := slices.DeleteFunc(strings.FieldsFunc(proxies, func(r rune) bool { return r == ',' || r == '|' }), secretURL)
	if len(kept) == 0 {
		return "https://proxy.golang.org,direct"
	}
	return strings.Join(kept, ",")
}

// secretURL reports whether an address holds a name or password.
func secretURL(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	return err != nil || u.User != nil || strings.Contains(address, "@")
}

// withoutFlag takes a flag out of GOFLAGS.
func withoutFlag(flags, flag string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(flags), func(f string) bool {
		return f == flag || strings.HasPrefix(f, flag+"=") || f == "-"+flag
	}), " ")
}

// goModCache is where the person's Go keeps modules; empty where it has none.
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

// gopath are the folders of the person's GOPATH.
func (o *outfit) gopath() []string {
	if path := o.goVar("GOPATH"); path != "" {
		return filepath.SplitList(path)
	}
	if o.home == "" {
		return nil
	}
	return []string{o.below("go")}
}

// goVar is one of Go's settings: a variable, or a line of the file that `go env
// -w` writes.
func (o *outfit) goVar(name string) string {
	if value := o.get(name); value != "" {
		return value
	}
	file := o.get("GOENV")
	if file == "" {
		file = filepath.Join(o.get("XDG_CONFIG_HOME"), "go", "env")
		if o.get("XDG_CONFIG_HOME") == "" {
			file = o.below(".config/go/env")
		}
	}
	if !filepath.IsAbs(file) || o.inside(file) {
		return ""
	}
	lines := bufio.NewScanner(bytes.NewReader(smallFile(file)))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+"="); ok {
			return value
		}
	}
	return ""
}

// mostSettings is as much as is read of a file with settings, in bytes.
const mostSettings = 1 << 20

// smallFile is what a regular file holds, or as much as settings may; nil where
// it cannot be read.
func smallFile(path string) []byte {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostSettings))
	if err != nil {
		return nil
	}
	return data
}

// cargoCaches: Cargo's home is the run's, with links to the person's programs
// and, without the network, to the crates that are there. Cargo's settings may
// hold tokens and stay away.
func (o *outfit) cargoCaches() {
	o.set("CARGO_HOME", o.own(".cargo"))
	cargo := o.dir("CARGO_HOME", ".cargo")
	names := []string{"bin"}
	if !o.net {
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

// javaCaches: Maven and Gradle write to their caches even to read them, so
// theirs are the run's. Maven's leads to the person's repository without the
// network, and asks it first with the network (from Maven 3.9 on); Gradle has
// a variable for a cache to read. The Java machine believes neither HOME nor
// TMPDIR.
func (o *outfit) javaCaches() {
	if home := o.own(""); !strings.ContainsAny(home, " \t") {
		options := "-Duser.home=" + home + " -Djava.io.tmpdir=" + filepath.Join(o.run, tmpFolder)
		o.set("MAVEN_OPTS", options)
		o.set("GRADLE_OPTS", options)
	}
	if repository := o.showDir(o.below(".m2"), "repository"); repository != "" {
		if o.net {
			o.set("MAVEN_ARGS", "-Dmaven.repo.local.tail="+repository)
		} else {
			o.link(".m2/repository", repository)
		}
	}
	if !o.net {
		o.set("MAVEN_ARGS", "--offline")
	}
	o.set("GRADLE_USER_HOME", o.own(".gradle"))
	gradle := o.dir("GRADLE_USER_HOME", ".gradle")
	if o.showDir(gradle, "caches/modules-2") != "" {
		o.set("GRADLE_RO_DEP_CACHE", filepath.Join(gradle, "caches"))
	}
}

// nodeCaches: npm reads the packages that it has by a link, without the
// network; with it, its cache is the run's.
func (o *outfit) nodeCaches() {
	o.set("npm_config_cache", o.own(".npm"))
	o.set("npm_config_update_notifier", "false")
	o.set("npm_config_fund", "false")
	o.set("npm_config_audit", "false")
	if !o.net {
		o.set("npm_config_offline", "true")
		o.set("COREPACK_ENABLE_NETWORK", "0")
		if cache := o.showDir(o.dir("npm_config_cache", ".npm"), "_cacache"); cache != "" {
			o.link(".npm/_cacache", cache)
		}
	}
	o.setDir("COREPACK_HOME", ".cache/node/corepack")
	o.setDir("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright")
}

// setDir shows the folder of a variable, or its usual place, and sets it.
func (o *outfit) setDir(variable, usual string) {
	if dir := o.dir(variable, usual); dir != "" && o.show(dir) {
		o.set(variable, dir)
	}
}

// pythonCaches: packages that the person installed for themselves can be
// imported. pip cannot use its cache without an index, so that is not shown.
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

// otherCaches are those of languages that have a variable for a folder to read.
func (o *outfit) otherCaches() {
	o.set("DOTNET_CLI_HOME", o.own(""))
	o.set("DOTNET_CLI_TELEMETRY_OPTOUT", "1")
	o.set("DOTNET_NOLOGO", "1")
	if packages := o.dir("NUGET_PACKAGES", ".nuget/packages"); packages != "" && o.show(packages) {
		o.set("NUGET_FALLBACK_PACKAGES", packages)
	}
}
