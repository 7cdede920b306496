package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

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
