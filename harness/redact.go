package harness

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"hone/internal/listing"
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
// not only the one in use, and the logins in addresses. Nil if there are none.
func KnownKeys(getenv func(string) string, addresses ...string) []string {
	var keys []string
	for _, p := range Providers() {
		for _, v := range p.Keys {
			keys = append(keys, getenv(v))
		}
		addresses = append(addresses, getenv(p.Base))
	}
	for _, a := range addresses {
		_, login := loop.CutLogin(a)
		keys = append(keys, secretsOfLogin(login)...)
	}
	return slices.DeleteFunc(keys, func(k string) bool { return len(k) < minKeyLength })
}

// secretsOfLogin returns the secret part of a login, as written and unescaped:
// the password or, without one, the user, which is a token.
func secretsOfLogin(login string) []string {
	secret, password, ok := strings.Cut(login, ":")
	if ok {
		secret = password
	}
	if unescaped, err := url.PathUnescape(secret); err == nil && unescaped != secret {
		return []string{secret, unescaped}
	}
	return []string{secret}
}

// NewGuard returns a guard that finds secrets in a workspace. It allows what the
// send patterns match. It knows the keys of this process, the logins in the
// addresses, the values of the secret files below root as they are now, and the
// credentials in the configuration of root's repository.
func NewGuard(ctx context.Context, getenv func(string) string, root string, send []string, addresses ...string) (*secret.Guard, error) {
	plain := secret.NewGuard(send)
	plain.Known = KnownKeys(getenv, addresses...)
	files, err := listing.FindSecrets(ctx, root, plain)
	if err != nil {
		return nil, err
	}
	credentials, err := listing.Credentials(ctx, root)
	if err != nil {
		return nil, err
	}
	g := secret.NewGuard(send)
	g.Known, g.Secrets = plain.Known, append(files.Values, credentials...)
	return g, nil
}

// Gate removes keys and other known values from a text that arrives in pieces. A
// value may be split between pieces, so the gate delays the end of the text
// while it may be the start of one.
type Gate struct {
	guard   *secret.Guard
	show    func(string)
	pending string
}

// NewGate returns a gate that passes the text on to show.
func NewGate(guard *secret.Guard, show func(string)) *Gate { return &Gate{guard: guard, show: show} }

// Pass takes the next piece of the text.
func (g *Gate) Pass(text string) {
	g.pending += text
	if n := g.guard.Complete(g.pending); n > 0 {
		g.show(g.guard.RedactKnown(g.pending[:n]))
		g.pending = g.pending[n:]
	}
}

// Flush shows the delayed text. Call it at the end of the text.
func (g *Gate) Flush() {
	if g.pending != "" {
		g.show(g.guard.RedactKnown(g.pending))
		g.pending = ""
	}
}
