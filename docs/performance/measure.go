package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

func (b *bench) client() program { return program{argv: []string{b.bare, "%s/v1"}, state: b.dir} }

// fix is hone fix behind a wall.
func (b *bench) fix(wall string) program {
	return program{argv: []string{b.hone, "fix", "-q", "--check", check, "-m", "openai/bench", "--base-url", "%s/v1", "--wire", "chat",
		"--sandbox", wall, "--turns", "100"}, state: b.dir}
}

func (b *bench) start(argv ...string) func() (figures, error) {
	return func() (figures, error) { return b.run(job{program: program{argv: argv, state: b.dir}, dir: b.dir}) }
}

// play runs a job in a new project, and checks the result.
func (b *bench) play(j job, files map[string]string) (figures, error) {
	var err error
	if j.dir, err = b.project(files); err != nil {
		return figures{}, err
	}
	defer os.RemoveAll(j.dir)
	f, err := b.run(j)
	return f, errors.Join(err, checkEdit(j.dir))
}

// checkEdit returns an error unless the job in this directory has made its edit.
func checkEdit(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	if err == nil && string(text) != "two\n" {
		err = fmt.Errorf("a.txt is %q after the job", text)
	}
	return err
}

func (b *bench) small(p program) func() (figures, error) {
	return func() (figures, error) {
		return b.play(job{program: p, session: &session{replies: fixing()}}, small())
	}
}

// sampled measures only memory.
func (b *bench) sampled(p program) func() (figures, error) {
	files := small()
	files["check.sh"] = "sleep 1\n" + files["check.sh"]
	return func() (figures, error) {
		f, err := b.play(job{program: p, session: &session{replies: fixing()}, sample: true}, files)
		return figures{rss: f.rss, pss: f.pss}, err
	}
}

// unproved measures the job of a user who has never run hone.
func (b *bench) unproved() (figures, error) {
	p := b.fix("auto")
	dir, err := os.MkdirTemp(b.dir, "state")
	if err != nil {
		return figures{}, err
	}
	defer os.RemoveAll(dir)
	p.state = dir
	return b.small(p)()
}

func (b *bench) reconcileFloor() (figures, error) {
	dir, err := b.project(reconciled())
	if err != nil {
		return figures{}, err
	}
	defer os.RemoveAll(dir)
	f, err := b.run(job{program: b.client(), dir: dir, session: &session{replies: []reply{{text: "Done."}}}})
	if err != nil {
		return f, err
	}
	if err := os.WriteFile(filepath.Join(dir, "src/a"), []byte("two\n"), 0o644); err != nil {
		return f, err
	}
	checked, err := b.run(job{program: program{argv: []string{"./check.sh"}, state: b.dir}, dir: dir})
	f.wall, f.cpu = f.wall+checked.wall, f.cpu+checked.cpu
	return f, err
}

func (b *bench) reconcile(wall string) func() (figures, error) {
	p := program{argv: []string{b.hone, "reconcile", "-q", "--trust", "-m", "openai/bench", "--base-url", "%s/v1", "--wire", "chat", "--sandbox", wall}, state: b.dir}
	return func() (figures, error) {
		dir, err := b.project(reconciled())
		if err != nil {
			return figures{}, err
		}
		defer os.RemoveAll(dir)
		return b.run(job{program: p, dir: dir, session: &session{replies: []reply{{text: `{"create-or-update": {"src/a": "two\n"}}`}}}})
	}
}

// command measures one more turn that runs a command, and reading one that reads a file.
func (b *bench) command(p program, think time.Duration) func() (figures, error) {
	return b.turn(p, think, "bash", "command", "head note%d.txt")
}

func (b *bench) reading(p program) func() (figures, error) {
	return b.turn(p, 0, "read", "path", "note%d.txt")
}

// turn measures one more turn: the difference between a long job and a short one, divided by the number of turns between
// them. What the model thinks does not count. Each turn has another call, because hone does not repeat one that changes
// nothing.
func (b *bench) turn(p program, think time.Duration, tool, argument, value string) func() (figures, error) {
	played := func(n int) (figures, error) {
		return b.play(job{program: p, session: &session{replies: longer(n, tool, argument, value), think: think}}, notes(1+b.turns))
	}
	return func() (figures, error) {
		short, err := played(1)
		if err != nil {
			return short, err
		}
		long, err := played(1 + b.turns)
		f := long.per(b.turns, short)
		f.wall -= think
		return f, err
	}
}

// atOnce measures how long n jobs take that start together, and what they use together.
func (b *bench) atOnce(n int, p program) func() (figures, error) {
	return func() (figures, error) {
		var all figures
		dirs, err := b.projects(n)
		if err != nil {
			return all, err
		}
		results, errs := make([]figures, n), make([]error, n)
		var jobs sync.WaitGroup
		start := time.Now()
		for i, dir := range dirs {
			jobs.Go(func() {
				results[i], errs[i] = b.run(job{program: p, dir: dir, session: &session{replies: fixing()}})
			})
		}
		jobs.Wait()
		all.wall = time.Since(start)
		for i, dir := range dirs {
			all.cpu += results[i].cpu
			errs[i] = errors.Join(errs[i], checkEdit(dir), os.RemoveAll(dir))
		}
		return all, errors.Join(errs...)
	}
}

func (b *bench) projects(n int) ([]string, error) {
	dirs := make([]string, n)
	for i := range dirs {
		var err error
		if dirs[i], err = b.project(small()); err != nil {
			return nil, err
		}
	}
	return dirs, nil
}

func (b *bench) status(project func() (string, error)) func() (figures, error) {
	return func() (figures, error) {
		dir, err := project()
		if err != nil {
			return figures{}, err
		}
		return b.run(job{program: program{argv: []string{"git", "status", "--porcelain"}, state: b.dir}, dir: dir})
	}
}

// nextRun measures the job in a project that earlier runs have used.
func (b *bench) nextRun(p program, project func() (string, error)) func() (figures, error) {
	return func() (figures, error) {
		dir, err := project()
		if err != nil {
			return figures{}, err
		}
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o644); err != nil {
			return figures{}, err
		}
		f, err := b.run(job{program: p, dir: dir, session: &session{replies: fixing()}})
		return f, errors.Join(err, checkEdit(dir))
	}
}

// firstRun measures the same after it has removed what earlier runs left.
func (b *bench) firstRun(p program, project func() (string, error)) func() (figures, error) {
	return func() (figures, error) {
		dir, err := project()
		if err != nil {
			return figures{}, err
		}
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, ".hone")), os.RemoveAll(p.state)); err != nil {
			return figures{}, err
		}
		return b.nextRun(p, project)()
	}
}

// appendSynced is the floor of a journal's event.
func (b *bench) appendSynced() (figures, error) {
	const times = 50
	file, err := os.CreateTemp(b.dir, "events")
	if err != nil {
		return figures{}, err
	}
	defer file.Close()
	line := []byte(strings.Repeat("x", 499) + "\n")
	start := time.Now()
	for range times {
		if _, err := file.Write(line); err != nil {
			return figures{}, err
		}
		if err := file.Sync(); err != nil {
			return figures{}, err
		}
	}
	return figures{wall: time.Since(start) / times}, nil
}

// nanoseconds matches what a Go benchmark prints as its result.
var nanoseconds = regexp.MustCompile(`(\S+) ns/op`)

// event runs a part of BenchmarkAppend of package journal.
func (b *bench) event(name string) func() (figures, error) {
	return func() (figures, error) {
		c := exec.Command(filepath.Join(b.dir, "journal.test"), "-test.run=^$", "-test.bench=^BenchmarkAppend$/^"+name+"$", "-test.benchtime=200x")
		c.Dir = b.dir
		out, err := c.CombinedOutput()
		m := nanoseconds.FindSubmatch(out)
		if err != nil || m == nil {
			return figures{}, fmt.Errorf("BenchmarkAppend: %v: %s", err, firstLine(out))
		}
		ns, err := strconv.ParseFloat(string(m[1]), 64)
		return figures{wall: time.Duration(ns)}, err
	}
}
