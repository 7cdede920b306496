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

// namedShapes returns the shapes of values that look like any other hash or id, and are known
// only by a name such as HEROKU_API_KEY that says whose key they are.
func namedShapes() []shape {
	const alnum, url, hex = alnumSet, urlSet, hexSet
	name, between := chars("a-zA-Z0-9_.-"), chars(" \t\"'=:>")
	of := func(what, ranges string, least, most int, words ...string) shape {
		return valueOf(what, name, between, chars(ranges), least, most, words)
	}
	return []shape{
		of("an AWS secret key", base64Set, 40, 40, "secret_access_key", "secretAccessKey"),
		of("an Algolia key", alnum, 32, 32, "algolia"),
		of("an Atlassian token", alnum, 24, 24, "atlassian", "confluence", "jira"),
		of("an Azure key", "a-zA-Z0-9+/=", 44, 88, "accountKey", "accessKey", "azure_storage_key"),
		of("an Azure client secret", "a-zA-Z0-9_.~-", 34, 44, "azure_client_secret", "arm_client_secret"),
		of("a Bitbucket secret", "="+url, 32, 64, "bitbucket"),
		of("a CircleCI token", hex, 40, 40, "circle"),
		of("a Cloudflare token", url, 37, 40, "cloudflare", "cf_api"),
		of("a Codecov token", "a-z0-9-", 32, 36, "codecov"),
		of("a Cohere key", alnum, 40, 40, "cohere"),
		of("a Confluent secret", alnum, 64, 64, "confluent"),
		of("a Datadog key", hex, 32, 40, "datadog", "dd_api", "dd_app"),
		of("a Discord secret", url, 32, 64, "discord"),
		of("a Fastly token", url, 32, 32, "fastly"),
		of("a Heroku key", hex+"-", 36, 36, "heroku"),
		of("a Mailgun key", "a-z0-9-", 32, 60, "mailgun"),
		of("a Mistral key", alnum, 32, 32, "mistral"),
		of("a Netlify token", url, 40, 46, "netlify"),
		of("a New Relic key", alnum+"-", 32, 64, "newrelic", "new_relic", "NewRelic"),
		of("an Okta token", "="+url, 42, 42, "okta"),
		of("a Rollbar token", hex, 32, 32, "rollbar"),
		of("a Sentry token", hex, 64, 64, "sentry"),
		of("a Snyk token", hex+"-", 36, 36, "snyk"),
		of("a SonarQube token", hex, 40, 40, "sonar"),
		of("a Sumo Logic key", alnum, 64, 64, "sumologic", "sumo_logic"),
		of("a Travis CI token", url, 22, 22, "travis"),
		of("a Twilio token", hex, 32, 32, "twilio"),
		of("a Twitch secret", alnum, 30, 30, "twitch"),
		of("a Twitter secret", alnum, 45, 50, "twitter"),
		of("a Weights & Biases key", hex, 40, 40, "wandb"),
		of("a Zendesk token", alnum, 40, 40, "zendesk"),
	}
}

// valueOf returns a shape for a value of least to most bytes from a set that is assigned
// to a name with one of the words, if the name from there says that it is a secret. Only
// the value is the secret.
func valueOf(what string, name, between, set *charset, least, most int, words []string) shape {
	var literals []string
	for _, w := range words {
		literals = append(literals, w, strings.ToUpper(w), strings.ToUpper(w[:1])+w[1:])
	}
	return shape{what: what, literals: literals, find: func(text string, begin, end int) (int, int, bool) {
		named := name.run(text[:min(len(text), end+24)], end)
		from := between.run(text[:min(len(text), named+8)], named)
		if from == named || !isSecretName(text[begin:named]) {
			return 0, 0, false
		}
		to := set.run(text[:min(len(text), from+most+1)], from)
		if n := to - from; n < least || n > most || to < len(text) && isAlnum(text[to]) {
			return 0, 0, false
		}
		return from, to, isRandom(text[from:to])
	}}
}

func isSecretName(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"public", "hash", "digest", "sha"} {
		if strings.Contains(name, word) {
			return false
		}
	}
	for _, word := range []string{"key", "token", "secret", "pass", "auth"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
