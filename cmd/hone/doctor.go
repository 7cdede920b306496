package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hone/cmd/hone/consent"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/internal/git"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/model"
	"hone/sandbox"
	"hone/sandbox/prove"
	"hone/workspace/secret"
)

// doctorFlags are what a look is made with.
type doctorFlags struct {
	dir, model, baseURL string
	wall                string
	full, verbose       bool
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "check what hone needs: git, keys, provider, disk, walls",
		Long: `doctor checks what hone needs: git, keys (never shown), the provider, the disk and the walls. It asks the
providers of the models that a run would use, at no cost, and builds the walls that a run would get.

--full tries to cross every wall that works here, in more than 150 ways each. That takes about half a minute.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := validChoices(c); err != nil {
				return err
			}
			return a.doctor(c.Context(), f)
		},
	}
	registerDir(c, &f.dir)
	c.Flags().StringVarP(&f.model, "model", "m", "", "the model whose provider is checked, as PROVIDER/NAME, or several with commas between them")
	c.Flags().StringVar(&f.baseURL, "base-url", "", "the provider's endpoint")
	c.Flags().BoolVar(&f.full, "full", false, "try to cross every wall that works here")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "with --full or --sandbox, list what each wall leaves open")
	registerWall(c.Flags(), &f.wall, "auto", "try to cross this wall; auto builds the walls that a run would get, none checks no walls")
	return c
}

// diagnosis is what one look found. A look that fails says what to do.
type diagnosis struct {
	what, found, hint string
	bad               bool
	absent            bool     // it is not there, and need not be
	more              []string // further lines
}

// amiss is a look that found what is in the way.
func amiss(what, found, hint string) diagnosis {
	return diagnosis{what: what, found: found, hint: hint, bad: true}
}

// mark is the character in front of it.
func (d diagnosis) mark() string {
	switch {
	case d.bad:
		return "✗"
	case d.absent:
		return "-"
	}
	return "✓"
}

func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	a.sayLastIncomplete(f.dir)
	bad := 0
	report := func(looks ...diagnosis) {
		for _, d := range looks {
			if d.bad {
				bad++
			}
			a.printLine(fmt.Sprintf("%s %-12s %s", d.mark(), d.what, d.found))
			for _, line := range append(d.more, d.hint) {
				if line != "" {
					a.printLine(fmt.Sprintf("  %-12s %s", "", line))
				}
			}
		}
	}
	report(diagnosis{what: "hone", found: version()}, a.lookAtGit(ctx), a.lookAtRepository(f.dir), a.lookAtConfig(f.dir), a.lookAtDisk(f.dir))
	report(lookAtRuns(f.dir)...)
	report(a.lookAtKeys()...)
	report(a.lookAtAgents(f.dir)...)
	report(a.lookAtProviders(ctx, f.dir, f.model, f.baseURL)...)
	for look := range a.lookAtWalls(ctx, f) {
		report(look)
	}
	if bad > 0 {
		return failure.Of(fmt.Errorf("%s found", render.Count(bad, "problem")), "see the lines marked ✗")
	}
	return nil
}

func (a *app) lookAtGit(ctx context.Context) diagnosis {
	g, err := git.Find()
	if err != nil {
		return amiss("git", err.Error(), "install git")
	}
	v, err := g.Version(ctx)
	if err != nil {
		return amiss("git", err.Error(), "")
	}
	return diagnosis{what: "git", found: v}
}

func (a *app) lookAtRepository(dir string) diagnosis {
	top, err := git.Root(dir)
	if foreign, ok := errors.AsType[*git.ForeignError](err); ok {
		return amiss("repository", foreign.Error(), foreign.Advice)
	}
	if err != nil {
		return diagnosis{what: "repository", absent: true, found: err.Error(), hint: "reconcile needs a repository: git init"}
	}
	return diagnosis{what: "repository", found: top}
}

func (a *app) lookAtConfig(dir string) diagnosis {
	root, err := runs.FindRoot(dir)
	if err != nil {
		return amiss("config", err.Error(), "")
	}
	if run, _, ok := runs.Working(root); ok {
		return diagnosis{what: "config", found: "that of run " + run + ", which is working here"}
	}
	file, err := a.loadConfig(root, "", nil)
	if err != nil {
		return amiss("config", err.Error(), "correct the file")
	}
	if _, err := config.Bork(root); err != nil {
		return amiss("config", err.Error(), "correct the file")
	}
	untrusted, err := a.untrusted(root, file)
	if err != nil {
		return amiss("config", err.Error(), "correct the file")
	}
	if len(untrusted) > 0 {
		d := diagnosis{what: "config", absent: true, found: "readable, but not trusted; doctor does not use it", hint: "hone trust " + root}
		for _, s := range untrusted {
			d.more = append(d.more, consent.Setting(s))
		}
		return d
	}
	if _, err := os.Lstat(filepath.Join(root, config.HonePath)); errors.Is(err, os.ErrNotExist) {
		return diagnosis{what: "config", absent: true, found: "there is no " + config.HonePath + ", so defaults apply"}
	}
	return diagnosis{what: "config", found: "readable"}
}

// untrusted returns the settings of a folder that the user does not trust.
func (a *app) untrusted(root string, file config.File) ([]config.Setting, error) {
	n, err := kinds.Needs(root, file)
	return a.host().Untrusted(n), err
}

// trustedConfig returns the configuration of a folder if the user trusts it. ok is false
// if doctor must not use it: it is faulty, not trusted, or another hone works there.
func (a *app) trustedConfig(dir string) (root string, file config.File, ok bool) {
	root, err := runs.FindRoot(dir)
	if err != nil {
		return root, file, false
	}
	if _, _, working := runs.Working(root); working {
		return root, file, false
	}
	if file, err = a.loadConfig(root, "", nil); err != nil {
		return root, config.File{}, false
	}
	untrusted, err := a.untrusted(root, file)
	if err != nil || len(untrusted) > 0 {
		return root, config.File{}, false
	}
	return root, file, true
}

// lookAtDisk writes where runs are written, which says more than a number of
// free bytes: quotas, read-only mounts and owners are in it too.
func (a *app) lookAtDisk(dir string) diagnosis {
	root, err := runs.FindRoot(dir)
	if err != nil {
		return amiss("disk", err.Error(), "")
	}
	at, where := runs.HomePath(root), "writable"
	if at != filepath.Join(root, journal.HomeName) {
		where = "runs are in " + at + ", writable"
	}
	if _, err := os.Stat(at); errors.Is(err, os.ErrNotExist) {
		at = root
	}
	probe, err := os.CreateTemp(at, ".hone.tmp-doctor-*")
	if err == nil {
		_, err = probe.Write(make([]byte, 1<<20))
		err = errors.Join(err, probe.Sync(), probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return amiss("disk", err.Error(), "free disk space, or make the directory writable")
	}
	free, ok := journal.FreeSpace(at)
	if !ok {
		return diagnosis{what: "disk", found: where}
	}
	return diagnosis{what: "disk", found: fmt.Sprintf("%s, %d MB free", where, free>>20)}
}

// muchSpace is the size of all runs, in bytes, from which doctor advises to delete some.
const muchSpace = 1 << 30

// lookAtRuns returns how much disk space the runs need; nothing if there are none.
func lookAtRuns(dir string) []diagnosis {
	home, err := runs.Open(dir)
	if err != nil {
		return nil // lookAtDisk reports it, if it is an error
	}
	defer home.Close()
	use, err := useOf(home)
	if err != nil {
		return []diagnosis{amiss("runs", err.Error(), "")}
	}
	d := diagnosis{what: "runs", found: use.String()}
	if use.Size > muchSpace {
		d.hint = "to delete old runs: hone gc"
	}
	return []diagnosis{d}
}

// lookAtKeys returns the providers that have a key or an address.
func (a *app) lookAtKeys() []diagnosis {
	var looks []diagnosis
	for _, p := range harness.Providers() {
		value, variable := p.Key(a.env)
		base := a.env(p.Base)
		if value == "" && (p.Base == "" || base == "") {
			continue
		}
		var found []string
		switch {
		case value != "":
			found = append(found, variable+" is set")
		case variable != "":
			found = append(found, "no key")
		}
		if base != "" {
			found = append(found, p.Base+" is "+harness.RedactURL(base))
		}
		looks = append(looks, diagnosis{what: p.Name, found: strings.Join(found, ", "), absent: variable != "" && value == ""})
	}
	if len(looks) == 0 {
		return []diagnosis{{what: "keys", absent: true, found: "no provider's key is set"}}
	}
	return looks
}

// lookAtProviders asks the providers of the models that a run would take, at no
// cost.
func (a *app) lookAtProviders(ctx context.Context, dir, name, baseURL string) []diagnosis {
	m, err := a.probedModel(dir, loop.Flags{Model: name, BaseURL: baseURL})
	if errors.Is(err, errConfigUnused) {
		return []diagnosis{{what: "provider", absent: true, found: err.Error()}}
	}
	if err != nil {
		return []diagnosis{stopped("provider", err)}
	}
	var looks []diagnosis
	for _, one := range m.All() {
		looks = append(looks, a.lookAtProvider(ctx, *one))
	}
	return looks
}

// lookAtProvider asks the provider of a model, at no cost.
func (a *app) lookAtProvider(ctx context.Context, m loop.Model) diagnosis {
	p, err := a.host().Prober(m)
	if err != nil {
		return stopped("provider", err)
	}
	if p == nil {
		return diagnosis{what: "provider", found: fmt.Sprintf("%s was not checked: hone cannot ask %s whether it answers", m.Name, m.Provider())}
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := p.Probe(ctx); err != nil {
		var fault *model.Error
		d := amiss("provider", m.Name+": "+err.Error(), "")
		if errors.As(err, &fault) {
			d.hint = fault.Hint
		}
		return d
	}
	return diagnosis{what: "provider", found: m.Name + " answers"}
}

// errConfigUnused means that the configuration, which may name a model, is not used;
// lookAtConfig reports why.
var errConfigUnused = errors.New("not checked, because the configuration is not used; name a model with -m")

// probedModel returns the model that a run in the directory would ask, or that a run
// there asks now.
func (a *app) probedModel(dir string, f loop.Flags) (loop.Model, error) {
	root, file, ok := a.trustedConfig(dir)
	if _, start, working := runs.Working(root); working && f == (loop.Flags{}) {
		if l := kinds.Recorded(start); l != nil {
			return l.Shared().Model, nil
		}
	}
	if !ok && f.Model == "" {
		return loop.Model{}, errConfigUnused
	}
	s, err := a.host().Resolve(loop.Kind{}, root, f, file)
	return s.Model, err
}

// lookAtWalls checks the walls that a run would get. If the user wants it, it tries to
// cross all walls, or a certain one.
func (a *app) lookAtWalls(ctx context.Context, f doctorFlags) iter.Seq[diagnosis] {
	return func(yield func(diagnosis) bool) {
		wall := sandbox.Wall(f.wall)
		switch {
		case wall == sandbox.NoWall:
		case !a.host().HasWalls():
			yield(diagnosis{what: "walls", absent: true, found: harness.NoWallsHere})
		case wall != sandbox.Auto:
			yield(a.lookAtWall(ctx, wall, f.verbose))
		case f.full:
			for _, wall := range a.host().WallKinds() {
				if !yield(a.lookAtWall(ctx, wall, f.verbose)) {
					return
				}
			}
		default:
			yield(a.lookAtAuto(ctx))
		}
	}
}

// lookAtAuto builds the walls that a run would get.
func (a *app) lookAtAuto(ctx context.Context) diagnosis {
	dir, err := os.MkdirTemp("", "hone-doctor-")
	if err != nil {
		return amiss("walls", err.Error(), "make the directory for temporary files writable")
	}
	defer os.RemoveAll(dir)
	e, err := a.host().Enclose(ctx, harness.Enclosure{Settings: loop.WallSettings{Wall: string(sandbox.Auto)}, Root: dir, ID: "doctor", Guard: &secret.Guard{}})
	if _, none := errors.AsType[*sandbox.WallError](err); none {
		return diagnosis{what: "walls", absent: true, found: "hidden, bwrap and landlock do not work here; commands that need a wall exit with status 5", hint: "hone doctor --full says why"}
	}
	if err != nil {
		return stopped("walls", err)
	}
	defer e.Close()
	return diagnosis{what: "walls", found: e.Grade().String() + "; hone doctor --full tries to cross all walls"}
}

// lookAtWall tries to cross one wall.
func (a *app) lookAtWall(ctx context.Context, wall sandbox.Wall, verbose bool) diagnosis {
	if a.terminal {
		fmt.Fprintf(a.err, "  %-12s trying to cross it…", wall)
		defer fmt.Fprint(a.err, "\r\x1b[K")
	}
	report, err := prove.All(ctx, wall)
	var cannot *sandbox.WallError
	switch {
	case errors.As(err, &cannot):
		return diagnosis{what: string(wall), found: cannot.Error(), hint: cannot.Next, absent: true}
	case err != nil:
		return amiss(string(wall), err.Error(), "")
	}
	stopped, unknown := len(report.Stopped()), len(report.Inconclusive())
	grade := report.Grade
	grade.Net = "off" // but for the door that the proof tries
	d := diagnosis{what: string(wall), found: fmt.Sprintf("%d attempts blocked, %d open as documented; %s", stopped, len(report.Open()), grade)}
	if unknown > 0 {
		d.found += fmt.Sprintf("; %d could not be tried here", unknown)
	}
	for _, hole := range report.Holes() {
		d.bad = true
		d.more = append(d.more, "crossed: "+hole.String())
	}
	if d.bad {
		d.hint = "do not rely on this wall here; choose another one with --sandbox"
	}
	if verbose {
		d.more = append(d.more, details(report)...)
	}
	return d
}

// details returns what a wall leaves open, and which attempts could not be made.
func details(report prove.Report) []string {
	var lines []string
	for _, list := range []struct {
		word    string
		results []prove.Result
	}{{"open", report.Open()}, {"blocked, but should be open", report.Blocked()}, {"not tried", report.Inconclusive()}} {
		for _, r := range list.results {
			line := list.word + ": " + r.Name + ", " + r.About
			if r.Text != "" {
				line += " (" + r.Text + ")"
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// stopped is a diagnosis of what would keep a run from starting.
func stopped(what string, err error) diagnosis {
	if f, ok := failure.Explain(err, ""); ok {
		return amiss(what, f.Error(), f.Hint)
	}
	return amiss(what, err.Error(), "")
}
