package failure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"hone"
)

func TestNextLine(t *testing.T) {
	flags := []hone.Flag{{Name: "max-tokens", Value: "200000"}, {Name: "rounds", Value: "8"}}
	for want, n := range map[string]hone.Next{
		"hone resume RUN": {Verb: hone.Resume},
		"hone resume RUN --max-tokens 200000 --rounds 8": {Verb: hone.Resume, Flags: flags},
		"fix the check, then run: hone resume RUN":       {First: "fix the check", Verb: hone.Resume},
		"hone show RUN --diff; or start a new run":       {Verb: hone.Show, Flags: []hone.Flag{{Name: "diff"}}, Or: &hone.Next{Verb: hone.NewRun}},
		"hone undo RUN --to-round 2":                     {Verb: hone.Undo, Flags: []hone.Flag{{Name: "to-round", Value: "2"}}},
		"choose another model, then start a new run":     {First: "choose another model", Verb: hone.NewRun},
		"start a new run":                                {Verb: hone.NewRun},
		"hone doctor; or use --sandbox none":             {Verb: hone.Doctor, Or: &hone.Next{Flags: []hone.Flag{{Name: "sandbox", Value: "none"}}}},
		"use --prove=on, which only warns":               {Flags: []hone.Flag{{Name: "prove", Value: "on"}}, Remark: "which only warns"},
		"name a model with --model gemini/x":             {First: "name a model", Flags: []hone.Flag{{Name: "model", Value: "gemini/x"}}},
		"read them, then: hone trust /a":                 {First: "read them, then", Verb: hone.Accept, Dir: "/a"},
		"start a new run with --keep best, which helps":  {Verb: hone.NewRun, Flags: []hone.Flag{{Name: "keep", Value: "best"}}, Remark: "which helps"},
		"install bwrap":                                  {First: "install bwrap"},
		"fix it by hand":                                 {Or: &hone.Next{First: "fix it by hand"}},
		"":                                               {},
	} {
		if got := NextLine(n, "RUN"); got != want {
			t.Errorf("%+v is %q, want %q", n, got, want)
		}
	}
}

func TestExitStatus(t *testing.T) {
	for kind, want := range map[hone.Kind]int{
		hone.KindDone: 0, hone.KindRounds: 1, hone.KindStuck: 1, Differs: 1, hone.KindUsage: 2, hone.KindPrompt: 2,
		hone.KindBudget: 3, hone.KindContext: 3, hone.KindBlocked: 4, hone.KindFailed: 5, hone.KindInterrupted: 130,
	} {
		if got := ExitStatus(kind); got != want {
			t.Errorf("%s: exit status %d, want %d", kind, got, want)
		}
	}
}

// TestExplained: the user sees the text of a stop, a usage error or a failure,
// however deep it is wrapped. Any other error does not determine the end.
func TestExplained(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[string]error{
		"blocked: why: cause (hone resume last -C d)": &hone.Stop{Kind: hone.KindBlocked, Why: "why", Err: cause, Next: hone.Next{Verb: hone.Resume}},
		"usage: why (hint)":                           Usage("why", "hint"),
		"failed: cause (hint)":                        Of(cause, "hint"),
		"budget: why: cause ()":                       &Error{Kind: hone.KindBudget, Why: "why", Err: cause},
	} {
		f, ok := Explain(fmt.Errorf("wrapped: %w", err), " -C d")
		if !ok {
			t.Fatalf("%v says nothing", err)
		}
		if got := fmt.Sprintf("%s: %v (%s)", f.Kind, f, f.Hint); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if f, ok := Explain(cause, ""); ok || f.Kind != hone.KindFailed || f.Error() != "cause" || f.Hint != "" {
		t.Errorf("%v says %+v, %v", cause, f, ok)
	}
}

// TestHintsNameTheDirectory: what packages below say as data gets -C.
func TestHintsNameTheDirectory(t *testing.T) {
	for want, next := range map[string]hone.Next{
		"hone runs -C d":                 {Verb: hone.Runs},
		"wait: hone watch -C d":          {First: "wait", Verb: hone.Watch},
		"hone show RUN -C d":             {Verb: hone.Show, Run: "RUN"},
		"accept it: hone trust RUN -C d": {First: "accept it", Verb: hone.Accept, Run: "RUN"},
	} {
		if f, _ := Explain(&hone.UsageError{Why: "why", Next: next}, " -C d"); f.Hint != want {
			t.Errorf("%+v became %q, want %q", next, f.Hint, want)
		}
	}
}

// TestElsewhere: commands for a run of another directory name that.
func TestElsewhere(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(dir, "it's")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inner)
	if got := Elsewhere(dir); got != "" {
		t.Errorf("in it: %q", got)
	}
	t.Chdir(dir)
	if got, want := Elsewhere(inner), ` -C "it's"`; got != want {
		t.Errorf("above it: %q, want %q", got, want)
	}
	beside := filepath.Join(dir, "beside")
	if err := os.Mkdir(beside, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(beside)
	if got, want := Elsewhere(inner), ` -C "`+inner+`"`; got != want {
		t.Errorf("beside it: %q, want %q", got, want)
	}
}
