package harness

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/git"
	"hone/journal"
	"hone/loop"
	"hone/model"
	"hone/workspace"
	"hone/workspace/secret"
)

// Session is one run in a workspace: new, resumed or replayed. What makes a run
// safe is in force from the beginning: the lock, the walls, and keys that are
// kept out of whatever is recorded, shown or sent.
type Session struct {
	*Workspace
	// Human can be asked; nil denies what would have to be asked. It is set
	// before NewRun.
	Human hone.Human
	// Output shows a check's output as it comes; nil shows nothing. It may be
	// set until the run begins.
	Output io.Writer
	// Thoughts shows what a model wants its user to know; nil shows nothing.
	Thoughts func(text string)

	host     Host
	loop     loop.Loop
	journal  *journal.Journal
	start    hone.Start
	fresh    bool // the start is not recorded yet
	replayed bool
	limits   hone.Limits
	guard    *secret.Guard

	models  map[*loop.Model]model.Model
	run     *hone.Run
	walls   []*walls
	usual   loop.Walls // those of commands for which no others were planned
	trees   map[[2]string]*workspace.Tree
	onClose []func()
}

var _ loop.Session = (*Session)(nil)

// Start begins a session with resolved settings in a folder. It writes nothing
// before the models are known to have what they need.
func (h Host) Start(ctx context.Context, k loop.Kind, l loop.Loop, dir string, limits hone.Limits) (*Session, error) {
	settings, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	s := h.session(l, hone.Start{Version: h.Version, Loop: k.Name, Dir: dir, Model: l.Shared().Model.Name, Limits: limits, Settings: settings})
	s.fresh = true
	for _, asked := range l.Models() {
		if s.models[asked.Model], err = h.open(*asked.Model); err != nil {
			return nil, err
		}
	}
	if s.Workspace, err = Enter(ctx, dir, true); err != nil {
		return nil, err
	}
	if err = s.Include(l.Shared().Trust.Include); err == nil {
		s.journal, err = s.Home.Create(s.Home.NewRun())
	}
	if err != nil {
		s.Workspace.Close()
		return nil, err
	}
	s.onClose = []func(){s.Workspace.Close, func() { s.journal.Close() }}
	return s, nil
}

// Resume is a session that resumes a recorded run. A model that cannot be opened
// is only missed when it is asked. An empty baseURL leaves the models where they
// were. The caller closes the recorded run.
func (h Host) Resume(r *Recorded, k loop.Kind, limits hone.Limits, baseURL string) (*Session, error) {
	s, err := h.again(k, r.Start, baseURL)
	if err != nil {
		return nil, err
	}
	s.Workspace, s.journal, s.limits = r.Workspace, r.Journal, limits
	return s, s.takeKeys(k)
}

// Replay is a session that replays a run in a tree, which is a scratch copy. It
// asks no model and runs no command.
func (h Host) Replay(w *Workspace, j *journal.Journal, start hone.Start, k loop.Kind) (*Session, error) {
	s, err := h.again(k, start, "")
	if err != nil {
		return nil, err
	}
	s.Workspace, s.journal, s.replayed = w, j, true
	return s, s.takeKeys(k)
}

// again is a session by the settings of a recorded run.
func (h Host) again(k loop.Kind, start hone.Start, baseURL string) (*Session, error) {
	l, err := Settings(k, start)
	if err != nil {
		return nil, err
	}
	s := h.session(l, start)
	for _, asked := range l.Models() {
		if baseURL != "" {
			asked.Model.Reach(baseURL)
		}
	}
	return s, nil
}

func (h Host) session(l loop.Loop, start hone.Start) *Session {
	return &Session{host: h, loop: l, start: start, limits: start.Limits, guard: h.Guard(l),
		models: map[*loop.Model]model.Model{}, trees: map[[2]string]*workspace.Tree{}}
}

// takeKeys reads the keys that the workspace itself holds, and opens the models.
func (s *Session) takeKeys(k loop.Kind) (err error) {
	if s.host, err = s.host.WithKeys(k, s.Tree); err != nil {
		return err
	}
	s.guard = s.host.Guard(s.loop)
	for _, asked := range s.loop.Models() {
		opened, err := s.host.open(*asked.Model)
		if err != nil {
			opened = absent{err}
		}
		s.models[asked.Model] = opened
	}
	return nil
}

// Close takes the walls down and unlocks the workspace. A recorded run is its
// opener's to close.
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

// CloseWalls takes the walls down. The run is over then.
func (s *Session) CloseWalls() error {
	var err error
	for _, w := range slices.Backward(s.walls) {
		err = errors.Join(err, w.close())
	}
	s.walls = nil
	return err
}

// Root is the workspace's folder.
func (s *Session) Root() string { return s.Dir }

// Repo is the repository whose top the workspace is; nil: there is none.
func (s *Session) Repo() *git.Repo { return s.Workspace.Repo }

// Guard finds what is withheld from models.
func (s *Session) Guard() *secret.Guard { return s.guard }

// Replayed reports whether a recorded run is replayed.
func (s *Session) Replayed() bool { return s.replayed }

// ID is the run's id.
func (s *Session) ID() string { return s.journal.Run() }

// Loop is the loop's name.
func (s *Session) Loop() string { return s.start.Loop }

// Settings are those that every loop has.
func (s *Session) Settings() loop.Settings { return *s.loop.Shared() }

// Active is how long the run has worked, over all its processes.
func (s *Session) Active() time.Duration { return s.journal.Active() }

// Keys are the secret values that this process knows.
func (s *Session) Keys() []string { return s.guard.Known }

// IO returns what checks run with, and where output goes.
func (s *Session) IO() loop.IO {
	return loop.IO{Environ: s.host.environ(), CheckOutput: checkOutput{s}, Say: func(text string) {
		if s.Thoughts != nil {
			s.Thoughts(text)
		}
	}}
}

// checkOutput is the session's Output, which may be set later.
type checkOutput struct{ s *Session }

func (o checkOutput) Write(b []byte) (int, error) {
	if o.s.Output == nil {
		return len(b), nil
	}
	return o.s.Output.Write(b)
}

// NewRun returns the run, whose changes are reviewed by the rules.
func (s *Session) NewRun(rules workspace.Rules) *hone.Run {
	set := s.loop.Shared()
	s.run = &hone.Run{Tree: s.Tree, Journal: s.journal, Rules: rules, Limits: s.limits, Human: s.Human,
		Retry: hone.Retry{Attempts: set.Model.Attempts},
		Trust: hone.Trust{Protect: set.Trust.Protect, Flaky: set.Trust.Flaky, KeepBest: set.Trust.KeepBest}, Largest: set.Trust.MaxFile,
		Own: s.loop.Own(s.Dir), Redact: Redactor(s.Keys())}
	if !s.replayed {
		s.run.Before = s.before()
		s.journal.Observe(s.host.Observer)
	}
	return s.run
}

// Build builds the session's loop.
func (s *Session) Build() (loop.Built, error) { return s.loop.Build(s) }

// before looks for what is known of the tree: from the run itself if it is
// resumed, else from the one before.
func (s *Session) before() func() workspace.Manifest {
	run := s.journal.Run()
	if s.fresh {
		run = s.lock.LastRun
	}
	return func() workspace.Manifest { return history.LastManifest(s.Home, run) }
}

// Begin records in the lock which run this process works on, and in the journal
// the settings of a new run. Call it once, before the run's first round.
func (s *Session) Begin() error {
	if err := s.lock.SetRun(s.ID()); err != nil || !s.fresh {
		return err
	}
	s.fresh = false
	return s.run.Start(s.start)
}

// Stream shows a model's visible text as it arrives, without keys.
func (s *Session) Stream(show func(text string)) {
	g := NewGate(s.Keys(), show)
	s.run.Stream = g.Pass
	s.journal.Observe(journal.Observer{Before: func(e journal.Entry) {
		if e.Type == history.TypeCommit {
			g.Flush()
		}
	}})
}

// Role is a role with the settings' model and the tools of the whole tree. It
// is called after NewRun.
func (s *Session) Role(name, system string) hone.Role {
	m := &s.loop.Shared().Model
	role := m.Role(name, system)
	role.Model = s.models[m]
	role.Tools = s.bench(loop.Toolset{}, s.Tree)
	return role
}

// SetModel gives a role its model; see [loop.Session].
func (s *Session) SetModel(role *hone.Role, m *loop.Model, w loop.Walls) error {
	role.Model = s.models[m]
	if m.Agent == nil {
		return nil
	}
	agent, err := s.enclose(*m, role.Name, w.(*walls))
	role.Model = agent
	return err
}

// commands are the walls of commands for which no others were planned.
func (s *Session) commands() loop.Walls {
	if s.usual == nil {
		s.usual = s.Walls(loop.WallPlan{Bounded: true})
	}
	return s.usual
}

// Command is a check that runs a command line in the workspace, behind walls,
// and passes if it exits 0.
func (s *Session) Command(line string) check.Func {
	return s.command(line, s.Dir, s.commands())
}

func (s *Session) command(line, dir string, w loop.Walls) check.Func {
	set := s.loop.Shared()
	return check.Command(w.With(set.CheckEnv), check.CommandConfig{
		Command: line, Dir: dir, Timeout: set.CheckTime, Redact: s.guard.Redact, Live: checkOutput{s}})
}

// Check is the settings' check in a folder, behind walls; nil where they have
// none.
func (s *Session) Check(dir string, w loop.Walls) check.Func {
	line := s.loop.Shared().Check
	if line == "" {
		return nil
	}
	return s.command(line, dir, w)
}

// SetCheck gives the run its check and the proof of it; see [loop.Session].
func (s *Session) SetCheck(w loop.Walls, makeCheck func(dir string, w loop.Walls) check.Func) {
	if w == nil {
		w = s.commands()
	}
	s.run.Check = makeCheck(s.Dir, w)
	prove := s.loop.Shared().Trust.Prove
	if prove == "" {
		return
	}
	s.run.Trust.Proof = &hone.Proof{Strict: prove == "strict", Check: func(ctx context.Context, dir string) (found []check.Finding, err error) {
		there := w.(*walls).around(dir)
		defer func() { err = errors.Join(err, there.close()) }()
		return makeCheck(dir, there)(ctx)
	}}
}
