package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone"
	"hone/check"
	"hone/internal/config"
)

// trustFlags say how far a check is to be trusted, and which tree is kept when
// it was never green.
type trustFlags struct {
	flaky int
	prove string
	keep  string
}

func (f *trustFlags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.flaky, "flaky", 0, "run a failing check up to N times more; what does not fail each time is reported and counts for nothing (default 0)")
	fs.StringVar(&f.prove, "prove", "", "see the check fail before the first round, and run it again on a clean copy when it passes: on, off, or strict (ends the run where it passes at the start)")
	fs.Lookup("prove").NoOptDefVal = "on"
	fs.StringVar(&f.keep, "keep", "", "the tree that is left when rounds or budget run out: last, or that of the round with the fewest findings: best (default last)")
}

// valid says what is wrong with the flags by themselves.
func (f trustFlags) valid(c *cobra.Command) error {
	switch {
	case f.flaky < 0:
		return usage("--flaky must not be less than nothing", "hone help "+c.Name())
	case !slices.Contains([]string{"", "on", "off", "strict"}, f.prove):
		return usage(fmt.Sprintf("--prove=%s is not on, off or strict", f.prove), "hone help "+c.Name())
	case !slices.Contains([]string{"", "best", "last"}, f.keep):
		return usage(fmt.Sprintf("--keep %s is not best or last", f.keep), "hone help "+c.Name())
	}
	return nil
}

// trustSettings are those flags, resolved, with what the configuration adds.
type trustSettings struct {
	Protect  []string `json:"protect,omitempty"`
	Flaky    int      `json:"flaky,omitempty"`
	Prove    string   `json:"prove,omitempty"` // "on" or "strict"; empty: the check's word is taken
	KeepBest bool     `json:"keep_best,omitempty"`
	Include  []string `json:"include,omitempty"`  // globs of ignored files that are kept for undo
	MaxFile  int64    `json:"max_file,omitempty"` // bytes; larger files are not kept for undo; 0: all are
}

func resolveTrust(f trustFlags, file config.File) trustSettings {
	s := trustSettings{
		Protect: file.Check.Protect, Flaky: cmp.Or(f.flaky, file.Check.Flaky), Prove: cmp.Or(f.prove, file.Check.Prove),
		KeepBest: cmp.Or(f.keep, file.Limits.Keep) == "best", Include: file.Undo.Include, MaxFile: file.Undo.MaxFile,
	}
	if s.Prove == "off" {
		s.Prove = ""
	}
	return s
}

// govern gives a run the settings, but for the proof: only a loop knows how its
// check is made.
func (s trustSettings) govern(r *hone.Run) {
	r.Trust.Protect, r.Trust.Flaky, r.Trust.KeepBest, r.Largest = s.Protect, s.Flaky, s.KeepBest, s.MaxFile
}

// provable refuses to prove a check that there is not.
func (s trustSettings) provable(there bool) error {
	if s.Prove == "" || there {
		return nil
	}
	return usage("--prove needs a check that it can prove, and there is none", `--check "make test"`)
}

// prove gives a run the proof of its check: made of the walls and the folder of
// a copy, it is the run's own check there. Nil walls are none.
func (s trustSettings) prove(r *hone.Run, root string, walls *runWalls, made func(dir string, walls *runWalls) check.Func) {
	if s.Prove == "" {
		return
	}
	r.Trust.Proof = &hone.Proof{Strict: s.Prove == "strict", Check: func(ctx context.Context, dir string) (found []check.Finding, err error) {
		there := walls.around(root, dir)
		defer func() {
			if closing := there.close(); err == nil {
				err = closing
			}
		}()
		return made(dir, there)(ctx)
	}}
}

// around are the same walls around a copy of the tree.
func (w *runWalls) around(root, dir string) *runWalls {
	if w == nil {
		return nil
	}
	c := &runWalls{app: w.app, run: w.run, want: w.want}
	c.want.proved = true // those of the tree were
	if w.up != nil {
		c.want.Wall = string(w.up.Grade().Wall)
	}
	c.want.root = moved(root, dir, w.want.root)[0]
	c.want.Write, c.want.Read, c.want.Hide = moved(root, dir, w.want.Write...), moved(root, dir, w.want.Read...), moved(root, dir, w.want.Hide...)
	return c
}

// moved are paths with what lies in one folder where it lies in another.
func moved(from, to string, paths ...string) []string {
	there := make([]string, len(paths))
	for i, p := range paths {
		there[i] = p
		if p == from {
			there[i] = to
		} else if rest, inside := strings.CutPrefix(p, from+string(filepath.Separator)); inside {
			there[i] = filepath.Join(to, rest)
		}
	}
	return there
}
