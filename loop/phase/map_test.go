package phase_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/loop/phase"
)

// mapTree makes a folder src with files, and folders where a name ends in a
// slash, and returns its path.
func mapTree(t *testing.T, names ...string) string {
	t.Helper()
	src := filepath.Join(t.TempDir(), "src")
	for _, name := range append(names, "./") {
		path := filepath.Join(src, filepath.FromSlash(name))
		folder := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			folder = path
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if folder == path {
			continue
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return src
}

func mapOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := phase.Map(dir)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func usualTree(t *testing.T) string {
	return mapTree(t, "package.json", "Zebra.ts", "app/page.tsx", "app/api/login/route.ts", "app/api/empty/", "b", "ä",
		".git/HEAD", ".env", "node_modules/x/index.js", "app/node_modules/y/index.js", "lib/.git")
}

func TestMap(t *testing.T) {
	want := `src/
├── app
│   ├── api
│   │   ├── empty
│   │   └── login
│   │       └── route.ts
│   └── page.tsx
├── lib
├── Zebra.ts
├── b
├── package.json
└── ä

5 directories, 6 files
`
	if diff := cmp.Diff(want, mapOf(t, usualTree(t)+"/")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, want := mapOf(t, mapTree(t)), "src/\n\n0 directories, 0 files\n"; got != want {
		t.Errorf("an empty folder: %q, want %q", got, want)
	}
	if got, want := mapOf(t, mapTree(t, "a/b")), "src/\n└── a\n    └── b\n\n1 directory, 1 file\n"; got != want {
		t.Errorf("one of each: %q, want %q", got, want)
	}
}

// TestMapIsTrees compares with the program whose output the seed shows to the
// models. The sums are left aside: whether tree counts the folder itself
// depends on its version.
func TestMapIsTrees(t *testing.T) {
	tree, err := exec.LookPath("tree")
	if err != nil {
		t.Skip("NOT COMPARED with the program tree, which is not installed: ", err)
	}
	src := usualTree(t)
	if err := os.Symlink("gone", filepath.Join(src, "link")); err != nil {
		t.Skip("NOT COMPARED, as there are no symlinks here: ", err)
	}
	cmd := exec.Command(tree, "src/", "-I", "node_modules|.git", "--dirsfirst", "-N", "--charset", "UTF-8", "--noreport")
	cmd.Dir = filepath.Dir(src)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(strings.ReplaceAll(string(out), "\u00a0", " "))
	got, _, _ := strings.Cut(mapOf(t, src), "\n\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-tree +map:\n%s", diff)
	}
}

func TestMapLeavesOutWhatToolsMade(t *testing.T) {
	src := mapTree(t, "target/CACHEDIR.TAG", "target/debug/x", "venv/pyvenv.cfg", "venv/lib/x.py", "pkg/__pycache__/x.pyc",
		"aim/target/mine.go", "bin/CACHEDIR.TAG/x")
	want := "src/\n├── aim\n│   └── target\n│       └── mine.go\n├── bin\n│   └── CACHEDIR.TAG\n│       └── x\n└── pkg\n\n5 directories, 2 files\n"
	if diff := cmp.Diff(want, mapOf(t, src)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMapFollowsNoSymlink(t *testing.T) {
	src := mapTree(t, "dir/file")
	for name, target := range map[string]string{"in": "dir", "loop": ".", "out": os.TempDir(), "gone": "a\x1b[31mb\tc"} {
		if err := os.Symlink(target, filepath.Join(src, name)); err != nil {
			if runtime.GOOS == "windows" {
				t.Skip("no such symlinks here: ", err)
			}
			t.Fatal(err)
		}
	}
	want := "src/\n├── dir\n│   └── file\n├── gone -> a\\x1b[31mb\\tc\n├── in -> dir\n├── loop -> .\n└── out -> " + os.TempDir() + "\n\n1 directory, 5 files\n"
	if diff := cmp.Diff(want, mapOf(t, src)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMapEscapesNames(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no file has such a name here")
	}
	src := mapTree(t, "a\nb", "c\x1b[2J\td\xff", "e\u202ef")
	want := "src/\n├── a\\nb\n├── c\\x1b[2J\\td\\xff\n└── e\\u202ef\n\n0 directories, 3 files\n"
	if diff := cmp.Diff(want, mapOf(t, src)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMapOfNothing(t *testing.T) {
	if text, err := phase.Map(filepath.Join(t.TempDir(), "src")); err == nil {
		t.Errorf("a folder that is not there is drawn as %q", text)
	}
	file := filepath.Join(t.TempDir(), "src")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := phase.Map(file); err == nil {
		t.Errorf("a file is drawn as %q", text)
	}
}
