package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/fleet/store"
)

// scene is a repository, a user's clone of it, and a store with one result.
type scene struct {
	delivery
	repo, clone string
	list        []result
	out, err    bytes.Buffer
}

func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := gitOutput(t.Context(), dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// commit commits a file.
func commit(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "add", "--all")
	must(t, dir, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "--message="+name)
}

func newScene(t *testing.T, f resultsFlags) *scene {
	t.Helper()
	dir := t.TempDir()
	s := &scene{repo: filepath.Join(dir, "project.git"), clone: filepath.Join(dir, "clone")}
	made := filepath.Join(dir, "made")
	must(t, dir, "init", "--quiet", "--bare", "--initial-branch=main", s.repo)
	must(t, dir, "clone", "--quiet", s.repo, made)
	must(t, made, "checkout", "--quiet", "-b", "main")
	commit(t, made, "a.txt", "a\n")
	must(t, made, "push", "--quiet", "origin", "main")
	must(t, dir, "clone", "--quiet", s.repo, s.clone)
	commit(t, made, "b.txt", "b\n")
	must(t, made, "update-ref", "refs/heads/hone/B/project", "HEAD")
	bundle := filepath.Join(dir, "bundle")
	must(t, made, "bundle", "create", "-q", bundle, "refs/heads/hone/B/project", "^HEAD~1")
	content, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	from, err := store.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	object := "B/project/results/" + must(t, made, "rev-parse", "HEAD") + ".bundle"
	if err := from.Create(t.Context(), object, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	s.delivery = delivery{app: &app{out: &s.out, err: &s.err}, flags: f, batch: "B", from: from}
	s.list, err = chosen(flow.Status{ID: "B", Jobs: []flow.JobStatus{
		{Name: "project", Repo: "file://" + s.repo, Progress: flow.Progress{State: flow.Done, Outcome: job.Outcome{Result: object, Run: "R", Why: "w"}}},
		{Name: "failed", Repo: s.repo, Progress: flow.Progress{State: flow.Failed, Outcome: job.Outcome{Result: "B/failed/result"}}},
		{Name: "same", Repo: s.repo, Progress: flow.Progress{State: flow.Done}},
	}}, false, nil)
	if err != nil || len(s.list) != 1 {
		t.Fatal(s.list, err)
	}
	return s
}

func (s *scene) deliver(t *testing.T) {
	t.Helper()
	if err := s.delivery.deliver(t.Context(), s.list); err != nil {
		t.Fatal(err, s.err.String())
	}
}

func TestBranch(t *testing.T) {
	s := newScene(t, resultsFlags{branch: true})
	s.flags.dir = s.clone
	s.deliver(t)
	s.deliver(t) // again changes nothing
	if got := must(t, s.clone, "show", "hone/B/project:b.txt"); got != "b" {
		t.Errorf("b.txt is %q", got)
	}
	if got := must(t, s.clone, "rev-parse", "--abbrev-ref", "HEAD"); got != "main" {
		t.Errorf("the clone is on %s", got)
	}
	commit(t, s.clone, "c.txt", "c\n")
	must(t, s.clone, "update-ref", "refs/heads/hone/B/project", "HEAD")
	if err := s.delivery.deliver(t.Context(), s.list); err == nil || must(t, s.clone, "rev-parse", "hone/B/project") != must(t, s.clone, "rev-parse", "HEAD") {
		t.Error("a branch with other work was overwritten:", err)
	}
}

func TestBranchElsewhere(t *testing.T) {
	s := newScene(t, resultsFlags{branch: true})
	s.flags.dir = t.TempDir()
	if err := s.delivery.deliver(t.Context(), s.list); err == nil || !strings.Contains(err.Error(), "is not a clone") {
		t.Error(err)
	}
	must(t, s.flags.dir, "init", "--quiet")
	if err := s.delivery.deliver(t.Context(), s.list); err == nil || !strings.Contains(err.Error(), "none of 1 result belongs to the repository") {
		t.Error(err)
	}
}

func TestPushAndCommand(t *testing.T) {
	s := newScene(t, resultsFlags{push: true, each: `cat b.txt; echo "$HONE_BATCH $HONE_JOB $HONE_REPO $HONE_BRANCH $HONE_RUN $HONE_WHY"`})
	s.deliver(t)
	if got := must(t, s.repo, "show", "hone/B/project:b.txt"); got != "b" {
		t.Errorf("b.txt is %q", got)
	}
	if want := "b\nB project file://" + s.repo + " hone/B/project R w\n"; !strings.Contains(s.out.String(), want) {
		t.Errorf("the command printed %q, want %q", s.out.String(), want)
	}
	s.flags.each = "exit 3"
	if err := s.delivery.deliver(t.Context(), s.list); err == nil || !strings.Contains(s.err.String(), "exit status 3") {
		t.Error(err, s.err.String())
	}
}

func TestPatchAndBundle(t *testing.T) {
	dir := t.TempDir()
	s := newScene(t, resultsFlags{patch: filepath.Join(dir, "patches"), bundle: filepath.Join(dir, "bundles")})
	s.deliver(t)
	must(t, s.clone, "-c", "user.name=t", "-c", "user.email=t@localhost", "am", "--quiet", filepath.Join(dir, "patches", "project", "0001-b.txt.patch"))
	if got := must(t, s.clone, "show", "HEAD:b.txt"); got != "b" {
		t.Errorf("b.txt is %q", got)
	}
	if got := must(t, s.clone, "bundle", "list-heads", filepath.Join(dir, "bundles", "project.bundle")); !strings.HasSuffix(got, " refs/heads/hone/B/project") {
		t.Errorf("the bundle has %q", got)
	}
}

// TestOtherResult: whoever can write to the store cannot make others push something.
func TestOtherResult(t *testing.T) {
	s := newScene(t, resultsFlags{push: true, bundle: t.TempDir()})
	in, err := s.from.Get(t.Context(), s.list[0].Object)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	content, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	s.list[0].Object = "B/project/results/" + strings.Repeat("0", 40) + ".bundle"
	if err := s.from.Create(t.Context(), s.list[0].Object, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if err := s.delivery.deliver(t.Context(), s.list); err == nil || !strings.Contains(s.err.String(), "is not what the worker stored") {
		t.Error(err, s.err.String())
	}
	if _, err := gitOutput(t.Context(), s.repo, "rev-parse", "--verify", "--quiet", "hone/B/project"); err == nil {
		t.Error("it was pushed")
	}
	if kept, _ := os.ReadDir(s.flags.bundle); len(kept) > 0 {
		t.Error("it was kept")
	}
}

func TestLostResult(t *testing.T) {
	s := newScene(t, resultsFlags{bundle: t.TempDir()})
	s.list[0].Object += ".lost"
	if err := s.delivery.deliver(t.Context(), s.list); err == nil || !strings.Contains(s.err.String(), "project: ") {
		t.Error(err, s.err.String())
	}
}
