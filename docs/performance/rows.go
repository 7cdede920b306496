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

// group is a part of the table. Its first row is the floor of the others.
type group struct {
	title string
	rows  []*row
}

// row is one line of the table.
type row struct {
	name     string
	measure  func() (figures, error)
	base     int  // the row of the group that its goal is compared with
	optional bool // not every machine can measure it
	goal     goal
	got      []figures
	err      error // why it could not be measured; nil if it was
}

// goal is what a row should not exceed; 0 where there is no goal.
type goal struct {
	times, plus, first float64 // wall as a multiple of the base, in ms more than the base; first request as a multiple
	cpu, sent, pss     float64 // ms, KB, MB
}

// sizes are the sizes of what is measured.
type sizes struct {
	rounds, turns int
	once          []int // jobs at once
	files         []int
}

func (b *bench) groups() []group {
	all := []group{
		{"start", []*row{
			{name: "empty Go program with net/http", measure: b.start(b.bare)},
			{name: "`hone version`", measure: b.start(b.hone, "version"), goal: goal{times: 1.5}},
		}},
		{"the job: read, edit, check, finish", []*row{
			{name: "bare client", measure: b.small(b.client(), check)},
			{name: "hone, no walls", measure: b.small(b.fix("none"), check), goal: goal{times: 4, first: 4, cpu: 60, sent: 40}},
			{name: "hone, walls", optional: true, measure: b.small(b.fix("auto"), check), goal: goal{times: 7, first: 7, cpu: 60, sent: 40}},
			{name: "hone, walls not proved before", optional: true, measure: b.unproved},
		}},
		{"one round of `hone reconcile`", []*row{
			{name: "bare client and the checker", measure: b.reconcileFloor},
			{name: "hone, no walls", measure: b.reconcile("none"), goal: goal{plus: 20}},
			{name: "hone, walls", optional: true, measure: b.reconcile("auto")},
		}},
		{"one more turn with a command", b.commands(0, 15, "none", "hidden", "landlock", "bwrap", "firejail")},
		{"the same, after the model thought for 50 ms", b.commands(50*time.Millisecond, 6, "none", "hidden")},
		{"one more turn that reads a file", []*row{
			{name: "bare client", measure: b.turn(b.client(), 0, "read", object{"path": "a.txt"})},
			{name: "hone, no walls", measure: b.turn(b.fix("none"), 0, "read", object{"path": "a.txt"})},
		}},
		{"one event of 500 bytes", []*row{
			{name: "append and fsync", measure: b.appendSynced},
			{name: "journal, not synced", measure: b.event("without_fsync")},
			{name: "journal, synced", measure: b.event("with_fsync")},
		}},
	}
	for i, n := range b.once {
		goals := []goal{{times: 4}, {times: 7}}
		if i > 0 {
			goals = make([]goal, 2)
		}
		all = append(all, group{fmt.Sprintf("%d jobs at once", n), []*row{
			{name: "bare client", measure: b.atOnce(n, b.client())},
			{name: "hone, no walls", measure: b.atOnce(n, b.fix("none")), goal: goals[0]},
			{name: "hone, walls", optional: true, measure: b.atOnce(n, b.fix("auto")), goal: goals[1]},
		}})
	}
	for i, n := range b.files {
		goals := make([]goal, 2)
		if i == len(b.files)-1 {
			goals = []goal{{times: 3}, {times: 2}}
		}
		all = append(all, b.tree(n, goals))
	}
	sleeping := check + "; sleep 0.3"
	return append(all, group{"the job, with a check that sleeps", []*row{
		{name: "bare client", measure: b.sampled(b.client(), sleeping)},
		{name: "hone, no walls", measure: b.sampled(b.fix("none"), sleeping)},
		{name: "hone, walls", optional: true, measure: b.sampled(b.fix("auto"), sleeping), goal: goal{pss: 40}},
	}})
}

func (b *bench) client() program { return program{[]string{b.bare, "%s"}, b.dir} }

// fix is hone fix behind a wall.
func (b *bench) fix(wall string) program {
	return program{[]string{b.hone, "fix", "-q", "--check", check, "-m", "openai/bench", "--base-url", "%s", "--wire", "chat",
		"--sandbox", wall, "--turns", "100", "--allow", "sleep"}, b.dir}
}

func (b *bench) start(argv ...string) func() (figures, error) {
	return func() (figures, error) { return b.run(job{program: program{argv, b.dir}, dir: b.dir}) }
}

// play runs a job in a new project, and checks what it has made of it.
func (b *bench) play(j job, files map[string]string) (figures, error) {
	var err error
	if j.dir, err = b.project(files); err != nil {
		return figures{}, err
	}
	defer os.RemoveAll(j.dir)
	f, err := b.run(j)
	return f, errors.Join(err, edited(j.dir))
}

// edited returns an error unless the job in this directory has made its edit.
func edited(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	if err == nil && string(text) != "two\n" {
		err = fmt.Errorf("a.txt is %q after the job", text)
	}
	return err
}

func (b *bench) small(p program, command string) func() (figures, error) {
	return func() (figures, error) {
		return b.play(job{program: p, session: &session{replies: fixing(command)}}, small())
	}
}

func (b *bench) sampled(p program, command string) func() (figures, error) {
	return func() (figures, error) {
		f, err := b.play(job{program: p, session: &session{replies: fixing(command)}, sample: true}, small())
		return figures{rss: f.rss, pss: f.pss}, err
	}
}

// unproved is the job of a user who has never run hone.
func (b *bench) unproved() (figures, error) {
	p := b.fix("auto")
	dir, err := os.MkdirTemp(b.dir, "state")
	if err != nil {
		return figures{}, err
	}
	defer os.RemoveAll(dir)
	p.state = dir
	return b.small(p, check)()
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
	checked, err := b.run(job{program: program{[]string{"./check.sh"}, b.dir}, dir: dir})
	f.wall, f.cpu = f.wall+checked.wall, f.cpu+checked.cpu
	return f, err
}

func (b *bench) reconcile(wall string) func() (figures, error) {
	p := program{[]string{b.hone, "reconcile", "-q", "--trust", "-m", "openai/bench", "--base-url", "%s", "--wire", "chat", "--sandbox", wall}, b.dir}
	return func() (figures, error) {
		dir, err := b.project(reconciled())
		if err != nil {
			return figures{}, err
		}
		defer os.RemoveAll(dir)
		return b.run(job{program: p, dir: dir, session: &session{replies: []reply{{text: `{"create-or-update": {"src/a": "two\n"}}`}}}})
	}
}

// commands are the rows of one more turn with a command, behind each wall. The goal is that of hidden, in ms more than none.
func (b *bench) commands(think time.Duration, plus float64, walls ...string) []*row {
	args := object{"command": "echo hello"}
	rows := []*row{{name: "bare client", measure: b.turn(b.client(), think, "bash", args)}}
	for _, wall := range walls {
		r := &row{name: "hone, " + wall, measure: b.turn(b.fix(wall), think, "bash", args), base: 1, optional: wall != "none"}
		if wall == "hidden" {
			r.goal.plus = plus
		}
		rows = append(rows, r)
	}
	return rows
}

// turn measures one more turn: the difference between a long job and a short one, divided by the number of turns between
// them. What the model thinks does not count.
func (b *bench) turn(p program, think time.Duration, tool string, args object) func() (figures, error) {
	played := func(n int) (figures, error) {
		return b.play(job{program: p, session: &session{replies: longer(n, tool, args), think: think}}, small())
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
				results[i], errs[i] = b.run(job{program: p, dir: dir, session: &session{replies: fixing(check)}})
			})
		}
		jobs.Wait()
		all.wall = time.Since(start)
		for i, dir := range dirs {
			all.cpu += results[i].cpu
			errs[i] = errors.Join(errs[i], edited(dir), os.RemoveAll(dir))
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

// tree returns the rows of the job in a project with n files.
func (b *bench) tree(n int, goals []goal) group {
	project := sync.OnceValues(func() (string, error) { return b.project(large(n)) })
	status := func() (figures, error) {
		dir, err := project()
		if err != nil {
			return figures{}, err
		}
		return b.run(job{program: program{[]string{"git", "status", "--porcelain"}, b.dir}, dir: dir})
	}
	hone := func(p program, first bool) func() (figures, error) {
		return func() (figures, error) {
			dir, err := project()
			if err != nil {
				return figures{}, err
			}
			if first {
				err = errors.Join(os.RemoveAll(filepath.Join(dir, ".hone")), os.RemoveAll(p.state))
			}
			if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o644)); err != nil {
				return figures{}, err
			}
			f, err := b.run(job{program: p, dir: dir, session: &session{replies: fixing(check)}})
			return f, errors.Join(err, edited(dir))
		}
	}
	plain := b.fix("none")
	plain.state = filepath.Join(b.dir, fmt.Sprint("state", n))
	return group{fmt.Sprintf("the job, in a project with %d files", n), []*row{
		{name: "`git status`", measure: status, optional: true},
		{name: "hone, no walls, first run", measure: hone(plain, true), goal: goals[0]},
		{name: "hone, no walls, next run", measure: hone(plain, false), goal: goals[1]},
		{name: "hone, walls, next run", optional: true, measure: hone(b.fix("auto"), false)},
	}}
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
