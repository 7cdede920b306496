package main

import (
	"fmt"
	"path/filepath"
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
	cold          bool  // do not warm up
	once          []int // jobs at once
	files         []int
	agents        bool // also measure other agents, if they are installed
}

func (b *bench) groups() []group {
	all := []group{b.starting(), b.fixing(), b.reconciling(), b.commands(), b.thinking(), b.reads(), b.events()}
	for i, n := range b.once {
		all = append(all, b.parallel(n, i == 0))
	}
	for i, n := range b.files {
		all = append(all, b.tree(n, i == len(b.files)-1))
	}
	return append(all, b.memory())
}

func (b *bench) starting() group {
	return group{"start", []*row{
		{name: "empty Go program with net/http", measure: b.start(b.bare)},
		{name: "`hone version`", measure: b.start(b.hone, "version"), goal: goal{times: 1.5}},
	}}
}

func (b *bench) fixing() group {
	g := group{"the job: read, edit, check, finish", []*row{
		{name: "bare client", measure: b.small(b.client())},
		{name: "hone, no walls", measure: b.small(b.fix("none")), goal: goal{times: 7, first: 9, cpu: 60, sent: 40}},
		{name: "hone, walls", measure: b.small(b.fix("auto")), goal: goal{times: 9, first: 14, cpu: 60, sent: 40}, optional: true},
		{name: "hone, walls not proved before", measure: b.unproved, optional: true},
	}}
	if b.agents {
		g.rows = append(g.rows,
			&row{name: "codex, no sandbox", measure: b.agent(b.codex(), "exec_command", "cmd"), optional: true},
			&row{name: "gemini-cli, no sandbox", measure: b.agent(b.gemini(), "run_shell_command", "command"), optional: true})
	}
	return g
}

func (b *bench) reconciling() group {
	return group{"one round of `hone reconcile`", []*row{
		{name: "bare client and the checker", measure: b.reconcileFloor},
		{name: "hone, no walls", measure: b.reconcile("none"), goal: goal{plus: 20}, optional: true},
		{name: "hone, walls", measure: b.reconcile("auto"), optional: true},
	}}
}

// commands has a row for each kind of walls. The goal of hidden is in ms more than no walls.
func (b *bench) commands() group {
	return group{"one more turn with a command", []*row{
		{name: "bare client", measure: b.command(b.client(), 0)},
		{name: "hone, no walls", measure: b.command(b.fix("none"), 0)},
		{name: "hone, walls: hidden", measure: b.command(b.fix("hidden"), 0), goal: goal{plus: 15}, base: 1, optional: true},
		{name: "hone, walls: landlock", measure: b.command(b.fix("landlock"), 0), optional: true},
		{name: "hone, walls: bwrap", measure: b.command(b.fix("bwrap"), 0), optional: true},
		{name: "hone, walls: firejail", measure: b.command(b.fix("firejail"), 0), optional: true},
	}}
}

func (b *bench) thinking() group {
	const think = 50 * time.Millisecond
	return group{"the same, after the model thought for 50 ms", []*row{
		{name: "bare client", measure: b.command(b.client(), think)},
		{name: "hone, no walls", measure: b.command(b.fix("none"), think)},
		{name: "hone, walls: hidden", measure: b.command(b.fix("hidden"), think), goal: goal{plus: 6}, base: 1, optional: true},
	}}
}

func (b *bench) reads() group {
	return group{"one more turn that reads a file", []*row{
		{name: "bare client", measure: b.reading(b.client())},
		{name: "hone, no walls", measure: b.reading(b.fix("none"))},
	}}
}

func (b *bench) events() group {
	return group{"one event of 500 bytes", []*row{
		{name: "append and fsync", measure: b.appendSynced},
		{name: "journal, not synced", measure: b.event("without_fsync")},
		{name: "journal, synced", measure: b.event("with_fsync")},
	}}
}

func (b *bench) parallel(n int, goals bool) group {
	g := group{fmt.Sprintf("%d jobs at once", n), []*row{
		{name: "bare client", measure: b.atOnce(n, b.client())},
		{name: "hone, no walls", measure: b.atOnce(n, b.fix("none"))},
		{name: "hone, walls", measure: b.atOnce(n, b.fix("auto")), optional: true},
	}}
	if goals {
		g.rows[1].goal.times, g.rows[2].goal.times = 9, 15
	}
	return g
}

// tree has the rows of the job in a project with n files.
func (b *bench) tree(n int, goals bool) group {
	project := sync.OnceValues(func() (string, error) { return b.project(large(n)) })
	plain := b.fix("none")
	plain.state = filepath.Join(b.dir, fmt.Sprint("state", n))
	g := group{fmt.Sprintf("the job, in a project with %d files", n), []*row{
		{name: "`git status`", measure: b.status(project), optional: true},
		{name: "hone, no walls, first run", measure: b.firstRun(plain, project)},
		{name: "hone, no walls, next run", measure: b.nextRun(plain, project)},
		{name: "hone, walls, next run", measure: b.nextRun(b.fix("auto"), project), optional: true},
	}}
	if goals {
		g.rows[1].goal.times, g.rows[2].goal.times = 18, 8
	}
	return g
}

func (b *bench) memory() group {
	return group{"the job, with a check that sleeps", []*row{
		{name: "bare client", measure: b.sampled(b.client())},
		{name: "hone, no walls", measure: b.sampled(b.fix("none"))},
		{name: "hone, walls", measure: b.sampled(b.fix("auto")), goal: goal{pss: 40}, optional: true},
	}}
}
