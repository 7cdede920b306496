package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hone"
	"hone/harness/internal/state"
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

// Advise reads the workspace's advice into a loop's settings, without the secrets that
// the guard finds. It takes the first usable file at the root. If there is none, but one
// that cannot be used, it tells the user why.
func (h Host) Advise(l loop.Loop, tree *workspace.Tree, g *secret.Guard) {
	advice := &l.Shared().RepoAdvice
	if advice.Off {
		return
	}
	problem := ""
	for _, name := range []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"} { // in order of precedence
		content, _, err := tree.Read(name)
		text := strings.ReplaceAll(string(bytes.TrimPrefix(content, []byte("\ufeff"))), "\r\n", "\n")
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && strings.TrimSpace(text) == "":
		case err == nil && utf8.ValidString(text) && !strings.ContainsRune(text, 0):
			*advice = loop.Advice{File: name, Size: len(content)}
			advice.Text, advice.Cut = beginning(g.Redact(text), loop.MaxAdvice)
			return
		case problem != "":
		case err != nil:
			problem = err.Error()
		default:
			problem = name + ": it is not UTF-8 text"
		}
	}
	if problem != "" {
		h.Note("the model gets no advice from the repository: " + problem)
	}
}

// A line that is longer than most is cut.
func beginning(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	if end := strings.LastIndexByte(text[:most], '\n'); end >= 0 {
		return text[:end+1], true
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// maxCleanAge is how long the list of a workspace's files without secrets is kept
// after it was last written.
const maxCleanAge = 60 * 24 * time.Hour

// recallClean tells a guard which files of a workspace contained no secret when an
// earlier process looked, so that it does not read them again. save stores what the
// guard knows then. Without a state folder nothing is recalled or saved. Commands
// behind walls can neither read nor write the list.
func recallClean(g *secret.Guard, root string) (save func()) {
	file, key, err := cleanList(root)
	if err != nil {
		return func() {}
	}
	if list, err := os.ReadFile(file); err == nil {
		g.AddClean(key, list)
	}
	return func() {
		list := g.CleanList(key)
		if list == nil || state.WriteCache(file, list) != nil {
			return
		}
		entries, _ := os.ReadDir(filepath.Dir(file))
		for _, e := range entries {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > maxCleanAge {
				_ = os.Remove(filepath.Join(filepath.Dir(file), e.Name())) // the next one tries again
			}
		}
	}
}

// Another program may judge otherwise, so that it has another key.
func cleanList(root string) (file string, key []byte, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(self)
	if err != nil {
		return "", nil, err
	}
	if key, err = state.Key(fmt.Sprintf("files without secrets, %d, %d", info.Size(), info.ModTime().UnixNano())); err != nil {
		return "", nil, err
	}
	dir, err := state.Make("clean")
	name := sha256.Sum256([]byte(root))
	return filepath.Join(dir, hex.EncodeToString(name[:16])), key, err
}
