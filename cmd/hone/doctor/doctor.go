// Package doctor finds out what keeps hone from working in a directory. It looks at git, the
// configuration, the disk, keys, agents, providers and walls. It sends nothing that costs
// money. To test the disk, it writes a file of one megabyte and removes it; it changes
// nothing else.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/language"
	"hone/cmd/hone/report"
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

// Options say where the doctor looks, and how closely.
type Options struct {
	Host     harness.Host                           // with Getenv
	Load     func(root string) (config.File, error) // reads the configuration of a directory
	Progress io.Writer                              // shows which wall is being tried; nil shows nothing
	Dir      string
	// Typed are the settings that were typed: the model whose provider is asked, its address,
	// and the wall to try; auto builds the walls that a run would get.
	Typed   config.Values
	Full    bool // try every wall
	Verbose bool // list what each wall leaves open
}

// Diagnose checks one thing after the other, in the order in which a run would fail, and
// yields what it finds about each.
func Diagnose(ctx context.Context, o Options) iter.Seq[Diagnosis] {
	return func(yield func(Diagnosis) bool) {
		for _, look := range []func() []Diagnosis{
			func() []Diagnosis {
				return []Diagnosis{lookAtGit(ctx, o.Dir), lookAtRepository(ctx, o.Dir), o.lookAtConfig(), o.lookAtCheck()}
			},
			o.lookAtKeys,
			o.lookAtAgents,
			func() []Diagnosis {
				return slices.Concat([]Diagnosis{o.lookAtDisk()}, lookAtOwner(o.Dir), lookAtRuns(o.Dir))
			},
			func() []Diagnosis { return o.lookAtProviders(ctx) },
		} {
			for _, found := range look() {
				if !yield(found) {
					return
				}
			}
		}
		for found := range o.lookAtWalls(ctx) {
			if !yield(found) {
				return
			}
		}
	}
}

// Diagnosis is what one look found. A look that fails says what to do.
type Diagnosis struct {
	What, Found, Hint string
	Bad               bool
	absent            bool     // it is not there, and need not be
	More              []string // further lines
}

func problem(what, found, hint string) Diagnosis {
	return Diagnosis{What: what, Found: found, Hint: hint, Bad: true}
}

// Mark is the character in front of it.
func (d Diagnosis) Mark() string {
	switch {
	case d.Bad:
		return "✗"
	case d.absent:
		return "-"
	}
	return "✓"
}

func lookAtGit(ctx context.Context, dir string) Diagnosis {
	g, err := git.Find(dir)
	if err != nil {
		return problem("git", err.Error(), "install git")
	}
	v, err := g.Version(ctx)
	if err != nil {
		return problem("git", err.Error(), "")
	}
	return Diagnosis{What: "git", Found: v}
}

func lookAtRepository(ctx context.Context, dir string) Diagnosis {
	top, err := git.Root(dir)
	if foreign, ok := errors.AsType[*git.ForeignError](err); ok {
		return problem("repository", foreign.Error(), foreign.Advice)
	}
	if err != nil {
		return Diagnosis{What: "repository", absent: true, Found: err.Error(), Hint: "reconcile needs a repository: git init"}
	}
	repo, err := git.OpenAt(top)
	if err != nil {
		return Diagnosis{What: "repository", Found: top}
	}
	if _, err := repo.Tracks(ctx, top); err != nil {
		hint := ""
		if failed, ok := errors.AsType[*git.Error](err); ok {
			hint = failed.Hint
		}
		return problem("repository", err.Error(), hint)
	}
	if fault := repo.IndexFault(); fault != nil {
		return problem("repository", fault.Error(), fault.Hint)
	}
	return Diagnosis{What: "repository", Found: top}
}

func lookAtOwner(dir string) []Diagnosis {
	owner := sandbox.OwnerOf(dir)
	if owner == (sandbox.User{}) {
		return nil
	}
	if err := owner.Check(); err != nil {
		return []Diagnosis{obstacle("owner", err)}
	}
	return []Diagnosis{{What: "owner", Found: fmt.Sprintf("user %d; hone is root, and its commands run as that user, to whom new files belong", owner.UID)}}
}

func (o Options) lookAtConfig() Diagnosis {
	root, err := runs.FindRoot(o.Dir)
	if err != nil {
		return problem("config", err.Error(), "")
	}
	if run, _, ok := runs.Working(root); ok {
		return Diagnosis{What: "config", Found: "that of run " + run + ", which is working here"}
	}
	file, err := o.Load(root)
	if err != nil {
		return problem("config", err.Error(), "correct the file")
	}
	if _, err := config.Bork(root); err != nil {
		return problem("config", err.Error(), "correct the file")
	}
	untrusted, err := o.untrusted(root, file)
	if err != nil {
		return problem("config", err.Error(), "correct the file")
	}
	if len(untrusted) > 0 {
		d := Diagnosis{What: "config", absent: true, Found: "readable, but not trusted; doctor does not use it", Hint: "hone trust " + failure.Quoted(root)}
		for _, s := range untrusted {
			d.More = append(d.More, render.Line(s.InWords()))
		}
		return d
	}
	if _, err := os.Lstat(filepath.Join(root, config.HonePath)); errors.Is(err, os.ErrNotExist) {
		return Diagnosis{What: "config", absent: true, Found: "there is no " + config.HonePath + ", so defaults apply"}
	}
	return Diagnosis{What: "config", Found: "readable"}
}

func (o Options) lookAtCheck() Diagnosis {
	root, file, ok := o.trustedConfig()
	if line := config.Check.In(file.Shared()); ok && line != "" {
		return Diagnosis{What: "check", Found: render.Line(line)}
	}
	d := Diagnosis{What: "check", absent: true, Found: "none is set, so fix needs one"}
	if !ok {
		d.Found = "not read, because the configuration is not used"
	}
	d.Hint = language.Advise(root, "hone fix --check "+strconv.Quote(loop.ExampleCheck))
	return d
}

func (o Options) untrusted(root string, file config.File) ([]config.Opening, error) {
	n, err := kinds.Needs(root, file)
	return o.Host.Untrusted(n), err
}

// ok is false if doctor must not use it: it is faulty, not trusted, or another hone works there.
func (o Options) trustedConfig() (root string, file config.File, ok bool) {
	root, err := runs.FindRoot(o.Dir)
	if err != nil {
		return root, file, false
	}
	if _, _, working := runs.Working(root); working {
		return root, file, false
	}
	if file, err = o.Load(root); err != nil {
		return root, config.File{}, false
	}
	untrusted, err := o.untrusted(root, file)
	if err != nil || len(untrusted) > 0 {
		return root, config.File{}, false
	}
	return root, file, true
}

// Writing where runs are written says more than a number of free bytes: quotas, read-only mounts and owners are in it too.
func (o Options) lookAtDisk() Diagnosis {
	root, err := runs.FindRoot(o.Dir)
	if err != nil {
		return problem("disk", err.Error(), "")
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
		return problem("disk", err.Error(), "free disk space, or make the directory writable")
	}
	free, ok := journal.FreeSpace(at)
	if !ok {
		return Diagnosis{What: "disk", Found: where}
	}
	found := fmt.Sprintf("%s, %s free", where, render.Bytes(free))
	file, _ := o.Load(root) // a fault is that of another look
	least := config.MinFree.In(file.Shared())
	if free < least {
		return problem("disk", fmt.Sprintf("%s, less than [limits] min-free (%s), so runs stop", found, render.Bytes(least)), "free some disk space, for example with hone gc")
	}
	return Diagnosis{What: "disk", Found: found}
}

// muchSpace is the size of all runs, in bytes, from which doctor advises to delete some.
const muchSpace = 1 << 30

func lookAtRuns(dir string) []Diagnosis {
	home, err := runs.Open(dir)
	if err != nil {
		return nil // lookAtDisk reports it, if it is an error
	}
	defer home.Close()
	use, err := report.UseOf(home)
	if err != nil {
		return []Diagnosis{problem("runs", err.Error(), "")}
	}
	d := Diagnosis{What: "runs", Found: use.String()}
	if use.Size > muchSpace {
		d.Hint = "to delete old runs: hone gc"
	}
	return []Diagnosis{d}
}

func (o Options) lookAtKeys() []Diagnosis {
	commands := map[string]string{} // by provider
	if m, err := o.probedModel(); err == nil {
		for _, one := range m.All() {
			commands[one.Provider()] = one.KeyCommand
		}
	}
	var looks []Diagnosis
	for _, p := range harness.Providers() {
		value, variable := p.Key(o.Host.Getenv)
		base, command := o.Host.Getenv(p.Base), commands[p.Name]
		if value == "" && command == "" && (p.Base == "" || base == "") {
			continue
		}
		var found []string
		switch {
		case command != "":
			found = append(found, "key-command prints its key: "+render.Line(command))
		case value != "":
			found = append(found, variable+" is set")
		case variable != "":
			found = append(found, "no key")
		}
		if base != "" {
			masked, _ := config.MaskAddress(base)
			found = append(found, p.Base+" is "+masked)
		}
		looks = append(looks, Diagnosis{What: p.Name, Found: strings.Join(found, ", "), absent: variable != "" && value == "" && command == ""})
	}
	if len(looks) == 0 {
		return []Diagnosis{{What: "keys", absent: true, Found: "no provider's key is set"}}
	}
	return looks
}

// Asking costs nothing.
func (o Options) lookAtProviders(ctx context.Context) []Diagnosis {
	m, err := o.probedModel()
	if errors.Is(err, errConfigUnused) {
		return []Diagnosis{{What: "provider", absent: true, Found: err.Error()}}
	}
	if err != nil {
		return []Diagnosis{obstacle("provider", err)}
	}
	var looks []Diagnosis
	for _, one := range m.All() {
		looks = append(looks, o.lookAtProvider(ctx, *one))
	}
	return looks
}

func (o Options) lookAtProvider(ctx context.Context, m loop.Model) Diagnosis {
	p, err := o.Host.Prober(m)
	if err != nil {
		return obstacle("provider", err)
	}
	if p == nil {
		return Diagnosis{What: "provider", Found: fmt.Sprintf("%s was not checked: hone cannot ask %s whether it answers", m.Name, m.Provider())}
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := p.Probe(ctx); err != nil {
		var fault *model.Error
		d := problem("provider", m.Name+": "+err.Error(), "")
		if errors.As(err, &fault) {
			d.Hint = fault.Hint
		}
		return d
	}
	return Diagnosis{What: "provider", Found: m.Name + " answers"}
}

// errConfigUnused means that the configuration, which may name a model, is not used;
// lookAtConfig reports why.
var errConfigUnused = errors.New("not checked, because the configuration is not used; name a model with -m")

// It is that of a new run in the directory, or the one that a run there asks now.
func (o Options) probedModel() (loop.Model, error) {
	root, file, ok := o.trustedConfig()
	if _, start, working := runs.Working(root); working && config.Model.Given(o.Typed)+config.BaseURL.Given(o.Typed) == "" {
		if l := kinds.Recorded(start); l != nil {
			return l.Shared().Model, nil
		}
	}
	if !ok && config.Model.Given(o.Typed) == "" {
		return loop.Model{}, errConfigUnused
	}
	s, err := o.Host.Resolve(loop.Kind{}, root, file.For("", o.Host.Getenv, o.Typed), file)
	return s.Model, err
}

// If the user wants it, it tries to cross all walls, or a certain one.
func (o Options) lookAtWalls(ctx context.Context) iter.Seq[Diagnosis] {
	return func(yield func(Diagnosis) bool) {
		wall := sandbox.Wall(config.Wall.In(o.Typed))
		dir, err := loop.AbsDir(o.Dir)
		if err == nil {
			err = harness.CheckState(dir)
		}
		switch {
		case err != nil:
			yield(obstacle("state", err))
		case wall == sandbox.NoWall:
		case !o.Host.HasWalls():
			yield(Diagnosis{What: "walls", absent: true, Found: harness.NoWallsHere})
		case wall != sandbox.Auto:
			yield(o.lookAtWall(ctx, wall))
		case o.Full:
			for _, wall := range o.Host.WallKinds() {
				if !yield(o.lookAtWall(ctx, wall)) {
					return
				}
			}
		default:
			yield(o.lookAtAuto(ctx))
		}
	}
}

func (o Options) lookAtAuto(ctx context.Context) Diagnosis {
	dir, err := os.MkdirTemp("", "hone-doctor-")
	if err != nil {
		return problem("walls", err.Error(), "make the directory for temporary files writable")
	}
	defer os.RemoveAll(dir)
	if owner := sandbox.OwnerOf(o.Dir); owner.Check() == nil {
		_ = owner.Own(dir) // otherwise these are walls for root
	}
	w := &harness.Walls{Settings: loop.WallSettings{Policy: sandbox.Policy{Wall: sandbox.Auto, Tree: o.Dir}}, Root: dir, ID: "doctor", Guard: &secret.Guard{}}
	err = o.Host.Enclose(ctx, w)
	if _, none := errors.AsType[*sandbox.WallError](err); none {
		return Diagnosis{What: "walls", absent: true, Found: "hidden, bwrap and landlock do not work here; commands that need a wall exit with status 5", Hint: "hone doctor --full says why"}
	}
	if err != nil {
		return obstacle("walls", err)
	}
	defer w.Close()
	return Diagnosis{What: "walls", Found: w.Grade().String() + "; hone doctor --full tries to cross all walls"}
}

func (o Options) lookAtWall(ctx context.Context, wall sandbox.Wall) Diagnosis {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, "  %-12s trying to cross it…", wall)
		defer fmt.Fprint(o.Progress, "\r\x1b[K")
	}
	report, err := prove.Wall(ctx, wall, o.Dir)
	var cannot *sandbox.WallError
	switch {
	case errors.As(err, &cannot):
		return Diagnosis{What: string(wall), Found: cannot.Error(), Hint: cannot.Next, absent: true}
	case err != nil:
		return problem(string(wall), err.Error(), "")
	}
	grade := report.Grade
	grade.Net = "off" // but for the door that the proof tries
	d := Diagnosis{What: string(wall), Found: fmt.Sprintf("%d attempts blocked, %d open as documented; %s", len(report.In(prove.Stopped)), len(report.In(prove.Open)), grade)}
	if unknown := len(report.In(prove.Unknown)); unknown > 0 {
		d.Found += fmt.Sprintf("; %d could not be tried here", unknown)
	}
	for _, r := range report.Results {
		switch state := r.State(); {
		case state == prove.Hole:
			d.Bad, d.Hint = true, "do not rely on this wall here; choose another one with --sandbox"
			d.More = append(d.More, r.String())
		case o.Verbose && state != prove.Stopped:
			d.More = append(d.More, r.String())
		}
	}
	return d
}

func obstacle(what string, err error) Diagnosis {
	if f, ok := failure.Explain(err, ""); ok {
		return problem(what, f.Error(), f.Hint)
	}
	return problem(what, err.Error(), "")
}

// A faulty or untrusted configuration is reported by another check.
func (o Options) lookAtAgents() []Diagnosis {
	_, file, _ := o.trustedConfig()
	var looks []Diagnosis
	for _, name := range slices.Sorted(maps.Keys(file.Commands)) {
		looks = append(looks, o.lookAtAgent(loop.Model{Name: "command/" + name, Agent: &loop.Agent{Name: name, Agent: file.Commands[name], Asked: file.Commands[name].Model}}))
	}
	return looks
}

func (o Options) lookAtAgent(m loop.Model) Diagnosis {
	program := m.Agent.Argv[0]
	at, err := exec.LookPath(program)
	if err != nil {
		return problem("agent", m.Name+": "+program+" is not on your PATH", "install it, or write its full path in argv")
	}
	if m.Agent.Asked == "" {
		m.Agent.Asked = "NAME" // a role may name the model
	}
	if err := o.Host.Ready(m); err != nil {
		return problem("agent", m.Name+": "+err.Error(), "")
	}
	found := m.Name + ": " + at
	if p := m.Agent.Wire; p != "" {
		found += ", which reaches " + p + " through a forwarder"
	}
	return Diagnosis{What: "agent", Found: found, Hint: m.ExposureWarning()}
}
