// Package harness makes runs safe. A [Session] locks the workspace, completes
// the edits of a process that was killed, asks git which files belong to the
// workspace, removes providers' keys from everything that is recorded, shown or
// sent, hides secret files, and runs commands behind walls.
//
// A program with its own loop calls [Main] first, then [Open], and gives its
// round to the run:
//
//	harness.Main()
//	s, err := harness.Open(".", harness.Options{})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer s.Close()
//	run := s.Run(hone.Limits{Rounds: 5})
//	run.Check = s.Command("golangci-lint run")
//	fixer := s.Role("fixer", "Fix what the linter reports.")
//	end, err := run.Do(ctx, func(ctx context.Context, r *hone.Run, wrong []check.Finding) ([]check.Finding, error) {
//		var reports []string
//		for _, f := range wrong {
//			reports = append(reports, f.Text)
//		}
//		_, err := r.Talk(ctx, fixer, hone.Text(reports...))
//		return nil, err
//	})
//
// The command hone lists, shows and undoes the runs of such a program. Only the
// program itself can resume them, because only it has the loop.
//
// The command hone uses the same sessions for its own loops; see [Host].
//
// The package has more than 2 500 lines because a session joins models, tools, walls
// and secrets. What needs no session is in the packages below.
package harness

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"hone"
	"hone/internal/config"
	"hone/journal"
	"hone/loop"
	"hone/sandbox"
	"hone/sandbox/prove"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
	"hone/workspace"
)

// Main must be the first call in the main function of a program that uses
// sessions. The walls, and the keeper of commands without walls, start the program
// again as a helper process; there Main does not return.
func Main() {
	wall.Helper()
	prove.Helper()
	workshop.Helper()
}

// Options say how a session is opened. A field with its zero value takes the
// value from .config/hone.toml or, if that has none, the default below. The
// variable HONE_MODEL, if it is set, goes before the model of that file.
type Options struct {
	Model   string // PROVIDER/NAME; default: that of the first provider whose key is set
	BaseURL string // the provider's address; default: that in the provider's variable, or its public one
	Walls   string // "auto", "hidden", "bwrap", "landlock", "firejail" or "none"; default auto
	Net     bool   // commands may reach the network
	Loop    string // the loop's name in the journal; default: the program's

	// Human approves changes that need it; nil leaves them pending.
	Human hone.Human
	// Trust asks the user to trust what the folder's own configuration would run or open;
	// nil denies what the user has not trusted with the command hone, or with HONE_TRUST.
	Trust func(context.Context, TrustQuestion) bool
	// Environ is the environment, KEY=VALUE; nil means the process's.
	Environ []string
	// Output shows the output of checks as it arrives; nil shows nothing.
	Output io.Writer
	// Observer is called for every event of the run's journal.
	Observer journal.Observer
}

// Open opens a session in a directory. It fails, for example, if another hone works
// there, or if the configuration is wrong. Without the key of the only model it succeeds; then
// the run ends with [hone.KindUsage] before its first round. A check that runs first and
// passes ([hone.UnlessClean]) needs no round. If an error is a [*hone.UsageError], its Hint says what to do. The caller
// closes the session.
func Open(dir string, o Options) (*Session, error) {
	root, err := loop.AbsDir(dir)
	if err != nil {
		return nil, err
	}
	if _, err := Recover(root); err != nil {
		return nil, err
	}
	file, err := config.Load(root)
	if err != nil {
		return nil, ConfigError(err)
	}
	h := Host{Environ: o.Environ, Observer: o.Observer, Trust: o.Trust}
	if o.Environ != nil {
		h.Getenv = lookup(o.Environ)
	}
	k := loop.Kind{Name: cmp.Or(o.Loop, filepath.Base(os.Args[0])), Modelless: true}
	flags := config.Values{}
	config.Model.Before(flags, nil, o.Model)
	config.BaseURL.Before(flags, nil, o.BaseURL)
	config.Wall.Before(flags, nil, o.Walls)
	config.Net.Before(flags, nil, o.Net)
	values := file.For(k.Name, h.getenv, flags)
	settings, err := h.Resolve(k, root, values, file)
	if err != nil {
		return nil, err
	}
	programs, err := OwnPrograms(root, file)
	if err != nil {
		return nil, err
	}
	n := Needs{Folder: root, Programs: programs, Settings: file.Opens}
	s, err := h.Start(context.Background(), k, &programLoop{settings}, n, loop.LimitsOf(values))
	if err != nil {
		return nil, err
	}
	s.Human, s.Output = o.Human, o.Output
	return s, nil
}

// Run returns the session's run. Call it once, and give your round to the run's
// [hone.Run.Do], which records the settings first and returns an error if it
// cannot.
//
// A limit that is 0 takes the value of the configuration, or hone's default for
// tokens and time. The run's Rules refuse changes to secrets and to hone's own
// files; you may replace them.
func (s *Session) Run(limits hone.Limits) *hone.Run {
	l := &s.limits
	l.Rounds, l.Patience = cmp.Or(limits.Rounds, l.Rounds), cmp.Or(limits.Patience, l.Patience)
	l.Unreadable = cmp.Or(limits.Unreadable, l.Unreadable)
	l.Tokens, l.Cost, l.Time = cmp.Or(limits.Tokens, l.Tokens), cmp.Or(limits.Cost, l.Cost), cmp.Or(limits.Time, l.Time)
	s.start.Limits = *l
	r := s.NewRun(workspace.Rules{Guard: s.guard})
	r.OnStart = s.Begin
	return r
}

// ConfigError returns the usage error for an error in a configuration file, whose
// text must contain the file and the line.
func ConfigError(err error) error { return loop.UsageOf(err, "nothing was sent or written") }

// programLoop is the loop of a program that uses Open: it has only settings.
type programLoop struct{ loop.Settings }

// Build returns an error: the program gives its round to the run itself.
func (*programLoop) Build(loop.Session) (loop.Built, error) {
	return loop.Built{}, fmt.Errorf("the loop is built by its own program")
}

func lookup(environ []string) func(string) string {
	return func(variable string) string { return sandbox.EnvValue(environ, variable) }
}
