package harness

import (
	"os"

	"hone/journal"
	"hone/loop"
	"hone/workspace"
	"hone/workspace/secret"
)

// Host is the program that sessions are held in, and what it lends them. The
// zero value of each field has a use.
type Host struct {
	Getenv   func(variable string) string // nil is os.Getenv; it may know keys that Environ does not have
	Environ  []string                     // KEY=VALUE; nil is os.Environ
	Version  string                       // of the program, as runs record it
	Observer journal.Observer             // of every journal
	Notify   func(note string)            // tells the user which default was taken; nil tells nothing
}

// getenv looks a variable up.
func (h Host) getenv(variable string) string {
	if h.Getenv == nil {
		return os.Getenv(variable)
	}
	return h.Getenv(variable)
}

// environ is the environment of the user's own programs.
func (h Host) environ() []string {
	if h.Environ == nil {
		return os.Environ()
	}
	return h.Environ
}

// Note tells the user something of a default.
func (h Host) Note(text string) {
	if h.Notify != nil {
		h.Notify(text)
	}
}

// WithKeys is the host with the keys that a workspace itself holds, which stand
// in for the variables of the same names.
func (h Host) WithKeys(k loop.Kind, tree *workspace.Tree) (Host, error) {
	if k.Keys == nil {
		return h, nil
	}
	keys, err := k.Keys(tree)
	if err != nil || len(keys) == 0 {
		return h, err
	}
	getenv := h.getenv
	h.Getenv = func(variable string) string {
		if key, ok := keys[variable]; ok {
			return key
		}
		return getenv(variable)
	}
	return h, nil
}

// Guard finds secrets for a loop: what its settings let through, and the keys
// that this process holds.
func (h Host) Guard(l loop.Loop) *secret.Guard {
	var addresses []string
	for _, asked := range l.Models() {
		addresses = append(addresses, asked.Model.BaseURLWithLogin())
	}
	g := secret.NewGuard(l.Shared().Send)
	g.Known = KnownKeys(h.getenv, addresses...)
	return g
}
