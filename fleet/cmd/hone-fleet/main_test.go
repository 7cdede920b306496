package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"

	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/job"
)

// TestUsage holds that wrong command lines end with status 2 and say what to type, before
// any server is asked.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for file, text := range map[string]string{
		"jobs.toml":  "[[job]]\nrepo = \"/srv/a\"\nloop = \"fix\"\nargs = [\"--check\", \"true\"]\n",
		"wrong.toml": "[[job]]\nrepo = \"/srv/a\"\nloop = \"fxi\"\n",
		"repos.txt":  "/srv/a\n/srv/b\n",
		"short.key":  "short",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"lst":                                  "Did you mean this?\n\tlist",
		"submit":                               "one file with jobs",
		"submit jobs.toml":                     "add --max-cost 50",
		"submit jobs.toml --max-cost=1 --id=.": "single dots between them",
		"submit jobs.toml --max-cost=1 --id=a..b":                     "single dots between them", // no branch can have it
		"submit jobs.toml --max-cost=1 --id=a.lock":                   "single dots between them",
		"submit jobs.toml --max-cost=1 --max-tokens=-1":               "cannot be negative",
		"submit wrong.toml --max-cost=1":                              "did you mean fix?",
		"submit --repos repos.txt":                                    "--repos needs a loop after --",
		"submit --repos repos.txt --max-cost=1 -- fix --sandbox none": "a job cannot have --sandbox",
		"list --limit=-1":                                             "--limit must be greater than 0",
		"show":                                                        "show takes the ID of a batch",
		"worker":                                                      "needs a store",
		"worker --store=s":                                            "(umask 077 && head",
		"worker --store=s --key=none":                                 "to make one",
		"worker --store=s --key=short.key":                            "fewer than 32 bytes",
		"results":                                                     "results takes the ID of a batch",
		"worker --store=s --parallel=0":                               "--parallel must be greater than 0",
	} {
		var out, said bytes.Buffer
		a := &app{out: &out, err: &said}
		if status := a.run(t.Context(), strings.Fields(line)); status != 2 || !strings.Contains(said.String(), want) {
			t.Errorf("hone-fleet %s: status %d, %q, want %q", line, status, said.String(), want)
		}
	}
}

// TestNoServer holds that a server that is not there is an error of the environment.
func TestNoServer(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	var said bytes.Buffer
	a := &app{out: &said, err: &said}
	if status := a.run(t.Context(), []string{"list"}); status != 5 || !strings.Contains(said.String(), "hint: start one with hone-fleet dev") {
		t.Error(status, said.String())
	}
}

// TestNoWorker holds that a batch that no worker can answer for says to start one.
func TestNoWorker(t *testing.T) {
	for _, err := range []error{
		serviceerror.NewFailedPrecondition("no poller seen for task queue recently, worker may be down"),
		serviceerror.NewDeadlineExceeded("late"),
		context.DeadlineExceeded,
	} {
		f, ok := failure.Explain(serverFailure(err, "7"), "")
		if !ok || !strings.Contains(f.Hint, "hone-fleet worker") {
			t.Errorf("%v: %+v", err, f)
		}
	}
}

func TestAnswers(t *testing.T) {
	questions := []job.Question{{Digest: "abcdef0123"}, {Digest: "abcdef9876"}}
	got, err := answersOf(questions, []string{"abcdef0=yes", "abcdef9876=no"}, "")
	want := []job.Answer{{Question: "abcdef0123", Approved: true}, {Question: "abcdef9876"}}
	if err != nil || !slices.Equal(got, want) {
		t.Error(got, err)
	}
	for _, word := range []string{"abcdef=yes", "abc=yes", "abcdef0", "abcdef0=maybe", "0123456=yes"} {
		_, err := answersOf(questions, []string{word}, "hone-fleet show 7")
		if f, ok := failure.Explain(err, ""); !ok || f.Hint != "hone-fleet show 7" {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// TestWhyOf: a job that continues after an answer no longer says that a question is open.
func TestWhyOf(t *testing.T) {
	j := flow.JobStatus{Progress: flow.Progress{State: flow.NeedsYou, Outcome: job.Outcome{Why: "1 question is open"}}}
	if got := whyOf(j); got != "1 question is open" {
		t.Errorf("a job that waits: %q", got)
	}
	if j.State = flow.Running; whyOf(j) != "" {
		t.Errorf("a job that runs: %q", whyOf(j))
	}
	if j.Why = "being cancelled"; whyOf(j) != j.Why {
		t.Errorf("a job that is being cancelled: %q", whyOf(j))
	}
}

// TestPlainNames: what became a path would lead elsewhere.
func TestPlainNames(t *testing.T) {
	named := func(id, name string) flow.Status {
		return flow.Status{ID: id, Jobs: []flow.JobStatus{{Name: "a"}, {Name: name}}}
	}
	if err := plainNames(named("b", "c.d-1")); err != nil {
		t.Error(err)
	}
	for _, s := range []flow.Status{named("b", "../c"), named("b", ""), named("b", "\x1b[2J"), named("../b", "c")} {
		if plainNames(s) == nil {
			t.Errorf("%q %q was accepted", s.ID, s.Jobs[1].Name)
		}
	}
}

func TestUnfinished(t *testing.T) {
	for state, want := range map[flow.State]int{flow.Done: 0, flow.NeedsYou: 4, flow.NoBudget: 3, flow.Failed: 1, flow.Cancelled: 1} {
		s := flow.Status{Jobs: make([]flow.JobStatus, 2), Counts: map[flow.State]int{flow.Done: 1}}
		s.Counts[state]++
		got := 0
		if err := unfinished(s); err != nil {
			f, _ := failure.Explain(err, "")
			got = failure.ExitStatus(f.Kind)
		}
		if got != want {
			t.Errorf("%s: status %d, want %d", state, got, want)
		}
	}
}

// TestExample holds that the example of jobs in docs/fleet.md can be submitted.
func TestExample(t *testing.T) {
	page, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```text\n(\\[\\[job\\]\\].*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("docs/fleet.md has no example")
	}
	if jobs, err := job.Read("jobs.toml", example[1]); err != nil || len(jobs) != 2 {
		t.Error(jobs, err)
	}
}

// TestDocsCommands holds that the commands and flags that the page mentions exist.
func TestDocsCommands(t *testing.T) {
	page, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	root := (&app{}).command()
	for _, m := range regexp.MustCompile(`hone-fleet ([a-z]+)([^\n|;)]*)`).FindAllStringSubmatch(string(page), -1) {
		c, _, err := root.Find([]string{m[1]})
		if err != nil || c == root {
			t.Errorf("there is no command %s", m[0])
			continue
		}
		own, _, _ := strings.Cut(m[2], " -- ")
		own, _, _ = strings.Cut(own, "'")
		for _, flag := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(own, -1) {
			if c.Flags().Lookup(flag[1]) == nil {
				t.Errorf("hone-fleet %s has no flag --%s", m[1], flag[1])
			}
		}
	}
}
