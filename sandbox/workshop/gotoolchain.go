package workshop

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// goCacheName marks a command line as that of Go's cache program.
const goCacheName = "hone-go-cache"

// Helper serves Go's build cache and exits if this process was started as Go's
// cache program; otherwise it returns at once. Every program that is a Self must
// call it first in main. Go itself starts it behind the walls, so that it can do
// what any command can do.
func Helper() {
	if len(os.Args) != 4 || os.Args[1] != goCacheName {
		return
	}
	if err := (goCache{seed: os.Args[2], own: os.Args[3]}).serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, goCacheName+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// goCache is a build cache of Go. It reads the user's cache, and writes one of its
// own in the same format.
type goCache struct{ seed, own string }

// cacheRequest and cacheResponse are the messages of Go's protocol for cache
// programs (Go 1.24 and later): JSON values, and after a "put" with a size its body
// as a string in base64.
type cacheRequest struct {
	ID       int64
	Command  string
	ActionID []byte
	OutputID []byte
	BodySize int64
}

type cacheResponse struct {
	ID            int64
	Err           string     `json:",omitempty"`
	KnownCommands []string   `json:",omitempty"`
	Miss          bool       `json:",omitempty"`
	OutputID      []byte     `json:",omitempty"`
	Size          int64      `json:",omitempty"`
	Time          *time.Time `json:",omitempty"`
	DiskPath      string     `json:",omitempty"`
}

func (c goCache) serve(in io.Reader, out io.Writer) error {
	requests, responses := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	if err := responses.Encode(cacheResponse{KnownCommands: []string{"get", "put", "close"}}); err != nil {
		return err
	}
	for {
		var q cacheRequest
		var body []byte
		err := requests.Decode(&q)
		if err == nil && q.BodySize > 0 {
			err = requests.Decode(&body)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r := c.response(q, body)
		r.ID = q.ID
		if err := responses.Encode(r); err != nil || q.Command == "close" {
			return err
		}
	}
}

func (c goCache) response(q cacheRequest, body []byte) cacheResponse {
	switch q.Command {
	case "get":
		for _, dir := range []string{c.own, c.seed} {
			if r, ok := lookUp(dir, hex.EncodeToString(q.ActionID)); ok {
				return r
			}
		}
		return cacheResponse{Miss: true}
	case "put":
		path, err := c.put(q, body)
		if err != nil {
			return cacheResponse{Err: err.Error()}
		}
		return cacheResponse{DiskPath: path}
	}
	return cacheResponse{}
}

// The file NAME-a is the line "v1 ACTION OUTPUT SIZE TIME" with the time in nanoseconds, and OUTPUT-d is the output.
func lookUp(dir, action string) (cacheResponse, bool) {
	line, err := os.ReadFile(cacheFile(dir, action, "-a"))
	if err != nil {
		return cacheResponse{}, false
	}
	f := strings.Fields(string(line))
	if len(f) != 5 || f[0] != "v1" || f[1] != action {
		return cacheResponse{}, false
	}
	output, badOutput := hex.DecodeString(f[2])
	size, badSize := strconv.ParseInt(f[3], 10, 64)
	stored, badTime := strconv.ParseInt(f[4], 10, 64)
	path := cacheFile(dir, f[2], "-d")
	info, err := os.Stat(path)
	if errors.Join(badOutput, badSize, badTime, err) != nil || info.Size() != size {
		return cacheResponse{}, false
	}
	at := time.Unix(0, stored)
	return cacheResponse{OutputID: output, Size: size, Time: &at, DiskPath: path}, true
}

func (c goCache) put(q cacheRequest, body []byte) (string, error) {
	if int64(len(body)) != q.BodySize {
		return "", fmt.Errorf("a body of %d bytes instead of %d", len(body), q.BodySize)
	}
	action, output := hex.EncodeToString(q.ActionID), hex.EncodeToString(q.OutputID)
	path := cacheFile(c.own, output, "-d")
	if err := replaceFile(path, body); err != nil {
		return "", err
	}
	line := fmt.Sprintf("v1 %s %s %20d %20d\n", action, output, len(body), time.Now().UnixNano())
	return path, replaceFile(cacheFile(c.own, action, "-a"), []byte(line))
}

func cacheFile(dir, id, kind string) string {
	return filepath.Join(dir, id[:min(2, len(id))], id+kind)
}

// Other processes may read the file at the same time.
func replaceFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "put-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// The user's build cache is only read. Versions of Go before 1.24 do not know the variable and read only the run's.
func (w *Workshop) goBuildCache() {
	own := w.inHome(".cache/go-build")
	w.set("GOCACHE", own)
	if w.Self == "" || slices.Contains(w.Keep, "GOCACHE") { // then commands may share the user's
		return
	}
	dirs := []string{w.goVar("GOCACHE"), filepath.Join(w.get("XDG_CACHE_HOME"), "go-build"), w.homePath(".cache/go-build")}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return !filepath.IsAbs(dir) })
	if len(dirs) == 0 {
		return
	}
	if !isDir(dirs[0]) || !w.show(dirs[0]) || !w.show(w.Self) {
		return
	}
	line := []string{w.Self, goCacheName, dirs[0], own}
	for i, arg := range line {
		if strings.ContainsAny(arg, `"'`) {
			return // Go has no escapes in quotes
		}
		line[i] = `"` + arg + `"`
	}
	w.set("GOCACHEPROG", strings.Join(line, " "))
}

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
