package workspace

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/workspace/internal/nofollow"
	"hone/workspace/internal/treetest"
	"hone/workspace/secret"
)

// outcome formats a verdict for comparison.
func outcome(v Verdict) string {
	return strings.TrimSpace(string(v.Ruling) + " " + v.Path + ": " + v.Reason)
}

func write(path, content string) Edit { return Edit{Path: path, Content: []byte(content)} }

func TestReview(t *testing.T) {
	files := map[string]string{
		"a": "old", "sub/b": "old", "seen": "old", "stale": "old", "big": strings.Repeat("x", 101),
		"link": "->a", "dirlink": "->sub", "build.sh": "x", "ask.md": "old",
		".env": "x", "vendored/x": "old",
	}
	rules := Rules{
		Immutable: []string{"build.sh", "logs/"},
		NotSent:   []string{"vendored/**"},
		Approve:   []string{"ask.md", "New.md"},
		Guard:     secret.NewGuard(nil),
		Seen: func(path string) (string, bool) {
			switch path {
			case "seen", "a", "ask.md", "sub/b", "build.sh":
				return Digest([]byte("old")), true
			case "stale":
				return Digest([]byte("older")), true
			}
			return "", false
		},
	}
	for _, c := range []struct {
		name  string
		edits []Edit
		want  string // of the last verdict
	}{
		{"overwrite", []Edit{write("a", "new")}, "allow a:"},
		{"create", []Edit{write("new/deep/x", "new")}, "allow new/deep/x:"},
		{"cleaned", []Edit{write("./sub//b", "new")}, "allow sub/b:"},
		{"delete", []Edit{{Path: "a", Delete: true}}, "allow a:"},
		{"same contents", []Edit{write("a", "old")}, "drop a: the file already has these contents"},
		{"delete nothing", []Edit{{Path: "no", Delete: true}}, "drop no: there is no such file to delete"},
		{"delete below nothing", []Edit{{Path: "no/x", Delete: true}}, "drop no/x: there is no such file to delete"},
		{"stale", []Edit{write("stale", "new")}, "ask stale: its contents have changed since they were shown to the model"},
		{"approval", []Edit{write("ask.md", "new")}, "ask ask.md: changes to it need approval"},
		{"approval, folded", []Edit{write("nEW.md", "new")}, "ask nEW.md: changes to it need approval"},
		{"approval of nothing", []Edit{write("ask.md", "old")}, "drop ask.md: the file already has these contents"},
		{"git", []Edit{write("sub/.Git/config", "new")}, "deny sub/.Git/config: git's own files are protected"},
		{"journal", []Edit{write(".Hone/x", "new")}, "deny .Hone/x: hone's own files are protected"},
		{"configuration", []Edit{write(".config/./BORK.json", "new")}, "deny .config/BORK.json: a model may not change the configuration"},
		{"temporary", []Edit{write("sub/.hone~1", "new")}, "deny sub/.hone~1: hone's own files are protected"},
		{"immutable", []Edit{write("Build.sh", "new")}, "deny Build.sh: this file may not be changed here"},
		{"immutable folder", []Edit{write("logs/x", "new")}, "deny logs/x: this file may not be changed here"},
		{"not sent", []Edit{write("vendored/x", "new")}, "deny vendored/x: its contents are never sent to the model, so a model may not change it"},
		{"through a symlink", []Edit{write("dirlink/b", "new")}, "deny dirlink/b: a parent directory cannot be used: dirlink is a symlink"},
		{"onto a symlink", []Edit{write("link", "new")}, "deny link: it is a symlink, which is not followed"},
		{"onto a directory", []Edit{write("sub", "new")}, "deny sub: it is a directory"},
		{"delete a directory", []Edit{{Path: "sub", Delete: true}}, "deny sub: it is a directory"},
		{"below a file", []Edit{write("a/x", "new")}, "deny a/x: a parent directory cannot be used: a is a file, not a directory"},
		{"large", []Edit{write("big", "new")}, "deny big: 101 bytes is more than the limit of 100"},
		{"to be large", []Edit{write("a", strings.Repeat("x", 101))}, "deny a: 101 bytes is more than the limit of 100"},
		{"withheld name", []Edit{write(".env", "new")}, "deny .env: it is withheld from the model: an environment file"},
		{"withheld new name", []Edit{write("x/.env.local", "new")}, "deny x/.env.local: it is withheld from the model: an environment file"},
		{"parent", []Edit{write("../x", "new")}, `deny ../x: ".." is not allowed in a path`},
		{"not text", []Edit{write("a\xff", "new")}, "deny a\xff: the path is not valid UTF-8"},
		{"twice", []Edit{write("a", "1"), write("./a", "2")}, "deny a: the change names this path twice"},
		{"twice, folded", []Edit{write("x", "1"), write("X", "2")}, "deny X: the change names this path twice, also as x"},
		{"below another", []Edit{write("x", "1"), write("X/y", "2")}, "deny X/y: it is below x, which the same change also names"},
		{"above another", []Edit{write("x/y/z", "1"), write("x", "2")}, "deny x: the same change also names x/y/z, which is below it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := newTree(t, files, Options{MaxFile: 100})
			before := treetest.Contents(t, tree.Dir())
			verdicts, err := tree.Review(Change{Edits: c.edits}, rules)
			if err != nil {
				t.Fatal(err)
			}
			if got := outcome(verdicts[len(verdicts)-1]); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if diff := cmp.Diff(before, treetest.Contents(t, tree.Dir())); diff != "" {
				t.Errorf("Review wrote:\n%s", diff)
			}
		})
	}
}

// A file with a secret exceeds the size limit of the other cases.
func TestReviewSecrets(t *testing.T) {
	tree := newTree(t, map[string]string{"key.pem": "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", 3) + "\n-----END PRIVATE KEY-----\n", "a": "x"}, Options{})
	guard := secret.NewGuard([]string{".env.ci"})
	guard.Known = []string{"correct-horse-battery"}
	verdicts, err := tree.Review(Change{Edits: []Edit{
		write("key.pem", "new"), write("a", "correct-horse-battery"), write(".env.ci", "x"),
	}}, Rules{Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"deny key.pem: it is withheld from the model: line 1 looks like a private key", "allow a:", "allow .env.ci:"}
	for i, v := range verdicts {
		if got := outcome(v); got != want[i] {
			t.Errorf("got %s, want %s", got, want[i])
		}
	}
}

func TestReviewSeen(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "old"}, Options{})
	nothing := func(string) (string, bool) { return "", false }
	for _, e := range []Edit{write("a", "new"), {Path: "a", Delete: true}} {
		verdicts, err := tree.Review(Change{Edits: []Edit{e}}, Rules{Seen: nothing, Approve: []string{"*"}})
		want := "ask a: its contents were not shown to the model; changes to it need approval"
		if err != nil || outcome(verdicts[0]) != want {
			t.Errorf("%v, %v", verdicts, err)
		}
	}
	verdicts, err := tree.Review(Change{Edits: []Edit{write("new", "x")}}, Rules{Seen: nothing})
	if err != nil || verdicts[0].Ruling != Allow {
		t.Errorf("a new file was never shown, but the verdict is %v, %v", verdicts, err)
	}
}

// Ruling G4: where the model can read a file, it must; what a rule forbids stays
// forbidden.
func TestReviewAsksAboutTools(t *testing.T) {
	tree := newTree(t, map[string]string{".github/workflows/ci.yml": "old"}, Options{})
	ch := Change{Edits: []Edit{write("web/.VSCode/tasks.json", "{}"), {Path: ".github/workflows/ci.yml", Delete: true}, write("a", "new")}}
	for _, tools := range []bool{true, false} {
		verdicts, err := tree.Review(ch, Rules{Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range verdicts {
			want := Allow
			if tools && i < 2 {
				want = Ask
			}
			if v.Ruling != want {
				t.Errorf("tools %t: %s, want %s", tools, outcome(v), want)
			}
		}
	}
}

func TestReviewReadFirst(t *testing.T) {
	tree := newTree(t, map[string]string{"seen": "1", "unseen": "1", "fixed": "1", "stale": "1"}, Options{})
	verdicts, err := tree.Review(Change{Edits: []Edit{write("seen", "2"), write("unseen", "2"), write("fixed", "2"), write("new", "2"), write("fixed/x", "2"), write("stale", "2")}},
		Rules{ReadFirst: true, Immutable: []string{"fixed"}, Approve: []string{"*"}, Seen: func(path string) (string, bool) {
			return map[bool]string{true: Digest([]byte("1"))}[path == "seen"], path != "unseen"
		}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range verdicts {
		got = append(got, string(v.Ruling))
	}
	if want := []string{"ask", "unread", "deny", "ask", "deny", "unread"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestReviewScope(t *testing.T) {
	tree := newTree(t, nil, Options{})
	ch := Change{Edits: []Edit{write("src/a", "x"), write("SRC/b", "x"), write("specs/c", "x"), write("d", "x")}}
	for _, c := range []struct {
		scope []string
		want  string
	}{
		{nil, "allow allow allow allow"},
		{[]string{}, "deny deny deny deny"},
		{[]string{"src", "specs/**"}, "allow deny allow deny"},
		{[]string{"src/"}, "allow deny deny deny"},
	} {
		verdicts, err := tree.Review(ch, Rules{Scope: c.scope})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range verdicts {
			got = append(got, string(v.Ruling))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("scope %q: %v, want %s", c.scope, got, c.want)
		}
	}
	for _, rules := range []Rules{{Scope: []string{"[a"}}, {Immutable: []string{"{a"}}, {NotSent: []string{"[a"}}, {Approve: []string{"[a"}}} {
		if _, err := tree.Review(ch, rules); err == nil {
			t.Errorf("%+v: no error for a bad pattern", rules)
		}
	}
}

func TestReviewImages(t *testing.T) {
	tree := newTree(t, map[string]string{"run": "#!/bin/sh\n"}, Options{})
	treetest.Chmod(t, tree.Dir(), "run", 0o751)
	verdicts, err := tree.Review(Change{Edits: []Edit{
		write("run", "text"), write("script", "#!/bin/sh\n"), write("plain", ""), {Path: "run2", Delete: true},
	}}, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	image := func(content string, mode uint32) Image {
		return Image{Digest: Digest([]byte(content)), Size: int64(len(content)), Mode: mode}
	}
	want := []Verdict{
		{Path: "run", Ruling: Allow, Before: image("#!/bin/sh\n", 0o751), After: image("text", 0o751)},
		{Path: "script", Ruling: Allow, After: image("#!/bin/sh\n", 0o755)},
		{Path: "plain", Ruling: Allow, After: image("", 0o644)},
		{Path: "run2", Ruling: Drop, Reason: "there is no such file to delete"},
	}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Error(diff)
	}
}

func TestReviewReasons(t *testing.T) {
	err := nofollow.ReadError("a", &fs.PathError{Op: "openat", Path: "a", Err: syscall.EACCES})
	if got := new(review).reason("a", err); got != "the file cannot be read: permission denied" {
		t.Errorf("reason %q", got)
	}
}

// TestReviewRepositories checks that no change lands in a directory that git takes for a
// repository, or would with the change (ruling G5).
func TestReviewRepositories(t *testing.T) {
	for name, test := range map[string]struct {
		there  string // paths; a directory ends in a slash
		edits  string
		denied string
	}{
		"all at once":          {"", "docs/HEAD docs/config docs/objects/a docs/refs/a docs/x y", "docs/HEAD docs/config docs/objects/a docs/refs/a docs/x"},
		"HEAD last":            {"docs/objects/ docs/refs/", "docs/HEAD", "docs/HEAD"},
		"refs last":            {"docs/objects/ docs/HEAD", "docs/refs/heads/x", "docs/refs/heads/x"},
		"commondir":            {"docs/HEAD", "docs/commondir", "docs/commondir"},
		"other case":           {"docs/objects/ docs/refs/", "docs/head docs/Refs/x", "docs/head docs/Refs/x"},
		"the root":             {"objects/ refs/", "HEAD x", "HEAD x"},
		"one that is there":    {"r.git/HEAD r.git/objects/ r.git/refs/", "r.git/config r.git/a/b r.gitx", "r.git/config r.git/a/b"},
		"objects and refs":     {"", "lib/objects/a lib/refs/a", ""},
		"HEAD alone":           {"", "HEAD docs/HEAD", ""},
		"a directory HEAD":     {"", "c/HEAD/x c/objects/x c/refs/x", ""},
		"in different folders": {"a/objects/ b/refs/", "HEAD a/x b/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for _, path := range strings.Fields(test.there) {
				if strings.HasSuffix(path, "/") {
					path += "x"
				}
				files[path] = "x"
			}
			tree := newTree(t, files, Options{})
			var change Change
			for _, path := range strings.Fields(test.edits) {
				change.Edits = append(change.Edits, write(path, "y"))
			}
			verdicts, err := tree.Review(change, Rules{})
			if err != nil {
				t.Fatal(err)
			}
			var denied []string
			for _, v := range verdicts {
				if v.Ruling == Deny && strings.Contains(v.Reason, "repository") {
					denied = append(denied, v.Path)
				}
			}
			if got := strings.Join(denied, " "); got != test.denied {
				t.Errorf("denied %q", got)
			}
		})
	}
}
