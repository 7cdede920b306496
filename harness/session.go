package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"hone"
	"hone/check"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/config"
	"hone/internal/excerpt"
	"hone/internal/git"
	"hone/internal/gitdir"
	"hone/internal/listing"
	"hone/journal"
	"hone/loop"
	"hone/model"
	"hone/sandbox"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
	"hone/workspace"
	"hone/workspace/secret"
)

// Session is a new, resumed or replayed run in a workspace. From the start it
// protects the run: the workspace is locked, commands run behind walls, and
// keys are removed from everything that is recorded, shown or sent.
type Session struct {
	*runs.Workspace
	// Human approves changes that need it; nil leaves them pending. Set it before
	// NewRun.
	Human hone.Human
	// Terminal is standard input if it is a terminal whose user can be asked; nil if
	// not. Set it before Build.
	Terminal io.Reader
	// Output shows the output of checks as it arrives; nil shows nothing. Set
	// it before the run starts.
	Output io.Writer
	// Thoughts shows what a model wants the user to know; nil shows nothing.
	Thoughts func(text string)

	host     Host
	loop     loop.Loop
	journal  *journal.Journal
	start    hone.Start
	fresh    bool // the start is not recorded yet
	replayed bool
	printed  []byte // by checks, for the journal
	limits   hone.Limits
	outputs  []string // of this process; see [Host]
	guard    *secret.Guard
	secrets  *listing.SecretFiles // as the guard found them; nil if it did not search

	models      map[*loop.Model]model.Model
	run         *hone.Run
	walls       []*Walls
	sharedWalls loop.Walls // walls of commands without walls of their own; see commandWalls
	trees       map[treeKey]*workspace.Tree
	deniedMu    sync.Mutex
	denied      []string // causes that the user was told about; see [Walls.newlyDenied]
	watches     watches
	homeStays   bool // the home could not leave the tree, and the user was told
	onClose     []func()
}

var _ loop.Session = (*Session)(nil)

// Start starts a session in a directory with resolved settings. It writes
// nothing until it knows that the user trusts what the directory needs, and that the
// models have their keys. A run that may end without asking a model ([loop.Kind]'s
// Modelless) starts without a key. The caller closes the session.
func (h Host) Start(ctx context.Context, k loop.Kind, l loop.Loop, n Needs, limits hone.Limits) (*Session, error) {
	if err := h.Trusted(ctx, n); err != nil {
		return nil, err
	}
	dir := n.Folder
	h.keys = &keySource{}
	s := h.session(l, hone.Start{Version: h.Version, Loop: k.Name, Dir: dir, Model: l.Shared().Model.Name, Limits: limits})
	watch, err := s.watches.of(ctx, dir, dir)
	if err == nil {
		l.Shared().GitFiles, err = workshop.GitIndirections(dir, watch.Known(), h.environ())
	}
	if err != nil {
		return nil, err
	}
	s.fresh = true
	for _, m := range loop.AllModels(l) {
		s.models[m], err = h.open(*m)
		if _, noKey := errors.AsType[*noKeyError](err); noKey && k.Modelless && len(loop.AllModels(l)) == 1 {
			h.Note(err.Error() + "; this matters only if the check fails")
			s.models[m] = missingModel{err}
		} else if err != nil {
			return nil, err
		}
	}
	if s.Workspace, err = runs.Enter(ctx, dir, true); err != nil {
		return nil, err
	}
	for _, n := range s.Notes {
		if h.Notify != nil {
			h.Notify(n)
		}
	}
	if s.Unbound != nil {
		h.Note(fmt.Sprintf("you will have to accept this run before you can resume or undo it: %v", s.Unbound))
	}
	if err = s.Use(l.Shared().Values); err == nil {
		err = s.findSecrets(ctx, h, l)
	}
	if err == nil {
		*h.keys = keySource{runner: s.Unwalled(), dir: dir, learn: s.guard.Learn}
		s.outputs = h.outputs(dir)
		s.start.Outputs = s.outputs
		runs.ShutOutputs(s.Tree, s.outputs)
		h.Advise(l, s.Tree, s.guard)
		s.start.Settings, err = json.Marshal(l)
	}
	if err == nil {
		s.journal, err = s.Home.Create(s.Home.NewRun())
	}
	if err != nil {
		s.Workspace.Close()
		return nil, err
	}
	s.onClose = []func(){s.Workspace.Close, func() { s.journal.Close() }}
	return s, nil
}

// NoKey returns why a run of a kind that needs a model only if its check fails has none; nil
// if it has one, or if the kind needs one in any case.
func (h Host) NoKey(k loop.Kind, l loop.Loop) error {
	models := loop.AllModels(l)
	if !k.Modelless || len(models) != 1 {
		return nil
	}
	_, err := h.open(*models[0])
	if _, noKey := errors.AsType[*noKeyError](err); noKey {
		return err
	}
	return nil
}

// Resume returns a session that resumes a recorded run. A model that cannot be
// opened is an error only when it is asked. An empty baseURL keeps the recorded
// addresses. The caller also closes the recorded run.
func (h Host) Resume(ctx context.Context, r *runs.Recorded, k loop.Kind, limits hone.Limits, baseURL string) (*Session, error) {
	s, err := h.resumedSession(k, runs.Relocated(r.Start, r.Dir), baseURL)
	if err != nil {
		return nil, err
	}
	s.Workspace, s.journal, s.limits = r.Workspace, r.Journal, limits
	for _, n := range history.Of[history.Notice](r.Past.Events()) {
		if n.Repository != "" {
			s.watches.made = append(s.watches.made, filepath.Join(s.Dir, filepath.FromSlash(n.Repository)))
		}
	}
	s.outputs = h.outputs(r.Dir)
	runs.ShutOutputs(s.Tree, s.outputs)
	for _, m := range loop.AllModels(s.loop) {
		h.renewListPrice(m)
	}
	return s, s.openModels(ctx, k)
}

// Replay returns a session that replays a run in a scratch copy of its tree. It
// asks no model and runs no command.
func (h Host) Replay(ctx context.Context, w *runs.Workspace, j *journal.Journal, start hone.Start, k loop.Kind) (*Session, error) {
	s, err := h.resumedSession(k, runs.Relocated(start, w.Dir), "")
	if err != nil {
		return nil, err
	}
	s.Workspace, s.journal, s.replayed = w, j, true
	s.Tree.ReadUpTo(config.MaxFile.In(s.loop.Shared().Values))
	return s, s.openModels(ctx, k)
}

func (h Host) resumedSession(k loop.Kind, start hone.Start, baseURL string) (*Session, error) {
	l, err := runs.Settings(k, start)
	if err != nil {
		return nil, err
	}
	s := h.session(l, start)
	for _, asked := range l.Models() {
		if baseURL != "" {
			asked.Model.SetBaseURL(baseURL)
		}
	}
	return s, nil
}

func (h Host) session(l loop.Loop, start hone.Start) *Session {
	return &Session{host: h, loop: l, start: start, limits: start.Limits,
		models: map[*loop.Model]model.Model{}, trees: map[treeKey]*workspace.Tree{}}
}

func (s *Session) openModels(ctx context.Context, k loop.Kind) (err error) {
	if s.host, err = s.host.WithKey(k, s.Tree); err != nil {
		return err
	}
	if s.replayed {
		s.guard = s.host.keyGuard(s.loop) // what is replayed was redacted when it was recorded
	} else {
		if err = s.findSecrets(ctx, s.host, s.loop); err != nil {
			return err
		}
		s.guard = withoutRecorded(s.guard, s.journal)
	}
	s.host.keys = &keySource{runner: s.Unwalled(), dir: s.Dir, learn: s.guard.Learn}
	for _, m := range loop.AllModels(s.loop) {
		opened, err := s.host.open(*m)
		if err != nil {
			opened = missingModel{err}
		}
		s.models[m] = opened
	}
	return nil
}

// Close removes the walls and unlocks the workspace. It does not close the
// recorded run of Resume.
func (s *Session) Close() error {
	err := s.CloseWalls()
	for _, tree := range s.trees {
		tree.Close()
	}
	for _, do := range slices.Backward(s.onClose) {
		do()
	}
	s.trees, s.onClose = nil, nil
	return err
}

// CloseWalls removes the walls. Call it when the run has ended.
func (s *Session) CloseWalls() error {
	var err error
	for _, w := range slices.Backward(s.walls) {
		err = errors.Join(err, w.Close())
	}
	s.walls = nil
	return err
}

// Root returns the workspace's directory.
func (s *Session) Root() string { return s.Dir }

// Repo returns the repository whose top the workspace is; nil if there is none.
func (s *Session) Repo() *git.Repo { return s.Workspace.Repo }

// Guard returns the guard that finds what is withheld from models.
func (s *Session) Guard() *secret.Guard { return s.guard }

// Unwalled returns the runner of the user's own programs, which runs them without walls.
// They end with this process.
func (s *Session) Unwalled() sandbox.Runner {
	return wall.None{Keeper: s.Keeper, As: sandbox.OwnerOf(s.Dir)}
}

// Replayed reports whether a recorded run is replayed.
func (s *Session) Replayed() bool { return s.replayed }

func (s *Session) findSecrets(ctx context.Context, h Host, l loop.Loop) error {
	g, files, err := withSecretsOf(ctx, s.Dir, h.keyGuard(l), h.getenv, h.variables(l))
	if err == nil {
		s.guard, s.secrets = g, &files
	}
	return err
}

// ID returns the run's id.
func (s *Session) ID() string { return s.journal.Run() }

// Loop returns the loop's name.
func (s *Session) Loop() string { return s.start.Loop }

// Settings returns the settings that every loop has.
func (s *Session) Settings() loop.Settings { return *s.loop.Shared() }

// Openings says what the run's settings open; see [Host.Openings].
func (s *Session) Openings() []string { return s.host.Openings(s.loop) }

// Active returns how long the run has worked, in all its processes.
func (s *Session) Active() time.Duration { return s.journal.Active() }

// IO returns the environment of checks, and where output is shown.
func (s *Session) IO() loop.IO {
	return loop.IO{Environ: s.host.environ(), Terminal: s.Terminal, CheckOutput: checkOutput{s}, Say: func(text string) {
		if s.Thoughts != nil {
			s.Thoughts(text)
		}
	}}
}

// checkOutput keeps what checks print for the journal, and writes it to the session's Output,
// which may be set later.
type checkOutput struct{ s *Session }

// mostPrinted is how much of what a check prints is kept, in bytes.
const mostPrinted = 256 << 10

func (o checkOutput) Write(b []byte) (int, error) {
	if o.s.printed = append(o.s.printed, b...); len(o.s.printed) > 2*mostPrinted {
		o.s.printed = []byte(excerpt.Middle(string(o.s.printed), mostPrinted))
	}
	if o.s.Output == nil {
		return len(b), nil
	}
	return o.s.Output.Write(b)
}

// NewRun returns the run, with rules for its changes. Call it once.
func (s *Session) NewRun(rules workspace.Rules) *hone.Run {
	set := s.loop.Shared()
	v := set.Values
	outputs := slices.Concat(s.start.Outputs, s.outputs)
	if s.journal != nil {
		outputs = append(outputs, history.Follow(s.journal).Facts().Outputs...)
	}
	rules.Immutable = append(slices.Clip(rules.Immutable), set.GitFiles...)
	s.run = &hone.Run{Tree: s.Tree, Journal: s.journal, Rules: rules, Limits: s.limits, Human: s.Human,
		Retry: hone.Retry{Attempts: set.Model.Attempts},
		Trust: hone.Trust{Protect: config.Protect.In(v), Only: config.Only.In(v), OnlyNew: config.OnlyNew.In(v), Tools: config.GuardTools.In(v), Flaky: config.Flaky.In(v), KeepBest: config.Keep.In(v) == "best"}, Largest: config.MaxFile.In(v), MinFree: config.MinFree.In(v),
		Own:     history.OwnFiles(s.loop.Own(s.Dir), outputs),
		Outputs: s.outputs, Printed: func() []byte {
			text := []byte(excerpt.Middle(string(s.printed), mostPrinted))
			s.printed = nil
			return text
		}}
	if s.guard.Knows() {
		s.run.Redact = s.guard.RedactKnown
	}
	if s.guard.KnowsKeys() {
		s.run.HasKey = s.guard.HoldsKey
	}
	if !s.replayed {
		last := s.journal.Run()
		if s.fresh {
			last = s.Lock.LastRun
		}
		s.run.Before = func() workspace.Manifest { return history.LastManifest(s.Home, last) }
		s.run.OnRound, s.run.Ignored, s.run.Lost = s.beforeRound, s.changedIgnored, s.lost
		s.journal.Observe(s.host.Observer)
	}
	return s.run
}

// patience is how long an end waits for a line.
const patience = 5 * time.Second

func (s *Session) changedIgnored() []string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var edited []string
	for _, v := range s.run.Past().Facts().Edits {
		edited = append(edited, v.Path)
	}
	paths, _ := listing.IgnoredChanges(ctx, s.Dir, edited, s.run.Past().First().Time)
	if s.run.Own != nil {
		paths = slices.DeleteFunc(paths, s.run.Own)
	}
	return paths
}

// It is best effort: a repository that cannot be read has no lines.
func (s *Session) lost() []string {
	first := s.run.Past().First()
	if top, err := git.Top(s.Dir); err != nil || gitdir.RefsUnchanged(filepath.Join(top, ".git"), first.Time) {
		return nil
	}
	start, _ := first.Payload.(hone.Start)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	repo, err := git.OpenAt(s.Dir)
	if err != nil {
		return nil
	}
	lines, _ := repo.Lost(ctx, git.Refs(start.Git))
	return lines
}

// Build builds the session's loop. Only a built loop tells whether it has a
// check, so that Build returns the error about one that is to be proved, but
// does not exist. A new run that cannot be built leaves no journal.
func (s *Session) Build() (loop.Built, error) {
	built, err := s.loop.Build(s)
	if !s.fresh {
		return built, err
	}
	if err == nil {
		shared := s.loop.Shared()
		err = errors.Join(shared.Provable(built.Run.Check != nil && built.Run.Trust.Proof != nil), shared.Comparable(built.Run.Check != nil))
	}
	if err == nil {
		return built, nil
	}
	if discardErr := s.journal.Discard(); discardErr != nil {
		err = errors.Join(err, discardErr)
	}
	return loop.Built{}, err
}

// Begin records in the lock which run this process works on, and in the journal
// the settings of a new run. Call it once, before the run's first round.
func (s *Session) Begin() error {
	if err := s.Lock.SetRun(s.ID()); err != nil || !s.fresh {
		return err
	}
	s.fresh = false
	if repo, err := git.OpenAt(s.Dir); err == nil {
		refs, _ := repo.Refs(context.Background())
		s.start.Git = history.Git(refs)
	}
	return s.run.Start(s.start)
}

// Stream shows a model's visible text as it arrives, without keys. Call it
// after NewRun.
func (s *Session) Stream(show func(text string)) {
	g := secret.NewGate(s.guard, show)
	s.run.Stream = g.Pass
	s.journal.Observe(journal.Observer{Before: func(e journal.Entry) {
		if e.Type == history.TypeCommit {
			g.Flush()
		}
	}})
}

// Role returns a role with the settings' model and the tools for the whole
// tree. Its system text ends with the repository's advice. Call it after NewRun or Run.
func (s *Session) Role(name, system string) hone.Role {
	set := s.loop.Shared()
	m := &set.Model
	role := m.Role(name, set.WithAdvice(system))
	role.Bounds = set.Bounds()
	s.assign(&role, m)
	role.Tools = s.toolset(loop.Toolset{}, s.Tree)
	return role
}

// SetModel gives a role its model; see [loop.Session].
func (s *Session) SetModel(role *hone.Role, m *loop.Model, w loop.Walls) error {
	s.assign(role, m)
	if m.Agent == nil {
		return nil
	}
	agent, err := s.enclose(*m, role.Name, w.(*Walls))
	role.Model = agent
	return err
}

func (s *Session) assign(role *hone.Role, m *loop.Model) {
	role.Model = s.models[m]
	for i := range role.Fallbacks {
		role.Fallbacks[i].Model = s.models[&m.Fallbacks[i]]
	}
	if role.Escalation != nil {
		role.Escalation.Model = s.models[m.Escalation]
	}
}

func (s *Session) commandWalls() loop.Walls {
	if s.sharedWalls == nil {
		s.sharedWalls = s.Walls(loop.WallPlan{})
	}
	return s.sharedWalls
}

// Command returns a check that runs a command line in the workspace, behind
// walls. The check passes if the command exits 0.
func (s *Session) Command(line string) check.Func {
	return s.command(line, s.Tree, s.commandWalls())
}

func (s *Session) command(line string, tree *workspace.Tree, w loop.Walls) check.Func {
	return check.Command(w.With(config.CheckEnv.In(s.loop.Shared().Values)), s.commandConfig(line, tree))
}

func (s *Session) commandConfig(line string, tree *workspace.Tree) check.CommandConfig {
	v := s.loop.Shared().Values
	return CheckConfig(check.CommandConfig{
		Command: line, Program: check.Program{Timeout: config.CheckTimeout.In(v), Live: checkOutput{s}}}, v, tree, s.guard)
}

// ReadOutput returns the findings in an output; see [loop.Session].
func (s *Session) ReadOutput(tree *workspace.Tree, output string, exit int) []check.Finding {
	c := s.commandConfig("", tree)
	found := c.Reader(output, exit)
	c.Place(found)
	return found
}

// Check returns the settings' check for a tree, behind walls; nil if the settings
// have none.
func (s *Session) Check(tree *workspace.Tree, w loop.Walls) check.Func {
	line := s.loop.Shared().Check
	if line == "" {
		return nil
	}
	return s.command(line, tree, w)
}

// SetCheck gives the run its check, with a proof if the settings want one; see
// [loop.Session].
func (s *Session) SetCheck(w loop.Walls, makeCheck func(tree *workspace.Tree, w loop.Walls) check.Func) {
	if w == nil {
		w = s.commandWalls()
	}
	walls, run := w.(*Walls), makeCheck(s.Tree, w)
	if s.run.Check = run; run != nil && !walls.Plan.Later { // walls that are built later are those of commands that may never run
		s.run.Check = func(ctx context.Context) ([]check.Finding, error) {
			if err := walls.raise(ctx); err != nil {
				return nil, err // with advice about walls that cannot be built
			}
			return run(ctx)
		}
	}
	if prove := s.loop.Shared().Prove(); prove != "" {
		s.run.Trust.Proof = &hone.Proof{Strict: prove == "strict"}
	}
	s.run.Trust.Copied = func(ctx context.Context, dir string) (found []check.Finding, err error) {
		tree, err := s.Tree.OpenCopy(dir)
		if err != nil {
			return nil, err
		}
		defer tree.Close()
		copied := walls.forCopy(tree.Dir())
		defer func() { err = errors.Join(err, copied.Close()) }()
		return makeCheck(tree, copied)(ctx)
	}
}
