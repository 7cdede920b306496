package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/workspace"
	"hone/workspace/secret"
)

// session is the state that an engine keeps for a conversation, with a real
// tree.
type session struct {
	t       testing.TB
	tree    *workspace.Tree
	rules   workspace.Rules
	seen    map[string]string
	told    string // of a message, with the results of all calls
	outputs []string
	changes []workspace.Change
	// original is Input.Original.
	original func(string) ([]byte, bool)
}

func newSession(t testing.TB, files map[string]string) *session {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	guard := secret.NewGuard(nil)
	return &session{t: t, tree: tree, rules: workspace.Rules{Guard: guard, Immutable: []string{"fixed.txt"}}, seen: map[string]string{}}
}

// apply reviews and applies a change. It declines what needs approval.
func (s *session) apply(ctx context.Context, ch workspace.Change, seen func(string) (string, bool)) ([]workspace.Verdict, error) {
	rules := s.rules
	rules.Seen = seen
	verdicts, err := s.tree.Review(ch, rules)
	if err != nil {
		return nil, err
	}
	var allowed []workspace.Delta
	contents := map[string][]byte{}
	for i, v := range verdicts {
		switch v.Ruling {
		case workspace.Ask:
			verdicts[i].Ruling = workspace.Declined
			verdicts[i].Reason += ", and no user was available"
		case workspace.Allow:
			allowed, contents[v.After.Digest] = append(allowed, v.Delta()), ch.Edits[i].Content
		}
	}
	s.changes = append(s.changes, ch)
	_, err = s.tree.Apply(ctx, allowed, func(digest string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(contents[digest])), nil
	})
	return verdicts, err
}

func (s *session) tool(name string) Tool {
	switch name {
	case "read":
		return Read(s.tree, s.rules.Guard)
	case "glob":
		return Glob(s.tree, s.rules.Guard)
	case "grep":
		return Grep(s.tree, s.rules.Guard)
	case "write":
		return Write(s.tree, s.rules.Guard, s.apply)
	case "edit":
		return Edit(s.tree, s.rules.Guard, s.apply)
	}
	s.t.Fatalf("no tool %s", name)
	return Tool{}
}

// raw makes a call with unprocessed arguments.
func (s *session) raw(name, args string) Result {
	s.t.Helper()
	in := Input{
		Args: json.RawMessage(args),
		Seen: func(p string) (string, bool) { d, ok := s.seen[p]; return d, ok },
		Told: func(p, text string) bool {
			for line := range strings.Lines(p + "\n" + text) {
				if !strings.Contains(s.told, strings.TrimSpace(line)) {
					return false
				}
			}
			return true
		},
		Output: func(n int) (string, bool) {
			if n < 1 || n > len(s.outputs) {
				return "", false
			}
			return s.outputs[n-1], true
		},
		Original: s.original,
	}
	r, err := s.tool(name).Run(s.t.Context(), in)
	if err != nil {
		s.t.Fatalf("%s %s: %v", name, args, err)
	}
	if r.Failed != strings.HasPrefix(r.Text, "Error: ") {
		s.t.Errorf("%s: Failed = %v, Text = %q", name, r.Failed, r.Text)
	}
	maps.Copy(s.seen, r.Shown)
	s.outputs = append(s.outputs, r.Text)
	return r
}

type args map[string]any

func (s *session) call(name string, a args) Result {
	s.t.Helper()
	b, err := json.Marshal(a)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.raw(name, string(b))
}

// succeeds makes a call that must succeed.
func (s *session) succeeds(name string, a args) Result {
	s.t.Helper()
	r := s.call(name, a)
	if r.Failed {
		s.t.Fatalf("%s %.200v: %s", name, a, r.Text)
	}
	return r
}

// fails makes a call that must fail with a text that contains all the words.
func (s *session) fails(name string, a args, words ...string) {
	s.t.Helper()
	r := s.call(name, a)
	if !r.Failed {
		s.t.Fatalf("%s %.200v did not fail: %.500s", name, a, r.Text)
	}
	contains(s.t, r.Text, words...)
	if len(r.Shown) > 0 {
		s.t.Errorf("%s failed and saw %v", name, r.Shown)
	}
}

func contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in:\n%.3000s", w, text)
		}
	}
}

func lacks(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(text, w) {
			t.Errorf("%q is in:\n%.3000s", w, text)
		}
	}
}

func (s *session) file(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.tree.Dir(), filepath.FromSlash(name)))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// put changes a file without a tool.
func (s *session) put(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.tree.Dir(), filepath.FromSlash(name)), []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}
