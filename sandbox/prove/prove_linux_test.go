package prove

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hone/sandbox"
	"hone/sandbox/prove/internal/stage"
)

func walls() []sandbox.Wall {
	return []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail, sandbox.NoWall}
}

// TestWall checks that every available wall holds, and that its door is open.
func TestWall(t *testing.T) {
	for _, wall := range walls() {
		proveAll(t, wall, Short, len(together(func(*attempt) {})))
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
	t.Logf("%s: %d stopped, %d open, in %v", r.Grade, len(r.Stopped()), len(r.Open()), time.Since(began))
	if r.Grade.Wall != wall || len(r.Results) != attempts || r.Err() != nil || wall != sandbox.NoWall && len(r.Blocked()) > 0 {
		t.Errorf("%s: %v, %d results, blocked: %v", r.Grade, r.Err(), len(r.Results), r.Blocked())
	}
}

func TestNoSuchWall(t *testing.T) {
	var cannot *sandbox.WallError
	if _, err := Wall(t.Context(), "paper", ""); !errors.As(err, &cannot) {
		t.Errorf("a wall of paper: %v", err)
	}
}

// together returns the attempts that share a process, after a change to the one on the
// door, which adds nothing to the scene and comes after those that add to the policy.
func together(change func(door *attempt)) []attempt {
	all := slices.DeleteFunc(Attempts(), func(a attempt) bool { return a.Alone })
	change(&all[slices.IndexFunc(all, func(a attempt) bool { return a.Name == "door" })])
	return all
}

// TestHoles checks that walls that let too much through are found.
func TestHoles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		widen func(scene, *sandbox.Policy)
		holes []string
	}{
		{"one directory too many", func(s scene, p *sandbox.Policy) { p.Write = append(p.Write, filepath.Join(s.Dir, "outside")) }, []string{"read-file", "overwrite-file"}},
		{"the network", func(_ scene, p *sandbox.Policy) { p.Net = true }, []string{"tcp", "udp"}},
		{"nothing hidden", func(_ scene, p *sandbox.Policy) { p.Hide = nil }, []string{"hidden-read", "hidden-list", "workspace-socket"}},
		{"nothing guarded", func(_ scene, p *sandbox.Policy) {
			p.Read = slices.DeleteFunc(p.Read, func(path string) bool { return strings.Contains(path, ".git/") })
		}, []string{"git-config-write", "git-directory-move"}},
		{"no overlay", func(s scene, p *sandbox.Policy) {
			p.Overlays, p.Write = nil, append(p.Write, filepath.Join(s.Dir, "caches"))
			p.Read = slices.DeleteFunc(p.Read, func(path string) bool { return strings.Contains(path, "/caches/") })
		}, []string{"cache-write"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := together(func(door *attempt) { door.Policy = tt.widen })
			_, made, err := stage.Run(t.Context(), sandbox.Hidden, "", all)
			var cannot *sandbox.WallError
			if errors.As(err, &cannot) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range tt.holes {
				if !slices.ContainsFunc(made, func(one stage.Made) bool { return one.Name == name && one.Got == stage.WordOpen }) {
					t.Errorf("%s is no hole: %v", name, made)
				}
			}
		})
	}
}

// Attempts whose process is killed before the first of them are made once more.
func TestAttemptsThatWereKilled(t *testing.T) {
	for deaths := 1; deaths <= 2; deaths++ {
		program := ""
		all := together(func(door *attempt) {
			door.Prepare = func(st *stage.Stage, _ scene) (string, error) {
				dies := fmt.Sprintf("#!/bin/sh\nfor n in $(seq %d); do mkdir died-$n 2>/dev/null && kill -9 $$; done\nexec %s \"$@\"\n", deaths, st.Program)
				program, _ = os.Readlink(st.Program)
				st.Program = st.Lib("dies")
				return "", os.WriteFile(st.Program, []byte(dies), 0o755)
			}
			door.Policy = func(_ scene, p *sandbox.Policy) {
				if program != "" {
					p.Read = append(p.Read, program)
				}
			}
		})
		_, made, err := stage.Run(t.Context(), sandbox.Landlock, "", all)
		if cannot := (*sandbox.WallError)(nil); errors.As(err, &cannot) {
			t.Skip(err)
		}
		if deaths == 1 && (err != nil || len(made) != len(all)) || deaths == 2 && err == nil {
			t.Errorf("%d deaths: %d results of %d attempts, %v", deaths, len(made), len(all), err)
		}
	}
}

func TestReport(t *testing.T) {
	r := Report{Grade: sandbox.Grade{Wall: sandbox.Hidden}, Results: []Result{
		{Name: "fine", Got: "ENOENT"},
		{Name: "hole", Got: "open"},
		{Name: "untried", Got: "not tried"},
		{Name: "known", Open: true, Got: "open"},
		{Name: "shut", Open: true, Got: "ENOENT"},
		{Name: "missing", Got: "unknown"},
	}}
	for _, tt := range []struct {
		what string
		got  []Result
		want []string
	}{
		{"holes", r.Holes(), []string{"hole", "untried"}},
		{"open", r.Open(), []string{"known"}},
		{"shut", r.Blocked(), []string{"shut"}},
		{"unknown", r.Inconclusive(), []string{"missing"}},
		{"stopped", r.Stopped(), []string{"fine", "shut"}},
	} {
		var names []string
		for _, one := range tt.got {
			names = append(names, one.Name)
		}
		if !slices.Equal(tt.want, names) {
			t.Errorf("%s: got %q, want %q", tt.what, names, tt.want)
		}
	}
	if err := r.Err(); err == nil || err.Error() != "the hidden wall does not hold: hole, untried" {
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
