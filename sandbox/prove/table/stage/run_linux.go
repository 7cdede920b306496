package stage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"hone/sandbox"
	"hone/sandbox/wall"
)

// Made is how an attempt ended.
type Made struct {
	Name string
	Got  string // the name of the error number that stopped it, or a word
	Text string // the error, or the change found outside; may be empty
}

// Run makes attempts behind a wall and returns how they ended, in their order. The error
// means that the walls cannot be built, or that no attempt could be made. tree is the
// policy's.
func Run(ctx context.Context, kind sandbox.Wall, tree string, all []Attempt) (sandbox.Grade, []Made, error) {
	st, err := setUp(all)
	if err != nil {
		return sandbox.Grade{}, nil, err
	}
	defer st.takeDown()
	defer st.killLeft()
	grade := sandbox.Grade{Wall: kind}
	alone := func(a Attempt) bool { return a.Alone }
	var made []Made
	for _, batch := range [][]Attempt{
		slices.DeleteFunc(slices.Clone(all), alone),
		slices.DeleteFunc(slices.Clone(all), func(a Attempt) bool { return !alone(a) }),
	} {
		if len(batch) == 0 {
			continue
		}
		g, some, err := st.behind(ctx, grade.Wall, tree, batch)
		if err != nil {
			return sandbox.Grade{}, nil, err
		}
		g.Why = cmp.Or(grade.Why, g.Why)
		grade, made = g, append(made, some...)
	}
	order := func(m Made) int { return slices.IndexFunc(all, func(a Attempt) bool { return a.Name == m.Name }) }
	slices.SortFunc(made, func(a, b Made) int { return order(a) - order(b) })
	return grade, made, nil
}

// behind makes attempts behind walls that they share: those with a process of their own,
// or the others.
func (st *Stage) behind(ctx context.Context, kind sandbox.Wall, tree string, batch []Attempt) (sandbox.Grade, []Made, error) {
	p := st.policy(batch)
	p.Wall, p.Tree = kind, tree
	w, err := wall.Build(ctx, p)
	if err != nil {
		return sandbox.Grade{}, nil, err
	}
	defer w.Close()
	if !batch[0].Alone {
		made, err := st.run(ctx, w, batch)
		return w.Grade(), made, err
	}
	var made []Made
	for _, a := range batch {
		one, err := st.run(ctx, w, []Attempt{a})
		if err != nil {
			return w.Grade(), nil, err
		}
		made = append(made, one...)
		st.killLeft()
	}
	return w.Grade(), made, nil
}

// timeout is how long the attempts of one process may take on a very busy
// machine.
const timeout = 2 * time.Minute

// run makes attempts in one process, and in further ones if the walls end it.
func (st *Stage) run(ctx context.Context, w *wall.Walls, all []Attempt) ([]Made, error) {
	st.Facts[door] = w.DoorAddr(0)
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C"}
	if all[0].Alone {
		env = append(env, all[0].Env...)
	}
	st.Env = []string{"HONE_COMMAND_ID"} // which commands always have
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		st.Env = append(st.Env, name)
	}
	scene := st.Lib("scene.json")
	text, err := json.Marshal(st.Scene)
	if err == nil {
		err = os.WriteFile(scene, text, 0o644)
	}
	if err != nil {
		return nil, err
	}
	var made []Made
	again := false
	for left := all; len(left) > 0; {
		argv := []string{st.Program, "try", scene}
		for _, a := range left {
			argv = append(argv, a.Name)
		}
		how, err := w.Run(ctx, sandbox.Command{Argv: argv, Dir: st.Dir + "/work", Env: env, Timeout: timeout})
		if err != nil {
			return nil, err
		}
		got, err := readNotes(how, left[0].Alone)
		if err != nil {
			return nil, err
		}
		if len(got) == 0 && how.Signal != "" && !how.TimedOut && !again {
			again = true // something else may have killed it: it had not begun an attempt
			continue
		}
		if len(got) == 0 || len(got) > len(left) {
			return nil, fmt.Errorf("no attempt could be made behind the %s wall: exit %d, signal %q: %s", w.Grade().Wall, how.Exit, how.Signal, bytes.TrimSpace(how.Stderr))
		}
		made, left = append(made, got...), left[len(got):]
	}
	return made, st.judge(all, made)
}

// readNotes returns the results that a process reported. If it ended during an
// attempt, the way it ended decides the result of that attempt.
func readNotes(how sandbox.Result, alone bool) ([]Made, error) {
	var made []Made
	started := ""
	notes := json.NewDecoder(bytes.NewReader(how.Stdout))
	for notes.More() {
		var n note
		if err := notes.Decode(&n); err != nil {
			return nil, fmt.Errorf("read the results of the attempts: %w", err)
		}
		if started = n.Begin; n.End != "" {
			made = append(made, Made{n.End, n.Got, n.Text})
		}
	}
	if started == "" {
		return made, nil
	}
	died := Made{started, WordUnknown, fmt.Sprintf("the process ended: exit %d %s", how.Exit, how.Signal)}
	switch {
	case how.TimedOut:
		died.Text = "it did not end"
	case how.OverLimit != "":
		died.Got, died.Text = WordHeld, "stopped by the limit of "+how.OverLimit
	case alone:
		died.Got = WordHeld
	}
	return append(made, died), nil
}

// judge inspects the scene, which decides over what the attempts said of themselves.
func (st *Stage) judge(all []Attempt, made []Made) error {
	for i, a := range all {
		one := &made[i]
		if one.Name != a.Name {
			return fmt.Errorf("attempt %s was made in place of %s", one.Name, a.Name)
		}
		switch trace := st.trace(a); {
		case trace != "":
			one.Got, one.Text = WordOpen, trace
		case a.Outside && one.Got == WordOpen:
			one.Got, one.Text = WordHeld, "it is unchanged"
		}
	}
	return nil
}
