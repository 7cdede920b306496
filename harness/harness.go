// Package harness makes runs safe. A [Session] locks the workspace, finishes
// what a killed process left half applied, asks git which files belong to it,
// keeps providers' keys out of whatever is recorded, shown or sent, hides
// secret files, and runs commands behind walls.
//
// A program with a loop of its own calls [Main] first, then [Open], and gives
// its round to the run:
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
// hone lists, shows and undoes the runs of such a program. Only the program
// itself can resume them, because only it has the loop.
//
// The command hone uses the same sessions for its own loops; see [Host].
package harness

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"hone"
	"hone/internal/config"
	"hone/journal"
	"hone/loop"
	"hone/sandbox"
	"hone/sandbox/prove"
	"hone/sandbox/wall"
	"hone/workspace"
)

// Main is the first call of a program that holds sessions. In a helper process
// of the walls, which is the program itself started anew, it does not return.
func Main() {
	wall.Helper()
	prove.Helper()
}

// Options say how a session is opened. The zero value of each field takes what
// .config/hone.toml says, else the default that stands beside it.
type Options struct {
	Model   string // PROVIDER/NAME; default: of the first provider whose key is set
	BaseURL string // the provider's endpoint; default: the provider's own variable, then its own place
	Walls   string // "auto", "hidden", "bwrap", "landlock", "firejail" or "none"; default auto
	Net     bool   // commands may reach the network
	Loop    string // the loop's name in the journal; default: the program's

	// Human can be asked about a change; nil denies what would be asked.
	Human hone.Human
	// Environ is the environment, KEY=VALUE; nil is the process's.
	Environ []string
	// Output shows the output of checks as it comes; nil shows nothing.
	Output io.Writer
	// Observer is told of every event of the run's journal.
	Observer journal.Observer
}

// Open opens a session in a folder. Its error is, among others, that no model
// can be reached, that another hone works there, or that the configuration is
// wrong; nothing was written then. The caller closes the session.
func Open(dir string, o Options) (*Session, error) {
	root, err := loop.Folder(dir)
	if err != nil {
		return nil, err
	}
	file, err := config.LoadShared(root)
	if err != nil {
		return nil, ConfigError(err)
	}
	h := Host{Environ: o.Environ, Observer: o.Observer}
	if o.Environ != nil {
		h.Getenv = lookup(o.Environ)
	}
	k := loop.Kind{Name: cmp.Or(o.Loop, filepath.Base(os.Args[0])), Walls: sandbox.Auto}
	settings, err := h.Resolve(k, root, loop.Flags{Model: o.Model, BaseURL: o.BaseURL, Wall: o.Walls, Net: o.Net}, file)
	if err != nil {
		return nil, err
	}
	s, err := h.Start(context.Background(), k, &plain{settings}, root, loop.Flags{}.Limits.Resolve(file.Limits, 0, 0))
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
	l.Tokens, l.Cost, l.Time = cmp.Or(limits.Tokens, l.Tokens), cmp.Or(limits.Cost, l.Cost), cmp.Or(limits.Time, l.Time)
	s.start.Limits = *l
	r := s.NewRun(workspace.Rules{Guard: s.guard})
	r.OnStart = s.Begin
	return r
}

// ConfigError is what is wrong with a configuration file, which names the place
// itself.
func ConfigError(err error) error { return loop.Usage(err.Error(), "nothing was sent or written") }

// plain is a loop that is a program's own: it has settings and nothing else.
type plain struct{ loop.Settings }

// Build refuses: the program gives its round to the run itself.
func (*plain) Build(loop.Session) (loop.Built, error) {
	return loop.Built{}, fmt.Errorf("the loop is built by its own program")
}

// lookup looks variables up in an environment.
func lookup(environ []string) func(string) string {
	return func(variable string) string {
		for _, kv := range environ {
			if name, value, ok := strings.Cut(kv, "="); ok && name == variable {
				return value
			}
		}
		return ""
	}
}
