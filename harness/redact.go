package harness

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"

	"hone/internal/config"
	"hone/internal/lazyregexp"

	"hone/history"
	"hone/internal/listing"
	"hone/journal"
	"hone/loop"
	"hone/workspace/secret"
)

// KeyVariables returns the variables that contain providers' keys.
func KeyVariables() []string {
	var names []string
	for _, p := range Providers() {
		names = append(names, p.Keys...)
	}
	return names
}

// minKeyLength is the length of the shortest value that is redacted. A shorter
// one would be found in unrelated words.
const minKeyLength = 8

// KnownKeys returns the secret values of this process: every provider's key,
// not only the one in use, and the secrets in addresses. Nil if there are none.
func KnownKeys(getenv func(string) string, addresses ...string) []string {
	var keys []string
	for _, p := range Providers() {
		for _, v := range p.Keys {
			keys = append(keys, getenv(v))
		}
		addresses = append(addresses, getenv(p.Base))
	}
	for _, a := range addresses {
		_, secrets := config.MaskAddress(a)
		for _, s := range secrets {
			if plain, err := url.PathUnescape(s); err == nil && plain != s {
				keys = append(keys, plain)
			}
			keys = append(keys, s)
		}
	}
	return slices.DeleteFunc(keys, func(k string) bool { return len(k) < minKeyLength })
}

func (h Host) variables(l loop.Loop) []string {
	names := l.Shared().Variables()
	for _, m := range loop.AllModels(l) {
		if m.Agent != nil {
			names = append(names, m.Agent.Env...)
		}
	}
	return secretVariables(names, h.environ())
}

// Programs could print the values of variables that settings open, and of those that mean a secret, which programs without
// walls get.
func secretVariables(opened, environ []string) []string {
	names := slices.Clone(opened)
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); secret.NamesSecret(name) {
			names = append(names, name)
		}
	}
	return names
}

// NewGuard returns a guard that finds secrets in a workspace. It allows what the
// send patterns match. It knows the keys of this process, the values of the secret
// files below root as they are now, the credentials in the configuration of root's
// repository, and the values of the variables that settings open and of those of the
// environment that mean a secret, which programs without walls get.
func NewGuard(ctx context.Context, getenv func(string) string, root string, send, opened, environ []string) (*secret.Guard, error) {
	g := secret.NewGuard(send)
	g.Known = KnownKeys(getenv)
	g, _, err := withSecretsOf(ctx, root, g, getenv, secretVariables(opened, environ))
	return g, err
}

func withSecretsOf(ctx context.Context, root string, g *secret.Guard, getenv func(string) string, variables []string) (*secret.Guard, listing.SecretFiles, error) {
	var credentials []string
	var failed error
	var asked sync.WaitGroup // git works while this process reads files
	asked.Go(func() { credentials, failed = listing.Credentials(ctx, root) })
	save := recallClean(g, root)
	files, err := listing.FindSecrets(ctx, root, g)
	asked.Wait()
	if err != nil {
		return nil, files, err
	}
	save()
	if failed != nil {
		return nil, files, failed
	}
	values := slices.Concat(files.Values, credentials)
	for _, name := range variables {
		values = append(values, secret.Variable(name, getenv(name))...)
	}
	return g.WithSecrets(values), files, nil
}

// Such secrets were sent, because a command printed them before they were in a secret file, for example, and a resumed run must
// send the same again.
func withoutRecorded(g *secret.Guard, j *journal.Journal) *secret.Guard {
	drop := func(text string) {
		if g.RedactKnown(text) != text {
			g = g.WithSecrets(slices.DeleteFunc(slices.Clone(g.Secrets), func(v string) bool {
				return (&secret.Guard{Secrets: []string{v}}).RedactKnown(text) != text
			}))
		}
	}
	seen := map[string]bool{}
	for _, e := range j.Events() {
		if !g.Knows() {
			return g
		}
		line := string(e.Line())
		drop(line)
		if e.Type == history.TypeApply { // the contents of changed files were not sent
			continue
		}
		for _, name := range objectName.FindAllString(line, -1) {
			if seen[name] {
				continue
			}
			seen[name] = true
			if text, err := j.Home().Get(name); err == nil {
				drop(string(text))
			}
		}
	}
	return g
}

var objectName = lazyregexp.New(`\b[0-9a-f]{64}\b`)
