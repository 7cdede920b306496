package workshop

import (
	"os"
	"path/filepath"
)

// System is what programs need of the machine, to be read and never written:
// the programs and libraries of the system, and of /etc what they do not start
// without, such as certificates and the list of users. Of /etc there is no
// password, no private key and nothing of a service's, of /opt nothing at all;
// /dev and /proc are the walls' own business. Only what exists here is in it.
func System() []string {
	var found []string
	for _, pattern := range systemPatterns() {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			continue
		}
		for _, path := range paths {
			if exists(path) {
				found = append(found, path)
			}
		}
	}
	return found
}

// systemPatterns are the globs of what System looks for, over the layouts of
// the usual distributions.
func systemPatterns() []string {
	patterns := []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libexec",
		"/nix/store", "/gnu/store",
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
		"java*", "python3*", "perl", "maven/m2.conf", "maven/logging", "texmf",
	} {
		patterns = append(patterns, "/etc/"+name)
	}
	return patterns
}

// systemSecrets are what is hidden of the system: what a person may have put
// below what System shows, such as npm's global settings with their tokens.
func systemSecrets() []string { return []string{"/usr/local/etc", "/usr/etc/npmrc"} }

// exists reports whether a path leads to something that can be asked about.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// isDir reports whether a path leads to a folder.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// realPath is a path without symlinks; of one that does not exist wholly, what
// exists is followed, and the rest stays as it is.
func realPath(path string) string {
	rest := ""
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		if filepath.Dir(p) == p {
			return filepath.Clean(path)
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}
