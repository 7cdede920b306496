package attempts

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"hone"
	"hone/group"
	"hone/history"
	"hone/journal"
	"hone/workspace"
)

func file(text string) workspace.Entry {
	return workspace.Entry{Kind: workspace.Regular, Mode: 0o644, Digest: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}
}

// From what one attempt left to what another made of the same tree.
func TestInPlaceOf(t *testing.T) {
	none := workspace.Entry{}
	first := []workspace.Delta{{Path: "both", Before: file("old"), After: file("one")}, {Path: "gone", Before: file("old"), After: none}, {Path: "made", Before: none, After: file("one")}, {Path: "same", Before: file("old"), After: file("new")}}
	second := []workspace.Delta{{Path: "both", Before: file("old"), After: file("two")}, {Path: "made too", Before: none, After: file("two")}, {Path: "same", Before: file("old"), After: file("new")}}
	want := []workspace.Delta{{Path: "both", Before: file("one"), After: file("two")}, {Path: "gone", Before: none, After: file("old")}, {Path: "made", Before: file("one"), After: none}, {Path: "made too", Before: none, After: file("two")}, {Path: "same", Before: file("new"), After: file("new")}}
	if got := inPlaceOf(first, second); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := inPlaceOf(nil, second); !slices.Equal(got, second) {
		t.Errorf("from nothing: %+v", got)
	}
	for _, d := range inPlaceOf(first, first) { // they are compared with the tree
		if !d.Before.SameState(d.After) {
			t.Errorf("to the same: %+v", d)
		}
	}
}

// What hone's edits cannot express is named, and nothing is lost silently.
func TestProblems(t *testing.T) {
	home, err := journal.OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	j, err := home.Create("r")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	contents := map[string][]byte{}
	for _, text := range []string{"text", "#!/bin/sh\n"} {
		contents[file(text).Digest] = []byte(text)
	}
	get := func(digest string) ([]byte, error) { return contents[digest], nil }
	has := func(digest string) bool { return contents[digest] != nil }
	executable := func(e workspace.Entry) workspace.Entry { e.Mode = 0o755; return e }
	none, link := workspace.Entry{}, workspace.Entry{Kind: workspace.Symlink, Target: "x"}
	for name, c := range map[string]struct {
		before, after workspace.Entry
		why           string
	}{
		"a new file":          {none, file("text"), ""},
		"a removed file":      {file("not stored"), none, ""},
		"a new script":        {none, executable(file("#!/bin/sh\n")), ""},
		"a changed program":   {executable(file("old")), executable(file("text")), ""},
		"a new program":       {none, executable(file("text")), "p: it is executable, and no script"},
		"chmod +x":            {file("text"), executable(file("text")), "p: it became executable, or no longer is"},
		"a new link":          {none, link, "p: it is not a regular file"},
		"a link before":       {link, file("text"), "p: it is not a regular file"},
		"contents not stored": {none, file("large"), "p: its contents were not stored: it is larger than [undo] max-file, contains a provider's key, or could not be read"},
		"an unreadable file":  {workspace.Entry{Kind: workspace.Regular, Note: "denied"}, file("text"), "p: it could not be read"},
	} {
		got, err := changeOf([]workspace.Delta{{Path: "p", Before: c.before, After: c.after}}, get, has, j)
		why := ""
		if len(got.Problems) > 0 {
			why = got.Problems[0]
		}
		if err != nil || why != c.why {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
	if b, err := home.Get(file("text").Digest); err != nil || !bytes.Equal(b, []byte("text")) {
		t.Errorf("stored: %q, %v", b, err)
	}
}

// tree returns a directory with a file, a read-only directory and a home.
func tree(t *testing.T) string {
	t.Helper()
	top := filepath.Join(t.TempDir(), "project")
	err := errors.Join(os.MkdirAll(filepath.Join(top, "closed"), 0o755), os.MkdirAll(filepath.Join(top, journal.HomeName), 0o700),
		os.WriteFile(filepath.Join(top, "closed", "a"), []byte("a"), 0o600), os.Chmod(filepath.Join(top, "closed"), 0o500))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(top, "closed"), 0o700) })
	return top
}

// The copies have everything but the home, are for the user only, replace what an earlier
// process left, and can be removed.
func TestCopies(t *testing.T) {
	top := tree(t)
	p := place{top: top, rel: ".", root: filepath.Join(t.TempDir(), "run")}
	if err := os.MkdirAll(filepath.Join(p.copy(1), "half"), 0o700); err != nil {
		t.Fatal(err)
	}
	if skipped, err := p.make(t.Context(), top, nil, 2, 0); err != nil || len(skipped) > 0 {
		t.Fatal(skipped, err)
	}
	for n := 1; n <= 2; n++ {
		entries, err := os.ReadDir(p.dir(n))
		if err != nil || len(entries) != 1 || entries[0].Name() != "closed" {
			t.Errorf("copy %d: %v, %v", n, entries, err)
		}
		if b, err := os.ReadFile(filepath.Join(p.dir(n), "closed", "a")); err != nil || string(b) != "a" {
			t.Errorf("copy %d: %q, %v", n, b, err)
		}
	}
	if info, err := os.Stat(p.root); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := group.Remove(p.root); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.root); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}

// If the disk would become too full there are no copies at all.
func TestCopiesLeaveSpace(t *testing.T) {
	top := tree(t)
	if _, ok := journal.FreeSpace(top); !ok {
		t.Skip("the system does not tell how much space is free")
	}
	p := place{top: top, rel: ".", root: filepath.Join(t.TempDir(), "run")}
	_, err := p.make(t.Context(), top, nil, 2, 1<<62)
	stop, ok := errors.AsType[*hone.Stop](err)
	if !ok || stop.Kind != hone.KindFailed {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.root); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}

// An attempt that was killed before it began its journal has used nothing of its loan. If its
// journal cannot be read, the loan counts in full.
func TestSpent(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	home, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	lock, err := home.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	j, err := home.Create(home.NewRun())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	past := history.Follow(j)
	if _, err := j.Append(journal.Entry{Type: history.TypeReserve, Payload: history.Reserve{Role: fmt.Sprintf(rolePattern, 2), Tokens: 1000}}); err != nil {
		t.Fatal(err)
	}
	if spent := Spent(home, j.Run(), past); spent.Tokens != 0 {
		t.Errorf("%d tokens before the attempt began", spent.Tokens)
	}
	p, err := placeOf(dir, j.Run())
	if err := errors.Join(err, os.MkdirAll(p.dir(2), 0o700), os.WriteFile(p.dir(2)+"/"+journal.HomeName, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if spent := Spent(home, j.Run(), past); spent.Tokens != 1000 {
		t.Errorf("%d tokens of an attempt whose journal cannot be read", spent.Tokens)
	}
}
