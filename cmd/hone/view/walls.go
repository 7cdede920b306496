package view

import (
	"fmt"
	"reflect"
	"time"

	"hone/cmd/hone/page"
	"hone/history"
	"hone/sandbox"
)

// Walls returns the walls of the processes that worked on a run, the last first. Successive
// processes with equal walls have one entry.
func Walls(events []history.Event) (all []page.Wall) {
	var last *history.Walls
	for e, w := range history.Of[history.Walls](events) {
		if last != nil && reflect.DeepEqual(w, *last) {
			continue
		}
		last = &w
		all = append([]page.Wall{wallOf(e.Time, w)}, all...)
	}
	return all
}

// wallOf returns the walls of a process.
func wallOf(at time.Time, w history.Walls) page.Wall {
	const layout = "2006-01-02 15:04 MST"
	one := page.Wall{Name: w.Text, Open: w.Open}
	add := func(name, text string) {
		if text != "" {
			one.Facts = append(one.Facts, page.Fact{Name: name, Text: text})
		}
	}
	add("wall", w.Wall)
	add("grade", w.Level+gradeText(sandbox.Level(w.Level)))
	add("network", w.Net+netText(w.Net))
	if w.Landlock > 0 {
		add("landlock", fmt.Sprintf("ABI %d", w.Landlock))
	}
	if w.Seccomp {
		add("system calls", "filtered with seccomp")
	}
	switch {
	case !w.Proved.IsZero():
		add("proved", w.Proved.Local().Format(layout))
	case w.Wall != string(sandbox.NoWall):
		add("proved", "not on this machine; to prove it: hone doctor --full")
	}
	add("no stronger wall", w.Why)
	add("since", at.Local().Format(layout))
	return one
}

// gradeText says what a grade means.
func gradeText(l sandbox.Level) string {
	switch l {
	case sandbox.LevelHidden:
		return ": a command does not see what it may not use"
	case sandbox.LevelGuarded:
		return ": a command cannot open what it may not use, but may see that it exists"
	case sandbox.LevelOpen:
		return ": a command can do what you can do"
	}
	return ""
}

// netText says what a state of the network means.
func netText(net string) string {
	switch net {
	case "off":
		return ": commands have no network"
	case "doors":
		return ": commands reach only the addresses that their role needs"
	case "on":
		return ": commands reach every address"
	}
	return ""
}
