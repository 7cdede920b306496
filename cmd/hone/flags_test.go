package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"hone"
	"hone/loop"
	"hone/sandbox"
)

func TestRaised(t *testing.T) {
	had := hone.Limits{Rounds: 5, Tokens: 1000, Time: time.Hour}
	for _, test := range []struct {
		name string
		ask  loop.LimitFlags
		want hone.Limits // zero if refused
	}{
		{"nothing is asked for", loop.LimitFlags{}, had},
		{"the same", loop.LimitFlags{Rounds: 5, MaxTokens: 1000, MaxTime: time.Hour}, had},
		{"one is raised", loop.LimitFlags{Rounds: 6}, hone.Limits{Rounds: 6, Tokens: 1000, Time: time.Hour}},
		{"all are raised", loop.LimitFlags{Rounds: 6, MaxTokens: 1001, MaxTime: 2 * time.Hour}, hone.Limits{Rounds: 6, Tokens: 1001, Time: 2 * time.Hour}},
		{"rounds are lowered", loop.LimitFlags{Rounds: 4, MaxTokens: 2000}, hone.Limits{}},
		{"tokens are lowered", loop.LimitFlags{MaxTokens: 999}, hone.Limits{}},
		{"time is lowered", loop.LimitFlags{MaxTime: time.Minute}, hone.Limits{}},
		{"a cost limit where there was none", loop.LimitFlags{MaxCost: 100}, hone.Limits{}},
	} {
		got, err := raisedLimits(had, test.ask, "last")
		switch {
		case test.want == hone.Limits{}:
			if !errors.As(err, new(*hone.UsageError)) || got != had {
				t.Errorf("%s: %+v, %v; want it refused", test.name, got, err)
			}
		case err != nil || got != test.want:
			t.Errorf("%s: %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
	costly, err := raisedLimits(hone.Limits{Rounds: 1, Cost: 1.5}, loop.LimitFlags{MaxCost: 2}, "last")
	if err != nil || costly.Cost != 2 {
		t.Errorf("a cost limit is raised: %+v, %v", costly, err)
	}
}

// toyLoop is a loop that rewords a shared flag.
type toyLoop struct{ loop.Settings }

func (*toyLoop) Flags(fs *pflag.FlagSet) { fs.Lookup("sandbox").Usage = "walls for everything" }

func (*toyLoop) Build(loop.Session) (loop.Built, error) { return loop.Built{}, nil }

// toyKind returns the kind of toyLoop, with a default wall.
func toyKind(w sandbox.Wall) loop.Kind {
	return loop.Kind{Name: "toy", Use: "toy", Short: "plays", Walls: w, New: func() loop.Loop { return &toyLoop{} }}
}

// The help of --sandbox names the default wall of the Kind, in the loop's own
// words too.
func TestSandboxDefault(t *testing.T) {
	a := &app{}
	for _, k := range append(kinds(), toyKind(sandbox.Auto), toyKind("")) {
		want := " (default auto)"
		if k.Walls == "" {
			want = " (default none)"
		}
		text := a.loopCommand(k).Flags().Lookup("sandbox").Usage
		if !strings.HasSuffix(text, want) || strings.Count(text, "default") != 1 {
			t.Errorf("%s: %q, want it to end in %q", k.Name, text, want)
		}
	}
}
