package harness

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/harness/internal/denied"
	"hone/harness/internal/state"
	"hone/harness/internal/walldir"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/internal/listing"
	"hone/internal/render"
	"hone/loop"
	"hone/sandbox"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
)

// Recover restores the protected files of a tree that commands changed, if the hone
// that ran them died before it could, and returns a note for the user about each. A
// configuration that a command created is such a file, so call Recover before
// configuration is read.
func Recover(root string) ([]string, error) { return walldir.Recover(root) }

// CheckState returns an error if hone's state folder is in a tree, or the tree in it. It
// creates nothing.
func CheckState(root string) error { return walldir.CheckState(root) }

// deniedNotes returns a note for each cause for which a command seems to have failed
// only because of the walls, by cause. The command ran in dir. It can miss a cause, or
// name a wrong one.
func (w *Walls) deniedNotes(dir, output string) map[string]string {
	if w.Grade().Wall == sandbox.NoWall {
		return nil
	}
	notes := w.deniedCommand(dir).Notes(output)
	for cause, text := range notes {
		notes[cause] = w.Guard.Redact(text)
	}
	return notes
}

// Landlock does not hide secret files.
func (w *Walls) deniedCommand(dir string) denied.Command {
	workspace := w.Root
	if w.session != nil {
		workspace = w.session.Dir
	}
	c := denied.Command{Policy: w.policy, Workspace: workspace, Root: w.Root, Home: w.dir.Path, Dir: dir, Env: w.env, Environ: w.host.environ(), Keys: KeyVariables()}
	if w.Grade().Wall != sandbox.Landlock {
		c.Secrets = w.secretFiles.Files
	}
	return c
}

// Notes tells the user which protected files [Recover] restored before these walls were built,
// whether the secret files are hidden from commands, and that these can write recorded runs. Some may be empty.
func (w *Walls) Notes() []string {
	return slices.Concat(w.recovered, []string{secretsNote(w.secretFiles, w.Grade().Wall), w.homeNote()})
}

// Enclose builds walls and briefly tries to cross them, unless walls of this kind were
// tried under the same conditions before. If an attempt succeeds, the error is a
// [*hone.Stop] and the walls are not used. Otherwise the caller closes them.
func (h Host) Enclose(ctx context.Context, w *Walls) error {
	w.host = h
	return w.enclose(ctx)
}

func (w *Walls) enclose(ctx context.Context) (err error) {
	if err := sandbox.OwnerOf(w.Root).Check(); err != nil {
		return err
	}
	if w.recovered, err = Recover(w.Root); err != nil {
		return err
	}
	if w.dir, err = walldir.New(w.Root, w.ID); err != nil {
		return err
	}
	if err = w.buildPolicy(ctx); err == nil && !w.alike {
		w.proved, err = proveOnce(ctx, w.Grade(), w.policy.Tree)
	}
	if err == nil {
		return nil
	}
	if w.built != nil {
		w.built.Close()
		w.built = nil
	}
	w.dir.Remove()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (w *Walls) buildPolicy(ctx context.Context) (err error) {
	if w.secrets != nil && w.Settings.Wall == sandbox.NoWall {
		w.secretFiles = *w.secrets
	} else if w.secretFiles, err = listing.FindSecrets(ctx, w.Root, w.Guard); err != nil {
		return err
	}
	if w.policy, err = w.makePolicy(ctx); err != nil {
		return err
	}
	if w.built, err = wall.Build(ctx, w.policy); err != nil {
		return err
	}
	w.built.SetKeeper(w.keeper)
	w.env = slices.Concat(w.built.Env(), w.Plan.Vars)
	return nil
}

// makePolicy is where the policy of commands comes from: the user's settings, the plan of the
// loop, and what this machine has.
func (w *Walls) makePolicy(ctx context.Context) (p sandbox.Policy, err error) {
	if err := checkState(w.Settings); err != nil {
		return p, err
	}
	p = w.Settings.Policy
	if w.Plan.Hides && p.Wall == sandbox.Auto {
		p.Wall = sandbox.AutoMounts
	}
	p.Tree, p.Aside, p.As = cmp.Or(p.Tree, w.home, w.Root), w.dir.Aside, sandbox.OwnerOf(w.Root)
	p.Hide = slices.Concat(p.Hide, w.secretFiles.Paths())
	if dir, err := state.Make(); err == nil { // without a state folder there is nothing to hide
		p.Hide = append(p.Hide, dir)
	}
	self := "" // the build cache could show one role of a phase what another one built
	if !w.Plan.Hides {
		self, _ = os.Executable()
	}
	var known []string
	if !w.Settings.AllowGit {
		if w.watch, err = w.watches.of(ctx, cmp.Or(w.home, w.Root), w.Root); err != nil {
			return p, err
		}
		if err := w.watch.Save(w.dir.Repositories); err != nil {
			return p, err
		}
		known = w.watch.Known()
	}
	return workshop.Workshop{
		Policy: p, Root: w.Root, Home: w.dir.Path, Repositories: known, Self: self, Protect: w.Plan.Protect, ReadOnly: w.Plan.ReadOnly, Links: w.homePaths,
		Environ: w.host.environ(), Drop: KeyVariables(), Keep: slices.Concat(w.Settings.Env, w.Plan.Env),
	}.Equip()
}

// What lies in the state folder decides what hone trusts.
func checkState(s loop.WallSettings) error {
	dir, err := state.Dir()
	if err != nil || s.None() {
		return nil
	}
	for _, path := range slices.Concat(s.Read, s.Write) {
		if state.Overlaps(path) {
			return loop.Usage(fmt.Sprintf("commands must not reach hone's state folder %s, but the settings of the walls open %s", dir, path),
				"open smaller directories: read and write of [sandbox] in "+config.HonePath)
		}
	}
	return nil
}

// Secrets returns the secret files in the tree, as paths from its root with the reason.
// All walls but landlock and none hide them from commands.
func (w *Walls) Secrets() []string {
	var lines []string
	for _, f := range w.secretFiles.Files {
		rel, err := filepath.Rel(w.Root, f.Path)
		if err != nil {
			rel = f.Path
		}
		lines = append(lines, w.Guard.Redact(fmt.Sprintf("%s (%s)", filepath.ToSlash(rel), f.Why)))
	}
	return lines
}

// Landlock cannot hide a file in a directory that commands may write.
func secretsNote(s listing.SecretFiles, wall sandbox.Wall) string {
	var parts []string
	files := render.Count(len(s.Files), "secret file")
	switch {
	case len(s.Files) == 0:
	case wall == sandbox.NoWall:
		parts = append(parts, files+" not hidden")
	case wall == sandbox.Landlock:
		parts = append(parts, files+" not hidden: the wall landlock cannot do that")
	default:
		parts = append(parts, fmt.Sprintf("%s hidden from commands; [guard] send in %s allows them", files, config.HonePath))
	}
	if s.Unread > 0 {
		parts = append(parts, render.Count(s.Unread, "file")+" checked for secrets only by name, because there is too much to read")
	}
	if s.Omitted > 0 {
		parts = append(parts, render.Count(s.Omitted, "value")+" of secret files not redacted in output, because there are too many")
	}
	return strings.Join(parts, "; ")
}

// Landlock can only grant, and grants the whole tree.
func (w *Walls) exposes(home string) bool {
	return w.Grade().Wall == sandbox.Landlock &&
		slices.ContainsFunc(w.policy.Write, func(path string) bool { return sandbox.Within(path, home) })
}

// homeNote tells the user that commands can write the runs recorded in the tree; empty
// if they cannot, or if there are none.
func (w *Walls) homeNote() string {
	home := runs.HomePath(w.Root)
	if _, err := os.Stat(home); err != nil || !w.exposes(home) {
		return ""
	}
	return exposedNote(home)
}

func exposedNote(home string) string {
	return "commands behind landlock can change and delete the runs in " + home
}

// It returns a note for the user; empty if nothing changed.
func (s *Session) leaveTree(ctx context.Context, w *Walls) string {
	from := s.Home.Dir()
	if s.homeStays || !w.exposes(from) {
		return ""
	}
	if err := s.LeaveTree(ctx, s.journal); err != nil {
		s.homeStays = true
		return fmt.Sprintf("%s, because hone cannot record them outside the tree: %v", exposedNote(from), err)
	}
	return fmt.Sprintf("runs are now recorded in %s, because commands behind landlock could change and delete them in %s", s.Home.Dir(), from)
}
