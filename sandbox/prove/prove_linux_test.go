package prove

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hone/sandbox"
)

func walls() []sandbox.Wall {
	return []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail, sandbox.NoWall}
}

// TestWall checks that every available wall holds, and that its door is open.
func TestWall(t *testing.T) {
	for _, wall := range walls() {
		proveAll(t, wall, Short, len(Attempts())-3)
		if !raced { // the race detector needs more memory than the limit
			proveAll(t, wall, Wall, len(Attempts()))
		}
	}
}

func proveAll(t *testing.T, wall sandbox.Wall, prove func(context.Context, sandbox.Wall, string) (Report, error), attempts int) {
	began := time.Now()
	r, err := prove(t.Context(), wall, "")
	var cannot *sandbox.WallError
	if errors.As(err, &cannot) {
		t.Logf("NOT PROVED %s: %v", wall, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d stopped, %d open, in %v", r.Grade, len(r.In(Stopped)), len(r.In(Open)), time.Since(began))
	if r.Grade.Wall != wall || len(r.Results) != attempts || r.Err() != nil || wall != sandbox.NoWall && len(r.In(Blocked)) > 0 {
		t.Errorf("%s: %v, %d results, blocked: %v", r.Grade, r.Err(), len(r.Results), r.In(Blocked))
	}
}

func TestNoSuchWall(t *testing.T) {
	var cannot *sandbox.WallError
	if _, err := Wall(t.Context(), "paper", ""); !errors.As(err, &cannot) {
		t.Errorf("a wall of paper: %v", err)
	}
}

// TestHoles checks that walls that let too much through are found.
func TestHoles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		widen func(*stage, *sandbox.Policy)
		holes []string
	}{
		{"one directory too many", func(s *stage, p *sandbox.Policy) { p.Write = append(p.Write, s.Outside()) }, []string{"read-file", "overwrite-file"}},
		{"the network", func(_ *stage, p *sandbox.Policy) { p.Net = true }, []string{"tcp"}},
		{"nothing hidden", func(_ *stage, p *sandbox.Policy) { p.Hide = nil }, []string{"hidden-read", "hidden-list", "workspace-socket"}},
		{"nothing guarded", func(_ *stage, p *sandbox.Policy) {
			p.Read = slices.DeleteFunc(p.Read, func(path string) bool { return strings.Contains(path, ".git/") })
		}, []string{"git-config-write", "git-directory-move"}},
		{"no overlay", func(s *stage, p *sandbox.Policy) {
			p.Overlays, p.Write = nil, append(p.Write, s.Cache())
			p.Read = slices.DeleteFunc(p.Read, func(path string) bool { return strings.Contains(path, "/cache") })
		}, []string{"cache-write"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := try(t.Context(), sandbox.Hidden, "", false, tt.widen)
			var cannot *sandbox.WallError
			if errors.As(err, &cannot) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range tt.holes {
				if !slices.ContainsFunc(r.In(Hole), func(one Result) bool { return one.Name == name }) {
					t.Errorf("%s is no hole: %v", name, r.Results)
				}
			}
		})
	}
}

// Attempts whose process is killed before the first of them are made once more.
func TestAttemptsThatWereKilled(t *testing.T) {
	for deaths := 1; deaths <= 2; deaths++ {
		r, err := try(t.Context(), sandbox.Landlock, "", false, func(st *stage, p *sandbox.Policy) {
			dies := fmt.Sprintf("#!/bin/sh\nfor n in $(seq %d); do mkdir died-$n 2>/dev/null && kill -9 $$; done\nexec %s \"$@\"\n", deaths, st.Program)
			st.Program = st.Lib("dies")
			if err := os.WriteFile(st.Program, []byte(dies), 0o755); err != nil {
				t.Fatal(err)
			}
			st.before["lib"] = st.look("lib")
		})
		if cannot := (*sandbox.WallError)(nil); errors.As(err, &cannot) {
			t.Skip(err)
		}
		if deaths == 1 && (err != nil || len(r.Results) != len(Attempts())-3) || deaths == 2 && err == nil {
			t.Errorf("%d deaths: %v, %v", deaths, r.Results, err)
		}
	}
}

// A process that ended before it had made all attempts proves nothing, unless its walls killed it at a limit.
func TestEndedInTheMiddle(t *testing.T) {
	together, alone := []Attempt{{Name: "a"}, {Name: "b"}}, []Attempt{{Name: "b", alone: true}}
	const told = `{"Name":"a","Got":"ENOENT"}` + "\n"
	for _, tt := range []struct {
		batch []Attempt
		how   sandbox.Result
		want  string // of the last; empty means an error
	}{
		{together, sandbox.Result{Stdout: []byte(told), Signal: "killed", Exit: -1}, ""},
		{together, sandbox.Result{Stdout: []byte(told), Exit: 0}, ""},
		{together, sandbox.Result{Stdout: []byte(told + told), Exit: 0}, ""},
		{together, sandbox.Result{Stdout: []byte(told + `{"Name":"b","Got":"open"}`)}, "open"},
		{together[:1], sandbox.Result{Stdout: []byte(told)}, "ENOENT"},
		{alone, sandbox.Result{OverLimit: "memory", Exit: -1}, "held"},
		{alone, sandbox.Result{Signal: "killed", Exit: -1}, "held"},
		{alone, sandbox.Result{Signal: "killed", TimedOut: true, Exit: -1}, "unknown"},
		{alone, sandbox.Result{Exit: 1}, ""},
	} {
		made, err := results(tt.batch, tt.how)
		if tt.want == "" && err == nil || tt.want != "" && (err != nil || made[len(made)-1].Got != tt.want) {
			t.Errorf("%+v: %+v, %v", tt.how, made, err)
		}
	}
}

func TestReport(t *testing.T) {
	r := Report{Grade: sandbox.Grade{Wall: sandbox.Hidden}, Results: []Result{
		{Name: "fine", Got: "ENOENT"},
		{Name: "hole", Got: "open"},
		{Name: "known", Open: true, Got: "open"},
		{Name: "shut", Open: true, Got: "ENOENT"},
		{Name: "missing", Got: "unknown"},
	}}
	for _, tt := range []struct {
		what string
		got  []Result
		want []string
	}{
		{"holes", r.In(Hole), []string{"hole"}},
		{"open", r.In(Open), []string{"known"}},
		{"shut", r.In(Blocked), []string{"shut"}},
		{"unknown", r.In(Unknown), []string{"missing"}},
		{"stopped", r.In(Stopped), []string{"fine"}},
	} {
		var names []string
		for _, one := range tt.got {
			names = append(names, one.Name)
		}
		if !slices.Equal(tt.want, names) {
			t.Errorf("%s: got %q, want %q", tt.what, names, tt.want)
		}
	}
	if err := r.Err(); err == nil || err.Error() != "the hidden wall does not hold: hole" {
		t.Errorf("the error is %v", err)
	}
	if err := (Report{}).Err(); err != nil {
		t.Errorf("nothing was tried, and the error is %v", err)
	}
}

func BenchmarkWall(b *testing.B) {
	for _, wall := range walls() {
		b.Run(string(wall), func(b *testing.B) {
			for b.Loop() {
				if _, err := Wall(context.Background(), wall, ""); err != nil {
					b.Skip(err)
				}
			}
		})
	}
}
