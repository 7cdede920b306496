package workshop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"hone/internal/gitdir"
	"hone/sandbox"
)

// place is a path with and without symlinks.
type place struct{ name, real string }

type link struct{ Name, Target string }

func (w Workshop) prepared() *Workshop {
	w.paths = resolver{}
	w.real = w.realPath(w.Root)
	w.private = []string{w.Root, w.real, w.Home, w.realPath(w.Home)}
	if home := sandbox.EnvValue(w.Environ, "HOME"); filepath.IsAbs(home) {
		w.userHome = filepath.Clean(home)
		w.private = append(w.private, w.userHome, w.realPath(w.userHome))
	}
	w.keys = sync.OnceValue(w.findKeys)
	return &w
}

// Each path is resolved once.
func (w *Workshop) realPath(path string) string { return w.paths.real(filepath.Clean(path)) }

func (w *Workshop) get(name string) string { return sandbox.EnvValue(w.Environ, name) }

func (w *Workshop) add(path string) {
	w.read = append(w.read, path)
	w.reals = append(w.reals, w.realPath(path))
}

func (w *Workshop) set(name, value string) { w.vars = append(w.vars, name+"="+value) }

func (w *Workshop) link(name, target string) {
	w.links = append(w.links, link{Name: name, Target: target})
}

func (w *Workshop) inHome(name string) string {
	return filepath.Join(w.Home, homeDir, filepath.FromSlash(name))
}

func (w *Workshop) dir(variable, usual string) string {
	dir := w.get(variable)
	if dir == "" && usual != "" {
		dir = w.homePath(usual)
	}
	if !filepath.IsAbs(dir) || !isDir(dir) {
		return ""
	}
	return filepath.Clean(dir)
}

func (w *Workshop) homePath(name string) string {
	if w.userHome == "" {
		return ""
	}
	return filepath.Join(w.userHome, filepath.FromSlash(name))
}

func (w *Workshop) inside(path string) bool {
	return sandbox.Within(w.Root, path) || sandbox.Within(w.real, w.realPath(path))
}

// It reports whether commands will find the path.
func (w *Workshop) show(path string) bool {
	switch {
	case !filepath.IsAbs(path) || !utf8.ValidString(path):
		return false
	case sandbox.Within(w.Root, filepath.Clean(path)):
		return exists(path)
	case w.inside(path) || !exists(path):
		return false
	case w.shown(filepath.Clean(path)):
		return true
	case w.unfit(path):
		return false
	}
	w.add(filepath.Clean(path))
	return true
}

func (w *Workshop) shown(path string) bool {
	real := w.realPath(path)
	for i, r := range w.read {
		if sandbox.Within(r, path) && (real == path || sandbox.Within(w.reals[i], real)) {
			return true
		}
	}
	return false
}

// unfit reports whether a directory contains more than a toolchain: it contains
// the home, the workspace or the directory of this run, it is a top-level
// directory or one that all users share, or it contains no ordinary files.
func (w *Workshop) unfit(path string) bool {
	for _, p := range []string{filepath.Clean(path), w.realPath(path)} {
		if w.tooWide(p) {
			return true
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&fs.ModeSticky != 0 {
		return true
	}
	real := w.realPath(path)
	return sandbox.Within("/run", real) || slices.ContainsFunc([]string{"/proc", "/sys", "/dev", "/etc"}, func(top string) bool {
		return sandbox.Within(top, real) || sandbox.Within(top, filepath.Clean(path))
	})
}

func (w *Workshop) tooWide(path string) bool {
	parent := filepath.Dir(path)
	if filepath.Dir(parent) == parent || slices.Contains([]string{"/home", "/Users", "/var", "/mnt"}, parent) {
		return true
	}
	if slices.ContainsFunc(w.private, func(private string) bool { return sandbox.Within(path, private) }) {
		return true
	}
	return w.userHome != "" && slices.ContainsFunc([]string{ // they contain much of the user's data or keys
		".config", ".cache", ".local", ".local/share", ".local/state", "Library", "Desktop", "Documents", "Downloads",
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store",
	}, func(name string) bool { return path == w.homePath(name) })
}

// WSL adds such directories to PATH. Their programs run outside all walls.
func windowsDrive(dir string) bool {
	drive, _, ok := strings.Cut(strings.TrimPrefix(dir, "/mnt/"), "/")
	return ok && strings.HasPrefix(dir, "/mnt/") && len(drive) == 1
}

// What is there already stays: walls of another kind were tried before for the same commands.
func (w *Workshop) makeHome() error {
	dirs := []string{w.inHome(""), filepath.Join(w.Home, tmpDir), filepath.Join(w.Home, asideDir), w.inHome(".config/git")}
	for _, v := range w.overlays {
		if sandbox.Within(w.inHome(""), v.Path) { // others need no directory
			dirs = append(dirs, v.Path)
		}
	}
	links := w.links
	for _, name := range w.Links {
		name = strings.TrimPrefix(name, "~/")
		links = append(links, link{name, w.homePath(name)})
	}
	for _, l := range links {
		dirs = append(dirs, filepath.Dir(w.inHome(l.Name)))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	// Placeholders exist while a command runs; git add does not add them.
	err := os.WriteFile(w.inHome(".config/git/ignore"), []byte("/.config/hone.toml\n/.config/bork.json\n"), 0o600)
	if err == nil {
		err = os.WriteFile(w.inHome(".gitconfig"), []byte(w.gitSettings()), 0o600)
	}
	if err != nil {
		return err
	}
	for _, l := range links {
		if err := os.Symlink(l.Target, w.inHome(l.Name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	// Some programs ask whether they may write, and do not try.
	return errors.Join(w.As.Own(w.inHome("")), w.As.Own(filepath.Join(w.Home, tmpDir)))
}

// Commands commit in the user's name, in repositories of any owner: walls replace git's own check of the owner. No other
// setting of the user is copied.
func (w *Workshop) gitSettings() string {
	text := "[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n"
	name, email := w.gitUser()
	text += gitUserSetting("name", name) + gitUserSetting("email", email)
	return text
}

func gitUserSetting(key, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf("[user]\n\t%s = \"%s\"\n", key, gitQuoter.Replace(value))
}

var gitQuoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ", "\x00", "")

func (w *Workshop) gitUser() (name, email string) {
	files := []string{w.homePath(".config/git/config"), w.homePath(".gitconfig")}
	if dir := w.get("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		files[0] = filepath.Join(dir, "git", "config")
	}
	if file := w.get("GIT_CONFIG_GLOBAL"); file != "" {
		files = []string{file}
	}
	for _, file := range files {
		if !filepath.IsAbs(file) {
			continue
		}
		settings, _ := gitdir.Settings(gitdir.Read(file))
		for _, s := range settings { // the last of several wins
			switch s.Section + "." + s.Sub + "." + s.Name {
			case "user..name":
				name = strings.TrimSpace(s.Value)
			case "user..email":
				email = strings.TrimSpace(s.Value)
			}
		}
	}
	return name, email
}

// System returns the existing paths that programs need to read: the system's
// programs and libraries, and the files of /etc that programs need to start, such
// as certificates and the list of users. It contains no passwords, private keys
// or settings of services in /etc, and nothing of /opt. The walls add /dev and
// /proc.
func System() []string {
	// For the common distributions.
	patterns := []string{
		"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec",
		"nix/store", "gnu/store",
	}
	for _, name := range []string{
		"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "ld-musl-*.path",
		"passwd", "group", "nsswitch.conf", "hosts", "host.conf", "gai.conf", "resolv.conf",
		"localtime", "timezone", "services", "protocols", "rpc", "mime.types", "magic",
		"os-release", "debian_version", "alpine-release", "redhat-release", "lsb-release",
		"gitconfig", "gitattributes", "inputrc", "bash.bashrc", "shells", "terminfo", "fonts",
		"ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "ssl/ca-bundle.pem",
		"ca-certificates/extracted", "ca-certificates.conf", "crypto-policies",
		"pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust/extracted", "pki/java",
		"java*", "python3*", "matplotlibrc", "perl", "maven/m2.conf", "maven/logging", "texmf", "mono", "dotnet", "R",
		// Not all of PHP's: the settings of its servers are there too.
		"php.ini", "php.d", "php*/php.ini", "php*/conf.d", "php/*/cli", "php/*/mods-available",
	} {
		patterns = append(patterns, "etc/"+name)
	}
	return globs("/", patterns)
}

// globs returns the existing paths in a directory that match patterns.
func globs(dir string, patterns []string) (found []string) {
	for _, pattern := range patterns {
		names, _ := fs.Glob(os.DirFS(dir), pattern)
		for _, name := range names {
			if path := filepath.Join(dir, name); exists(path) {
				found = append(found, path)
			}
		}
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// The end of the path that does not exist stays.
func realPath(path string) string { return resolver{}.real(filepath.Clean(path)) }

type resolver map[string]string

// The end of the path that does not exist stays.
func (r resolver) real(path string) string {
	if real, ok := r[path]; ok {
		return real
	}
	real := path
	if dir := filepath.Dir(path); dir != path {
		real = filepath.Join(r.real(dir), filepath.Base(path))
		// On Windows a directory has several names.
		if info, err := os.Lstat(real); err == nil && (info.Mode()&fs.ModeSymlink != 0 || runtime.GOOS == "windows") {
			if target, err := filepath.EvalSymlinks(real); err == nil {
				real = target
			}
		}
	}
	r[path] = real
	return real
}
