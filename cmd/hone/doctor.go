package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
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

// The doctor finds out what keeps hone from working in a directory. It sends nothing that costs
// money. To test the disk, it writes a file of one megabyte and removes it; it changes
// nothing else.
func (a *app) doctorCommand() *cobra.Command {
	var o doctorOptions
	c := helped("doctor", &cobra.Command{
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.doctor(c.Context(), o)
		},
	})
	registerDir(c, &o.Dir)
	o.Typed = config.Values{}
	c.Flags().SetNormalizeFunc(wallToo)
	config.AddFlags(c.Flags(), o.Typed, "", c.Name())
	c.Flags().BoolVar(&o.Full, "full", false, "try to cross every wall that works here")
	c.Flags().BoolVarP(&o.Verbose, "verbose", "v", false, "with --full or --sandbox, list what each wall leaves open")
	return c
}

func (a *app) doctor(ctx context.Context, o doctorOptions) error {
	if last, err := report.Open(o.Dir, "last"); err == nil {
		if !last.Working {
			a.say("note", last.Incomplete())
		}
		last.Close()
	}
	o.Host, o.Load = a.host(), func(root string) (config.File, error) { return a.loadConfig(root) }
	if a.terminal {
		o.Progress = a.err
	}
	var bad []diagnosis
	say := func(found ...diagnosis) {
		for _, d := range found {
			mark := "✓"
			switch {
			case d.Bad:
				mark, bad = "✗", append(bad, d)
			case d.absent:
				mark = "-"
			}
			a.printLine(fmt.Sprintf("%s %-12s %s", mark, d.What, d.Found))
			for _, line := range append(d.More, d.Hint) {
				if line != "" {
					a.printLine(fmt.Sprintf("  %-12s %s", "", line))
				}
			}
		}
	}
	// In the order in which a run would fail.
	say(diagnosis{What: "hone", Found: version()})
	say(lookAtGit(ctx, o.Dir))
	say(lookAtRepository(ctx, o.Dir))
	say(o.lookAtConfig())
	say(o.lookAtCheck())
	say(o.lookAtKeys()...)
	say(o.lookAtAgents()...)
	say(o.lookAtDisk())
	say(lookAtOwner(o.Dir)...)
	say(o.lookAtProviders(ctx)...)
	o.lookAtWalls(ctx, say)
	if len(bad) > 0 {
		return failure.Of(fmt.Errorf("%s found", render.Count(len(bad), "problem")), "begin with "+bad[0].What+": "+cmp.Or(bad[0].Hint, bad[0].Found))
	}
	return nil
}

// doctorOptions say where the doctor looks, and how closely.
type doctorOptions struct {
	Host     harness.Host                           // with Getenv
	Load     func(root string) (config.File, error) // reads the configuration of a directory
	Progress io.Writer                              // shows which wall is being tried; nil shows nothing
	Dir      string
	// Typed are the settings that were typed: the model whose provider is asked, its address,
	// and the wall to try; auto builds the walls that a run would get.
	Typed   config.Values
	Full    bool // try every wall
	Verbose bool // list what each wall leaves open

	root   string      // of the project; set by lookAtConfig
	file   config.File // its configuration, if that is used
	usable bool        // it is: it has no fault and is trusted, and no other hone works there
}

// diagnosis is what one look found. A look that fails says what to do.
type diagnosis struct {
	What, Found, Hint string
	Bad               bool
	absent            bool     // it is not there, and need not be
	More              []string // further lines
}

func problem(what, found, hint string) diagnosis {
	return diagnosis{What: what, Found: found, Hint: hint, Bad: true}
}

func lookAtGit(ctx context.Context, dir string) diagnosis {
	g, err := git.Find(dir)
	if err != nil {
		return problem("git", err.Error(), "install git")
	}
	v, err := g.Version(ctx)
	if err != nil {
		return problem("git", err.Error(), "")
	}
	return diagnosis{What: "git", Found: v}
}

func lookAtRepository(ctx context.Context, dir string) diagnosis {
	top, err := git.Root(dir)
	if foreign, ok := errors.AsType[*git.ForeignError](err); ok {
		return problem("repository", foreign.Error(), foreign.Advice)
	}
	if err != nil {
		return diagnosis{What: "repository", absent: true, Found: err.Error(), Hint: "reconcile needs a repository: git init"}
	}
	repo, err := git.OpenAt(top)
	if err != nil {
		return diagnosis{What: "repository", Found: top}
	}
	if _, err := repo.Tracks(ctx, top); err != nil {
		hint := ""
		if failed, ok := errors.AsType[*git.Error](err); ok {
			hint = failed.Hint
		}
		return problem("repository", err.Error(), hint)
	}
	return diagnosis{What: "repository", Found: top}
}

func lookAtOwner(dir string) []diagnosis {
	owner := sandbox.OwnerOf(dir)
	if owner == (sandbox.User{}) {
		return nil
	}
	if err := owner.Check(); err != nil {
		return []diagnosis{obstacle("owner", err)}
	}
	return []diagnosis{{What: "owner", Found: fmt.Sprintf("user %d; hone is root, and its commands run as that user, to whom new files belong", owner.UID)}}
}

func (o *doctorOptions) lookAtConfig() diagnosis {
	root, err := runs.FindRoot(o.Dir)
	if o.root = cmp.Or(root, o.Dir); err != nil {
		return problem("config", err.Error(), "")
	}
	if run, _, ok := runs.Working(root); ok {
		return diagnosis{What: "config", Found: "that of run " + run + ", which is working here"}
	}
	file, err := o.Load(root)
	if err == nil {
		_, err = config.Bork(root)
	}
	var needs harness.Needs
	if err == nil {
		needs, err = kinds.Needs(root, file)
	}
	if err != nil {
		return problem("config", err.Error(), "correct the file")
	}
	if untrusted := o.Host.Untrusted(needs); len(untrusted) > 0 {
		d := diagnosis{What: "config", absent: true, Found: "readable, but not trusted; doctor does not use it", Hint: "hone trust " + failure.Quoted(root)}
		for _, s := range untrusted {
			d.More = append(d.More, render.Line(s.InWords()))
		}
		return d
	}
	o.file, o.usable = file, true
	if _, err := os.Lstat(filepath.Join(root, config.HonePath)); errors.Is(err, os.ErrNotExist) {
		return diagnosis{What: "config", absent: true, Found: "there is no " + config.HonePath + ", so defaults apply"}
	}
	return diagnosis{What: "config", Found: "readable"}
}

func (o *doctorOptions) lookAtCheck() diagnosis {
	if line := config.Check.In(o.file.Shared()); o.usable && line != "" {
		return diagnosis{What: "check", Found: render.Line(line)}
	}
	d := diagnosis{What: "check", absent: true, Found: "none is set, so fix needs one"}
	if !o.usable {
		d.Found = "not read, because the configuration is not used"
	}
	d.Hint = adviseCheck(o.root, "hone fix --check "+strconv.Quote(loop.ExampleCheck))
	return d
}

// Writing where runs are written says more than a number of free bytes: quotas, read-only mounts and owners are in it too.
func (o *doctorOptions) lookAtDisk() diagnosis {
	if _, err := loop.AbsDir(o.root); err != nil {
		return problem("disk", err.Error(), "")
	}
	at, where := runs.HomePath(o.root), "writable"
	if at != filepath.Join(o.root, journal.HomeName) {
		where = "runs are in " + at + ", writable"
	}
	if _, err := os.Stat(at); errors.Is(err, os.ErrNotExist) {
		at = o.root
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
		return diagnosis{What: "disk", Found: where}
	}
	found := fmt.Sprintf("%s, %s free", where, render.Bytes(free))
	file, _ := o.Load(o.root) // a fault is that of another look
	least := config.MinFree.In(file.Shared())
	if free < least {
		return problem("disk", fmt.Sprintf("%s, less than [limits] min-free (%s), so runs stop", found, render.Bytes(least)), "free some disk space, for example with hone gc")
	}
	return diagnosis{What: "disk", Found: found}
}

func (o *doctorOptions) lookAtKeys() []diagnosis {
	commands := map[string]string{} // by provider
	if m, err := o.probedModel(); err == nil {
		for _, one := range m.All() {
			commands[one.Provider()] = one.KeyCommand
		}
	}
	var looks []diagnosis
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
		looks = append(looks, diagnosis{What: p.Name, Found: strings.Join(found, ", "), absent: variable != "" && value == "" && command == ""})
	}
	if len(looks) == 0 {
		return []diagnosis{{What: "keys", absent: true, Found: "no provider's key is set"}}
	}
	return looks
}

// Asking costs nothing.
func (o *doctorOptions) lookAtProviders(ctx context.Context) []diagnosis {
	m, err := o.probedModel()
	if errors.Is(err, errConfigUnused) {
		return []diagnosis{{What: "provider", absent: true, Found: err.Error()}}
	}
	if err != nil {
		return []diagnosis{obstacle("provider", err)}
	}
	var looks []diagnosis
	for _, one := range m.All() {
		looks = append(looks, o.lookAtProvider(ctx, *one))
	}
	return looks
}

func (o *doctorOptions) lookAtProvider(ctx context.Context, m loop.Model) diagnosis {
	p, err := o.Host.Prober(m)
	if err != nil {
		return obstacle("provider", err)
	}
	if p == nil {
		return diagnosis{What: "provider", Found: fmt.Sprintf("%s was not checked: hone cannot ask %s whether it answers", m.Name, m.Provider())}
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
	return diagnosis{What: "provider", Found: m.Name + " answers"}
}

// errConfigUnused means that the configuration, which may name a model, is not used;
// lookAtConfig reports why.
var errConfigUnused = errors.New("not checked, because the configuration is not used; name a model with -m")

// It is that of a new run in the directory, or the one that a run there asks now.
func (o *doctorOptions) probedModel() (loop.Model, error) {
	if _, start, working := runs.Working(o.root); working && config.Model.Given(o.Typed)+config.BaseURL.Given(o.Typed) == "" {
		if l := kinds.Recorded(start); l != nil {
			return l.Shared().Model, nil
		}
	}
	if !o.usable && config.Model.Given(o.Typed) == "" {
		return loop.Model{}, errConfigUnused
	}
	s, err := o.Host.Resolve(loop.Kind{}, o.root, o.file.For("", o.Host.Getenv, o.Typed), o.file)
	return s.Model, err
}

// If the user wants it, it tries to cross all walls, or a certain one.
func (o *doctorOptions) lookAtWalls(ctx context.Context, say func(...diagnosis)) {
	wall := sandbox.Wall(config.Wall.In(o.Typed))
	dir, err := loop.AbsDir(o.Dir)
	if err == nil {
		err = harness.CheckState(dir)
	}
	switch {
	case err != nil:
		say(obstacle("state", err))
	case wall == sandbox.NoWall:
	case !o.Host.HasWalls():
		say(diagnosis{What: "walls", absent: true, Found: harness.NoWallsHere})
	case wall != sandbox.Auto:
		say(o.lookAtWall(ctx, wall))
	case o.Full:
		for _, wall := range o.Host.WallKinds() {
			say(o.lookAtWall(ctx, wall))
		}
	default:
		say(o.lookAtAuto(ctx))
	}
}

func (o *doctorOptions) lookAtAuto(ctx context.Context) diagnosis {
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
		return diagnosis{What: "walls", absent: true, Found: "hidden, bwrap and landlock do not work here; commands that need a wall exit with status 5", Hint: "hone doctor --full says why"}
	}
	if err != nil {
		return obstacle("walls", err)
	}
	defer w.Close()
	return diagnosis{What: "walls", Found: w.Grade().String() + "; hone doctor --full tries to cross all walls"}
}

func (o *doctorOptions) lookAtWall(ctx context.Context, wall sandbox.Wall) diagnosis {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, "  %-12s trying to cross it…", wall)
		defer fmt.Fprint(o.Progress, "\r\x1b[K")
	}
	report, err := prove.Wall(ctx, wall, o.Dir)
	var cannot *sandbox.WallError
	switch {
	case errors.As(err, &cannot):
		return diagnosis{What: string(wall), Found: cannot.Error(), Hint: cannot.Next, absent: true}
	case err != nil:
		return problem(string(wall), err.Error(), "")
	}
	grade := report.Grade
	grade.Net = "off" // but for the door that the proof tries
	d := diagnosis{What: string(wall), Found: fmt.Sprintf("%d attempts blocked, %d open as documented; %s", len(report.In(prove.Stopped)), len(report.In(prove.Open)), grade)}
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

func obstacle(what string, err error) diagnosis {
	if f, ok := failure.Explain(err, ""); ok {
		return problem(what, f.Error(), f.Hint)
	}
	return problem(what, err.Error(), "")
}

// A faulty or untrusted configuration is reported by another check.
func (o *doctorOptions) lookAtAgents() []diagnosis {
	var looks []diagnosis
	for _, name := range slices.Sorted(maps.Keys(o.file.Commands)) {
		c := o.file.Commands[name]
		looks = append(looks, o.lookAtAgent(loop.Model{Name: "command/" + name, Agent: &loop.Agent{Name: name, Agent: c, Asked: c.Model}}))
	}
	return looks
}

func (o *doctorOptions) lookAtAgent(m loop.Model) diagnosis {
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
	return diagnosis{What: "agent", Found: found, Hint: m.ExposureWarning()}
}
