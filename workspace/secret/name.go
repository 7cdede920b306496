package secret

import (
	"bytes"
	"path"
	"strings"

	"hone/workspace/treepath"
)

func secretName(p string) string {
	folded := treepath.Fold(p)
	name := treepath.Base(folded)
	switch {
	case strings.HasPrefix(name, ".env"):
		if isTemplate(name) {
			return ""
		}
		return "an environment file"
	case isPrivateKeyName(name):
		return "a private key"
	case isCredentialsName(name):
		return "a credentials file"
	}
	switch path.Ext(name) {
	case ".p12", ".pfx", ".jks", ".jceks", ".bcfks", ".keystore", ".ppk", ".kdbx":
		return "a key store"
	}
	switch treepath.Join(treepath.Base(treepath.Parent(folded)), name) {
	case ".aws/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
		"gcloud/application_default_credentials.json", ".databricks/token-cache.json":
		return "a credentials file"
	}
	return ""
}

func isTemplate(name string) bool {
	switch path.Ext(name) {
	case ".example", ".sample", ".template":
		return true
	}
	return false
}

// isPrivateKeyName reports whether OpenSSH uses the name for private keys.
func isPrivateKeyName(name string) bool {
	switch name {
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss":
		return true
	}
	return false
}

func isCredentialsName(name string) bool {
	switch name {
	case ".netrc", "_netrc", ".pgpass", ".pypirc", ".git-credentials", ".vault-token", ".htpasswd", ".s3cfg", ".boto":
		return true
	}
	return false
}

// The name of a settings file says that it can contain credentials, and its contents that it does.
func secretConfig(p string, content []byte) string {
	folded := treepath.Fold(p)
	switch name := treepath.Base(folded); {
	case name == ".npmrc":
		return reasonIf(hasAssignment(content, "_authToken", "_auth", "_password"), "it contains a package registry token")
	case name == ".yarnrc.yml":
		return reasonIf(hasAssignment(content, "npmAuthToken", "npmAuthIdent"), "it contains a package registry token")
	case name == ".dockercfg", treepath.Join(treepath.Base(treepath.Parent(folded)), name) == ".docker/config.json":
		return reasonIf(hasAssignment(content, `"auth"`, `"identitytoken"`), "it contains registry credentials")
	case treepath.Join(treepath.Base(treepath.Parent(folded)), name) == ".kube/config", name == "kubeconfig":
		return reasonIf(hasAssignment(content, "client-key-data", "token", "password"), "it contains cluster credentials")
	case name == ".my.cnf", name == ".terraformrc":
		return reasonIf(hasAssignment(content, "password", "token"), "it contains a password")
	}
	return ""
}

func reasonIf(holds bool, reason string) string {
	if holds {
		return reason
	}
	return ""
}

func hasAssignment(content []byte, keys ...string) bool {
	for line := range bytes.Lines(content) {
		for _, key := range keys {
			if hasValue(string(line), key) {
				return true
			}
		}
	}
	return false
}

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
