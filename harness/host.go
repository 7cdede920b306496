package harness

import (
	"context"
	"os"
	"slices"
	"strings"

	"hone"
	"hone/harness/runs"

	"hone/internal/config"
	"hone/journal"
	"hone/loop"
	"hone/sandbox"
	"hone/sandbox/wall"
	"hone/workspace"
	"hone/workspace/secret"
)

// Host is the program that uses sessions. The zero Host takes everything from
// the process.
type Host struct {
	Getenv   func(variable string) string // nil means os.Getenv; it may know keys that Environ does not have
	Environ  []string                     // KEY=VALUE; nil means os.Environ
	Version  string                       // of the program; runs record it
	Observer journal.Observer             // is called for the events of every journal
	Notify   func(hone.Notice)            // tells the user about a default; nil does nothing
	// Outputs are the open files into which the program writes its output, such as a log;
	// nil means standard output and standard error.
	Outputs []*os.File
	// Walls returns the kinds of walls of this system; nil means wall.Kinds.
	Walls func() []sandbox.Wall
	// Trust asks the user to trust a folder's programs or settings; nil denies both.
	// See [Host.Trusted].
	Trust         func(context.Context, TrustQuestion) bool
	TrustPrograms bool // the user typed that the folder's own programs may run

	keys *keySource // how commands that print keys are run; nil means outside of a session
}

// A blank variable is as one that is not set.
func (h Host) getenv(variable string) string {
	get := h.Getenv
	if get == nil {
		get = os.Getenv
	}
	value := get(variable)
	if strings.TrimSpace(value) == "" {
		return ""
	}
	return value
}

func (h Host) environ() []string {
	if h.Environ == nil {
		return os.Environ()
	}
	return h.Environ
}

func (h Host) outputs(dir string) []string {
	if h.Outputs == nil {
		h.Outputs = []*os.File{os.Stdout, os.Stderr}
	}
	return runs.OutputsIn(dir, h.Outputs)
}

// WallKinds returns the walls of this system, the strongest first, even if some
// cannot be built here. Nil means that it has none.
func (h Host) WallKinds() []sandbox.Wall {
	if h.Walls == nil {
		return wall.Kinds()
	}
	return h.Walls()
}

// HasWalls reports whether this system has any walls, even if they cannot be built
// here. Without them, and unless the settings name a wall, checks and builds run with
// the user's rights, and models cannot run commands (ruling G20).
func (h Host) HasWalls() bool { return len(h.WallKinds()) > 0 }

// NoWallsHere tells the user what [Host.HasWalls] means if it returns false.
const NoWallsHere = "none on this system: checks and builds run with your rights, and models cannot run commands (sandbox \"none\" allows them)"

// Note tells the user about a default that was used.
func (h Host) Note(text string) {
	if h.Notify != nil {
		h.Notify(hone.Notice{Text: text})
	}
}

// WithKey returns the host with the key that the workspace contains, which replaces the variable of its name.
func (h Host) WithKey(k loop.Kind, tree *workspace.Tree) (Host, error) {
	if k.Key == nil {
		return h, nil
	}
	key, err := k.Key(tree)
	if err != nil || key.Value == "" {
		return h, err
	}
	getenv := h.getenv
	h.Getenv = func(variable string) string {
		if variable == key.Variable {
			return key.Value
		}
		return getenv(variable)
	}
	return h, nil
}

// CanOpen returns why a model of a loop cannot be opened, such as that its key is not set;
// nil if all can. It sends nothing.
func (h Host) CanOpen(l loop.Loop) error {
	for _, asked := range l.Models() {
		if _, err := h.open(*asked.Model); err != nil {
			return err
		}
	}
	return nil
}

// Guard returns a guard that finds secrets for a loop in a workspace. It allows
// what the loop's settings allow, and also knows the secrets in the addresses of the
// loop's models, and the variables that its settings pass on; see [NewGuard].
func (h Host) Guard(ctx context.Context, l loop.Loop, root string) (*secret.Guard, error) {
	g, _, err := withSecretsOf(ctx, root, h.keyGuard(l), h.getenv, h.variables(l))
	return g, err
}

func (h Host) keyGuard(l loop.Loop) *secret.Guard {
	var addresses []string
	for _, m := range loop.AllModels(l) {
		addresses = append(addresses, m.KnownAddress())
	}
	g := secret.NewGuard(config.Send.In(l.Shared().Values))
	g.Known = KnownKeys(h.getenv, addresses...)
	if slices.ContainsFunc(loop.AllModels(l), func(m *loop.Model) bool { return m.KeyCommand != "" }) {
		g.Expect()
	}
	return g
}
