package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"hone/workspace"
)

func TestWrite(t *testing.T) {
	s := newSession(t, map[string]string{"a.txt": "a\n"})
	for _, c := range []struct{ path, content, want, at string }{
		{"new.txt", "ü\n", "Wrote new.txt (3 bytes)", "new.txt"},
		{"deep/er/./x.txt", "", "Wrote deep/er/x.txt (0 bytes)", "deep/er/x.txt"},
		{s.tree.Dir() + "/abs.txt", "a\r\nb", "Wrote abs.txt (4 bytes)", "abs.txt"},
		{"new.txt", "again\n", "Wrote new.txt (6 bytes)", "new.txt"},
		{"new.txt", "again\n", "new.txt already has these contents; nothing was written", "new.txt"},
	} {
		r := s.succeeds("write", args{"path": c.path, "content": c.content})
		if r.Text != c.want || s.file(c.at) != c.content || r.Shown[c.at] != workspace.Digest([]byte(c.content)) {
			t.Errorf("write %s: %q, file %q, saw %v", c.path, r.Text, s.file(c.at), r.Shown)
		}
	}
	s.succeeds("read", args{"path": "a.txt"})
	s.succeeds("write", args{"path": "a.txt", "content": "b\n"})
	s.succeeds("edit", args{"path": "a.txt", "edits": []args{{"oldText": "b", "newText": "c"}}})
	if got := s.file("a.txt"); got != "c\n" {
		t.Errorf("%q", got)
	}
}

func TestWriteKeepsTheMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	s := newSession(t, map[string]string{"run": "old\n"})
	if err := os.Chmod(filepath.Join(s.tree.Dir(), "run"), 0o750); err != nil {
		t.Fatal(err)
	}
	s.succeeds("read", args{"path": "run"})
	s.succeeds("write", args{"path": "run", "content": "new\n"})
	s.succeeds("edit", args{"path": "run", "edits": []args{{"oldText": "new", "newText": "newer"}}})
	s.succeeds("write", args{"path": "new.sh", "content": "#!/bin/sh\n"})
	for name, want := range map[string]os.FileMode{"run": 0o750, "new.sh": 0o755} {
		info, err := os.Stat(filepath.Join(s.tree.Dir(), name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// Rulings G4, G5 and G8, as explained to the model.
func TestWriteRefuses(t *testing.T) {
	s := newSession(t, map[string]string{"a.txt": "a\n", "fixed.txt": "x\n", ".env": "A=1\n", "dir/b": "b", "latin": "caf\xe9\n"})
	for _, c := range []struct {
		path  string
		words []string
	}{
		{"a.txt", []string{"a.txt was not changed: its contents were not shown to you", "Read it, then try again"}},
		{"fixed.txt", []string{"fixed.txt was not changed: this file may not be changed here. This rule is final"}},
		{"./FIXED.txt", []string{"may not be changed here"}},
		{".config/hone.toml", []string{"may not change the configuration"}},
		{".git/hooks/pre-commit", []string{"git's own files"}},
		{".hone/x", []string{"hone's own files"}},
		{".env", []string{"withheld"}},
		{"dir", []string{"it is a directory"}},
		{"dir/", []string{"names a directory"}},
		{"a.txt/x", []string{"a.txt/x was not changed"}},
		{"../x", []string{`".." is not allowed`}},
		{"/tmp/x", []string{"outside the working directory"}},
		{"~/x", []string{"~ is not expanded"}},
		{"a\x00", []string{"NUL"}},
		{strings.Repeat("x", 1<<20), []string{"longer than 4096"}},
	} {
		s.fails("write", args{"path": c.path, "content": "new\n"}, c.words...)
	}
	s.succeeds("read", args{"path": "a.txt"})
	s.put("a.txt", "changed\n")
	s.fails("write", args{"path": "a.txt", "content": "new\n"}, "have changed since they were shown", "Read it, then try again")
	s.succeeds("read", args{"path": "latin"})
	s.fails("write", args{"path": "latin", "content": "café\n"}, "not UTF-8", "edit")
	for name, want := range map[string]string{"a.txt": "changed\n", "fixed.txt": "x\n", ".env": "A=1\n", "latin": "caf\xe9\n"} {
		if got := s.file(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// What write would lose of a file of which only a part was shown, the model does not know.
func TestWritePart(t *testing.T) {
	s := newSession(t, map[string]string{"a.txt": "one\ntwo\n"})
	s.succeeds("read", args{"path": "a.txt", "limit": 1})
	s.fails("write", args{"path": "a.txt", "content": "new\n"}, "you have seen only a part of it")
	s.succeeds("edit", args{"path": "a.txt", "edits": edits("one", "1")})
	s.fails("write", args{"path": "a.txt", "content": "new\n"}, "you have seen only a part of it")
	s.succeeds("read", args{"path": "a.txt"})
	s.succeeds("write", args{"path": "a.txt", "content": "new\n"})
}

// The model has not seen what the user made of its change, and must read it.
func TestEditedByTheUser(t *testing.T) {
	s := newSession(t, map[string]string{"a.txt": "a\n"})
	edited := func(_ context.Context, ch workspace.Change, _ func(string) (string, bool)) ([]workspace.Verdict, error) {
		return []workspace.Verdict{{Path: ch.Edits[0].Path, Ruling: workspace.Allow, Edited: true}}, nil
	}
	in := Input{Seen: func(string) (string, bool) { return workspace.Digest([]byte("a\n")), true }}
	for _, one := range []struct {
		tool Tool
		args string
	}{
		{Write(s.tree, nil, edited), `{"path": "a.txt", "content": "b\n"}`},
		{Edit(s.tree, nil, edited), `{"path": "a.txt", "edits": [{"oldText": "a", "newText": "b"}]}`},
	} {
		in.Args = json.RawMessage(one.args)
		r, err := one.tool.Run(t.Context(), in)
		want := "a.txt was changed, but the user edited your change before approving it. Keep what the user wrote; read the file before you change it again."
		if err != nil || r.Failed || r.Text != want || len(r.Shown) != 0 {
			t.Errorf("%s: %+v, %v", one.tool.Spec.Name, r, err)
		}
	}
}

func TestWriteReportsDeclinedChanges(t *testing.T) {
	s := newSession(t, nil)
	declined := func(_ context.Context, ch workspace.Change, _ func(string) (string, bool)) ([]workspace.Verdict, error) {
		return []workspace.Verdict{{Path: ch.Edits[0].Path, Ruling: workspace.Declined, Reason: "changes to it need approval, and the user declined it"}}, nil
	}
	in := Input{Args: json.RawMessage(`{"path": "a.txt", "content": "x"}`)}
	r, err := Write(s.tree, nil, declined).Run(t.Context(), in)
	if want := "Error: a.txt was not changed: changes to it need approval, and the user declined it. Do not try the same change again"; err != nil || r.Text != want {
		t.Errorf("%q, %v", r.Text, err)
	}
	broken := errors.New("disk is full")
	for _, apply := range []Apply{
		func(context.Context, workspace.Change, func(string) (string, bool)) ([]workspace.Verdict, error) {
			return nil, broken
		},
		func(context.Context, workspace.Change, func(string) (string, bool)) ([]workspace.Verdict, error) {
			return nil, nil
		},
	} {
		if r, err := Write(s.tree, nil, apply).Run(t.Context(), in); err == nil || r.Text != "" {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
