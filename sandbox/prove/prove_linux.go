package prove

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"hone/sandbox"
	"hone/sandbox/wall"
)

// All makes all attempts, which takes a few seconds. The report contains the
// results, including holes. The error means that the walls cannot be built, or
// that no attempt could be made.
func All(ctx context.Context, wall sandbox.Wall) (Report, error) {
	return prove(ctx, wall, attempts())
}

// Short is like [All] but makes only the few attempts that are worth their time
// before a run, in one process.
func Short(ctx context.Context, wall sandbox.Wall) (Report, error) {
	return prove(ctx, wall, slices.DeleteFunc(attempts(), func(a Attempt) bool { return !a.Short }))
}

// prove makes attempts and reports their results in order.
func prove(ctx context.Context, kind sandbox.Wall, all []Attempt) (Report, error) {
	st, err := setUp(all)
	if err != nil {
		return Report{}, err
	}
	defer st.takeDown()
	defer st.killLeft()
	r := Report{Grade: sandbox.Grade{Wall: kind}}
	for _, batch := range batches(all) {
		if err := st.prove(ctx, st.policy(batch), batch, &r); err != nil {
			return Report{}, err
		}
	}
	order := func(one Result) int { return slices.IndexFunc(all, func(a Attempt) bool { return a.Name == one.Name }) }
	slices.SortFunc(r.Results, func(a, b Result) int { return order(a) - order(b) })
	return r, nil
}

// prove makes attempts behind walls with a policy, and adds the results to the
// report, whose grade names the wall.
func (st *stage) prove(ctx context.Context, p sandbox.Policy, batch []Attempt, r *Report) error {
	w, err := wall.Build(ctx, r.Grade.Wall, p)
	if err != nil {
		return err
	}
	defer w.Close()
	why := r.Grade.Why
	r.Grade = w.Grade()
	r.Grade.Why = cmp.Or(why, r.Grade.Why)
	if !batch[0].Alone {
		return st.run(ctx, w, batch, r)
	}
	for _, a := range batch {
		if err := st.run(ctx, w, []Attempt{a}, r); err != nil {
			return err
		}
		st.killLeft()
	}
	return nil
}

// batches returns the attempts, grouped by the walls that they share. Those with a
// process of their own are in the last batch. Firejail's command line limits how
// many attempts with protected or hidden paths a batch may contain.
func batches(all []Attempt) [][]Attempt {
	const most = 10
	var found [][]Attempt
	var batch, alone []Attempt
	sets := 0
	for _, a := range all {
		if a.Alone {
			alone = append(alone, a)
			continue
		}
		if a.Set == setGit || a.Set == setMissing || a.Set == setSecret {
			sets++
		}
		if sets > most {
			found, batch, sets = append(found, batch), nil, 1
		}
		batch = append(batch, a)
	}
	for _, last := range [][]Attempt{batch, alone} {
		if len(last) > 0 {
			found = append(found, last)
		}
	}
	return found
}

// run makes attempts in one process, and in further ones if the walls end it. It
// adds the results to the report.
func (st *stage) run(ctx context.Context, w *wall.Walls, all []Attempt, r *Report) error {
	st.Wall, st.Landlock = r.Grade.Wall, r.Grade.Landlock
	st.Addr["door"] = w.DoorAddr(0)
	env := environment(all)
	st.Env = names(env)
	scene, err := st.write()
	if err != nil {
		return err
	}
	var raw []Result
	again := false
	for left := all; len(left) > 0; {
		argv := []string{st.Program, "try", scene}
		for _, a := range left {
			argv = append(argv, a.Name)
		}
		how, err := w.Run(ctx, sandbox.Command{Argv: argv, Dir: st.Dir + "/work", Env: env, Timeout: timeout})
		if err != nil {
			return err
		}
		got, err := readNotes(how, left[0].Alone)
		if err != nil {
			return err
		}
		if len(got) == 0 && how.Signal != "" && !how.TimedOut && !again {
			again = true // something else may have killed it: it had not begun an attempt
			continue
		}
		if len(got) == 0 || len(got) > len(left) {
			return fmt.Errorf("no attempt could be made behind the %s wall: exit %d, signal %q: %s", st.Wall, how.Exit, how.Signal, bytes.TrimSpace(how.Stderr))
		}
		raw, left = append(raw, got...), left[len(got):]
	}
	return st.judge(all, raw, r)
}

// timeout is how long the attempts of one process may take on a very busy
// machine.
const timeout = 2 * time.Minute

// environment returns the environment of attempts. One attempt has the variables
// of other programs' walls, which must change nothing.
func environment(all []Attempt) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C"}
	if len(all) == 1 && all[0].Name == "claims" {
		env = append(env, claims()...)
	}
	return env
}

// claims returns variables that claim that a process already runs behind walls.
// They prove nothing and must change nothing.
func claims() []string {
	return []string{"HONE_SANDBOX=1", "HONE_WALL=none", "container=bwrap", "CODEX_SANDBOX=seatbelt", "IN_NIX_SHELL=pure", "FLATPAK_ID=x", "SNAP=/snap/x", "GEMINI_SANDBOX=1", "SANDBOX_RUNTIME=1"}
}

// names returns the names of the variables of an environment, and of the one that
// commands always have.
func names(env []string) []string {
	list := []string{"HONE_COMMAND_ID"}
	for _, pair := range env {
		name, _, _ := bytes.Cut([]byte(pair), []byte("="))
		list = append(list, string(name))
	}
	return list
}

// readNotes returns the results that a process reported. If it ended during an
// attempt, the way it ended decides the result of that attempt.
func readNotes(how sandbox.Result, alone bool) ([]Result, error) {
	var results []Result
	started := ""
	notes := json.NewDecoder(bytes.NewReader(how.Stdout))
	for notes.More() {
		var n note
		if err := notes.Decode(&n); err != nil {
			return nil, fmt.Errorf("read the results of the attempts: %w", err)
		}
		if started = n.Begin; n.End != "" {
			results = append(results, Result{Name: n.End, Got: n.Got, Text: n.Text})
		}
	}
	if started == "" {
		return results, nil
	}
	died := Result{Name: started, Got: wordUnknown, Text: fmt.Sprintf("the process ended: exit %d %s", how.Exit, how.Signal)}
	switch {
	case how.TimedOut:
		died.Text = "it did not end"
	case how.OverLimit != "":
		died.Got, died.Text = wordHeld, "stopped by the limit of "+how.OverLimit
	case alone:
		died.Got = wordHeld
	}
	return append(results, died), nil
}

// judge inspects the scene and adds the final results to the report.
func (st *stage) judge(all []Attempt, raw []Result, r *Report) error {
	rows, err := table()
	if err != nil {
		return err
	}
	for i, a := range all {
		one := raw[i]
		if one.Name != a.Name {
			return fmt.Errorf("attempt %s was made in place of %s", one.Name, a.Name)
		}
		switch trace := st.trace(a); {
		case trace != "":
			one.Got, one.Text = wordOpen, trace
		case a.Outside && one.Got == wordOpen:
			one.Got, one.Text = wordHeld, "it is unchanged"
		}
		at := slices.IndexFunc(rows, func(line row) bool { return line.name == a.Name })
		if at < 0 {
			return fmt.Errorf("the table of attempts has no %s", a.Name)
		}
		expected, err := rows[at].expected(st.Wall, os.Getuid() == 0)
		if err != nil {
			return err
		}
		one.About, one.Expected = rows[at].about, expected.under(st.Landlock)
		r.Results = append(r.Results, one)
	}
	return nil
}
