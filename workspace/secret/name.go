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
	if strings.HasPrefix(name, ".env") || name == ".dev.vars" {
		switch path.Ext(name) {
		case ".example", ".sample", ".template":
			return ""
		}
		return "an environment file"
	}
	switch name {
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss": // the names that OpenSSH uses
		return "a private key"
	case ".netrc", "_netrc", ".pgpass", ".pypirc", ".git-credentials", ".vault-token", ".vault_pass", ".htpasswd", ".s3cfg", ".boto", "rclone.conf":
		return "a credentials file"
	}
	switch path.Ext(name) {
	case ".p12", ".pfx", ".jks", ".jceks", ".bcfks", ".keystore", ".ppk", ".kdbx":
		return "a key store"
	case ".tfstate":
		return "the state of Terraform"
	}
	switch treepath.Join(treepath.Base(treepath.Parent(folded)), name) {
	case ".aws/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
		"gcloud/application_default_credentials.json", ".databricks/token-cache.json":
		return "a credentials file"
	}
	return ""
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
	case path.Ext(name) == ".env": // such as prod.env, but tests have others
		return reasonIf(assignsSecret(name, string(content)), "an environment file with secrets")
	}
	return ""
}

func reasonIf(holds bool, reason string) string {
	if holds {
		return reason
	}
	return ""
}

// A name that means a secret suffices, whatever its value is.
func assignsSecret(name, text string) bool {
	for line := range strings.Lines(text) {
		if m := assignedLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil && NamesSecret(m[1]) && !template.MatchString(strings.Trim(m[2], `"'`)) {
			return true
		}
	}
	c := collector{}
	c.addFile(name, text)
	return len(c.values) > 0
}

func hasAssignment(content []byte, keys ...string) bool {
	for line := range bytes.Lines(content) {
		for _, key := range keys {
			_, rest, _ := strings.Cut(string(line), key)
			rest = strings.TrimLeft(rest, " \t\"'")
			if rest == "" || rest[0] != '=' && rest[0] != ':' {
				continue
			}
			if value := strings.Trim(rest[1:], " \t\r\n\"',;}"); len(value) >= 4 && !isPlaceholder(value) {
				return true
			}
		}
	}
	return false
}
