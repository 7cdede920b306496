package attempts

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

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
