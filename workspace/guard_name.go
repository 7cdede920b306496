package workspace

import (
	"bytes"
	"path"
	"strings"
)

// secretName says why a file is withheld by its name alone, or returns an
// empty string. Case does not matter.
func secretName(p string) string {
	folded := Fold(p)
	name := base(folded)
	switch {
	case strings.HasPrefix(name, ".env"):
		if isTemplate(name) {
			return ""
		}
		return "an environment file"
	case keyNames(name):
		return "a private key"
	case credentialNames(name):
		return "a file of credentials"
	}
	switch path.Ext(name) {
	case ".p12", ".pfx", ".jks", ".jceks", ".bcfks", ".keystore", ".ppk", ".kdbx":
		return "a store of keys"
	}
	switch join(base(parentOf(folded)), name) {
	case ".aws/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
		"gcloud/application_default_credentials.json", ".databricks/token-cache.json":
		return "a file of credentials"
	}
	return ""
}

// isTemplate reports whether an environment file is one to copy from.
func isTemplate(name string) bool {
	switch path.Ext(name) {
	case ".example", ".sample", ".template":
		return true
	}
	return false
}

// keyNames are the names that OpenSSH gives to private keys.
func keyNames(name string) bool {
	switch name {
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss":
		return true
	}
	return false
}

// credentialNames are files that hold nothing but credentials.
func credentialNames(name string) bool {
	switch name {
	case ".netrc", "_netrc", ".pgpass", ".pypirc", ".git-credentials", ".vault-token", ".htpasswd", ".s3cfg", ".boto":
		return true
	}
	return false
}

// secretConfig says why a file of settings is withheld: its name says that
// credentials may stand in it, and its contents that they do.
func secretConfig(p string, content []byte) string {
	folded := Fold(p)
	switch name := base(folded); {
	case name == ".npmrc":
		return when(assigned(content, "_authToken", "_auth", "_password"), "it holds a token of a package registry")
	case name == ".yarnrc.yml":
		return when(assigned(content, "npmAuthToken", "npmAuthIdent"), "it holds a token of a package registry")
	case name == ".dockercfg", join(base(parentOf(folded)), name) == ".docker/config.json":
		return when(assigned(content, `"auth"`, `"identitytoken"`), "it holds a registry's credentials")
	case join(base(parentOf(folded)), name) == ".kube/config", name == "kubeconfig":
		return when(assigned(content, "client-key-data", "token", "password"), "it holds credentials of a cluster")
	case name == ".my.cnf", name == ".terraformrc":
		return when(assigned(content, "password", "token"), "it holds a password")
	}
	return ""
}

func when(holds bool, reason string) string {
	if holds {
		return reason
	}
	return ""
}

// assigned reports whether one of the keys has a value on its line that is
// not a placeholder.
func assigned(content []byte, keys ...string) bool {
	for line := range bytes.Lines(content) {
		for _, key := range keys {
			if hasValue(string(line), key) {
				return true
			}
		}
	}
	return false
}

// hasValue reports whether a line reads key = value or key: value, with the
// key at the end of whatever stands before the sign.
func hasValue(line, key string) bool {
	_, rest, found := strings.Cut(line, key)
	if !found {
		return false
	}
	rest = strings.TrimLeft(rest, " \t\"'")
	if rest == "" || rest[0] != '=' && rest[0] != ':' {
		return false
	}
	value := strings.Trim(rest[1:], " \t\r\n\"',;}")
	return len(value) >= 4 && !isPlaceholder(value)
}
