package workshop

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Without the network Go reads the user's module cache in place. With it, Go uses an overlay of that cache at the same path, so
// that what it compiled there for the user fits here; or else copies modules to the run's home, first from that cache.
func (w *Workshop) goCaches() {
	w.goBuildCache()
	for _, name := range []string{"GOFLAGS", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOEXPERIMENT", "CGO_ENABLED"} {
		if value := w.goVar(name); value != "" {
			w.set(name, withoutFlag(value, "-modcacherw"))
		}
	}
	cache := w.goVar("GOMODCACHE")
	if paths := w.gopath(); cache == "" && len(paths) > 0 {
		cache = filepath.Join(paths[0], "pkg", "mod")
	}
	if !isDir(cache) || !w.show(cache) {
		cache = ""
	}
	if !w.Net {
		if cache != "" {
			w.set("GOMODCACHE", cache)
		}
		w.set("GOPROXY", "off")
		w.set("GOSUMDB", "off")
		return
	}
	w.set("GOMODCACHE", w.inHome("go/pkg/mod"))
	safe := slices.DeleteFunc(strings.FieldsFunc(w.goVar("GOPROXY"), func(r rune) bool { return r == ',' || r == '|' }), secretURL)
	proxies := cmp.Or(strings.Join(safe, ","), "https://proxy.golang.org,direct")
	if cache != "" {
		w.overlay(cache, cache, "GOMODCACHE="+cache, "GOPROXY="+proxies)
	}
	if dir := filepath.Join(cache, "cache", "download"); cache != "" && isDir(dir) {
		proxies = (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String() + "," + proxies
	}
	w.set("GOPROXY", proxies)
	if db := w.goVar("GOSUMDB"); db != "" {
		w.set("GOSUMDB", db)
	}
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

func (w *Workshop) gopath() []string {
	if path := w.goVar("GOPATH"); path != "" {
		return filepath.SplitList(path)
	}
	if w.userHome == "" {
		return nil
	}
	return []string{w.homePath("go")}
}

// A setting is a variable, or a line of the file that `go env -w` writes.
func (w *Workshop) goVar(name string) string {
	if value := w.get(name); value != "" {
		return value
	}
	file := w.get("GOENV")
	if file == "" {
		file = filepath.Join(w.get("XDG_CONFIG_HOME"), "go", "env")
		if w.get("XDG_CONFIG_HOME") == "" {
			file = w.homePath(".config/go/env")
		}
	}
	if !filepath.IsAbs(file) || w.inside(file) {
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
