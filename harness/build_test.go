package harness

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace"
)

// codedLoop is a loop whose check is code; nil if it has none.
type codedLoop struct {
	loop.Settings
	check func(context.Context, *workspace.Tree) ([]check.Finding, error)
}

func (l *codedLoop) Build(s loop.Session) (loop.Built, error) {
	r := s.NewRun(workspace.Rules{})
	s.SetCheck(nil, func(tree *workspace.Tree, _ loop.Walls) check.Func {
		if l.check == nil {
			return nil
		}
		return func(ctx context.Context) ([]check.Finding, error) { return l.check(ctx, tree) }
	})
	return loop.Built{Run: r}, nil
}

// Whether there is a check to be proved is known when the loop is built, be it a
// command or code. Without one no run is left.
func TestBuildProves(t *testing.T) {
	passes := func(context.Context, *workspace.Tree) ([]check.Finding, error) { return nil, nil }
	for _, c := range []struct {
		name  string
		prove string
		check func(context.Context, *workspace.Tree) ([]check.Finding, error)
		want  string // in the error; empty if there is none
	}{
		{"a check in code is proved", "on", passes, ""},
		{"no check is not proved", "on", nil, "--prove needs a check"},
		{"no check, no proof", "off", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &codedLoop{Settings: loop.Settings{Model: loop.Model{Name: "script/" + replies(t)}, Values: config.Values{config.Prove.Name: c.prove}}, check: c.check}
			s, err := Host{}.Start(t.Context(), loop.Kind{Name: "test"}, l, Needs{Folder: t.TempDir()}, hone.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			built, err := s.Build()
			switch {
			case c.want == "":
				if err != nil || (built.Run.Trust.Proof != nil) != (c.prove != "off") {
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

// A check in code reads the files that git lists, also in the clean copy on which it is
// proved, which has all files.
func TestCheckOfCopy(t *testing.T) {
	dir := ignoring(t)
	files := func(ctx context.Context, tree *workspace.Tree) (found []check.Finding, err error) {
		all, err := tree.Files(ctx)
		for _, f := range all {
			found = append(found, check.Finding{File: f.Path})
		}
		return found, err
	}
	l := &codedLoop{Settings: loop.Settings{Model: loop.Model{Name: "script/" + replies(t)}, Values: config.Values{config.Prove.Name: "on"}, Walls: loop.WallSettings{Policy: sandbox.Policy{Wall: sandbox.NoWall}}}, check: files}
	s, err := Host{}.Start(t.Context(), loop.Kind{Name: "test"}, l, Needs{Folder: dir}, hone.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	built, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	here, hereErr := built.Run.Check(t.Context())
	there, thereErr := built.Run.Trust.Copied(t.Context(), copied)
	want := []check.Finding{{File: ".gitignore"}, {File: "a.go"}}
	if hereErr != nil || thereErr != nil || !slices.Equal(here, want) || !slices.Equal(there, want) {
		t.Errorf("%v, %v; in the copy %v, %v", here, hereErr, there, thereErr)
	}
}
