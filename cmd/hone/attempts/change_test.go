package attempts

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/journal"
	"hone/workspace"
)

func file(text string) state {
	return state{Kind: workspace.Regular, Mode: 0o644, Digest: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}
}

// From what one attempt left to what another made of the same tree.
func TestInPlaceOf(t *testing.T) {
	none := state{}
	first := []edit{{"both", file("old"), file("one")}, {"gone", file("old"), none}, {"made", none, file("one")}, {"same", file("old"), file("new")}}
	second := []edit{{"both", file("old"), file("two")}, {"made too", none, file("two")}, {"same", file("old"), file("new")}}
	want := []edit{{"both", file("one"), file("two")}, {"gone", none, file("old")}, {"made", file("one"), none}, {"made too", none, file("two")}}
	if diff := cmp.Diff(want, inPlaceOf(first, second)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := inPlaceOf(nil, second); !cmp.Equal(got, second) {
		t.Errorf("from nothing: %+v", got)
	}
	if got := inPlaceOf(first, first); got != nil {
		t.Errorf("to the same: %+v", got)
	}
}

// What hone's edits cannot express is named, and nothing is lost silently.
func TestProblems(t *testing.T) {
	home, err := journal.OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	contents := map[string][]byte{}
	for _, text := range []string{"text", "#!/bin/sh\n"} {
		contents[file(text).Digest] = []byte(text)
	}
	get := func(digest string) ([]byte, error) { return contents[digest], nil }
	has := func(digest string) bool { return contents[digest] != nil }
	executable := func(s state) state { s.Mode = 0o755; return s }
	link := state{Kind: workspace.Symlink, Target: "x"}
	for name, c := range map[string]struct {
		edit edit
		why  string
	}{
		"a new file":          {edit{"p", state{}, file("text")}, ""},
		"a removed file":      {edit{"p", file("not stored"), state{}}, ""},
		"a new script":        {edit{"p", state{}, executable(file("#!/bin/sh\n"))}, ""},
		"a changed program":   {edit{"p", executable(file("old")), executable(file("text"))}, ""},
		"a new program":       {edit{"p", state{}, executable(file("text"))}, "p: it is executable, and no script"},
		"chmod +x":            {edit{"p", file("text"), executable(file("text"))}, "p: it became executable, or no longer is"},
		"a new link":          {edit{"p", state{}, link}, "p: it is not a regular file"},
		"a link before":       {edit{"p", link, file("text")}, "p: it is not a regular file"},
		"contents not stored": {edit{"p", state{}, file("large")}, "p: its contents were not stored: it is larger than [undo] max-file, contains a provider's key, or could not be read"},
		"an unreadable file":  {edit{"p", state{Kind: workspace.Regular, Note: "denied"}, file("text")}, "p: it could not be read"},
	} {
		got, err := changeOf([]edit{c.edit}, get, has, home)
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
