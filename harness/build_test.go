package harness

import (
	"context"
	"errors"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/loop"
	"hone/workspace"
)

// codedLoop is a loop whose check is code.
type codedLoop struct {
	loop.Settings
	check check.Func
}

func (l *codedLoop) Build(s loop.Session) (loop.Built, error) {
	r := s.NewRun(workspace.Rules{})
	s.SetCheck(nil, func(string, loop.Walls) check.Func { return l.check })
	return loop.Built{Run: r}, nil
}

// Whether there is a check to be proved is known when the loop is built, be it a
// command or code. Without one no run is left.
func TestBuildProves(t *testing.T) {
	passes := func(context.Context) ([]check.Finding, error) { return nil, nil }
	for _, c := range []struct {
		name  string
		prove string
		check check.Func
		want  string // in the error; empty if there is none
	}{
		{"a check in code is proved", "on", passes, ""},
		{"no check is not proved", "on", nil, "--prove needs a check"},
		{"no check, no proof", "", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &codedLoop{Settings: loop.Settings{Model: loop.Model{Name: "script/" + replies(t)}, Trust: loop.Trust{Prove: c.prove}}, check: c.check}
			if err := l.Ready(t.Context(), &loop.Input{}); err != nil {
				t.Errorf("it is refused before it is built: %v", err)
			}
			s, err := Host{}.Start(t.Context(), loop.Kind{Name: "test"}, l, Needs{Folder: t.TempDir()}, hone.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			built, err := s.Build()
			switch {
			case c.want == "":
				if err != nil || (built.Run.Trust.Proof != nil) != (c.prove != "") {
					t.Errorf("%v, %v", built.Run, err)
				}
			case !errors.As(err, new(*hone.UsageError)) || !strings.Contains(err.Error(), c.want):
				t.Errorf("%v, want %q", err, c.want)
			default:
				if runs, err := s.Home.Runs(); err != nil || len(runs) > 0 {
					t.Errorf("runs are left: %v, %v", runs, err)
				}
			}
		})
	}
}
