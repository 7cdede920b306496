package runs

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"hone/harness/internal/state"
	"hone/internal/crashtest"
	"hone/journal"
)

// outsideHome creates the home of a workspace in the state folder.
func outsideHome(t *testing.T, dir string) string {
	t.Helper()
	homes, err := state.Make("homes")
	if err == nil {
		err = os.Mkdir(filepath.Join(homes, homeName(dir)), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(homes, homeName(dir))
}

func TestHomePath(t *testing.T) {
	dir := crashtest.Workspace(t, nil)
	inTree := filepath.Join(dir, journal.HomeName)
	if got := HomePath(dir); got != inTree {
		t.Errorf("without a home: %s", got)
	}
	homes, err := state.Make("homes")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(homes, homeName(dir))
	if err := os.Symlink(dir, link); err == nil {
		if got := HomePath(dir); got != inTree {
			t.Errorf("a link in the state folder: %s", got)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	outside := outsideHome(t, dir)
	if err := os.Mkdir(inTree, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := HomePath(dir); got != outside {
		t.Errorf("with a planted .hone: %s", got)
	}
	if got := HomePath(filepath.Join(dir, "other")); got != filepath.Join(dir, "other", journal.HomeName) {
		t.Errorf("another directory: %s", got)
	}
}

func TestHomeName(t *testing.T) {
	long := strings.Repeat("x", 200)
	for dir, start := range map[string]string{"/a/my project": "my_project-", "/a/é$(x)": "___x_-", "/a/" + long: long[:maxHomeName] + "-", "/": "_-"} {
		if name := homeName(filepath.FromSlash(dir)); !strings.HasPrefix(name, start) || len(name) != len(start)+16 {
			t.Errorf("%s: %s", dir, name)
		}
	}
	if homeName("/a/b") == homeName("/c/b") {
		t.Error("two directories have the same home")
	}
}

// TestFindRootOutside finds workspaces by homes that are in the state folder.
func TestFindRootOutside(t *testing.T) {
	top := crashtest.Workspace(t, nil)
	below := filepath.Join(top, "repo", "pkg", "sub")
	if err := errors.Join(os.MkdirAll(below, 0o755), os.MkdirAll(filepath.Join(top, "repo", ".git"), 0o755),
		os.WriteFile(filepath.Join(top, "repo", ".git", "HEAD"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	outsideHome(t, top)
	repo, pkg := filepath.Join(top, "repo"), filepath.Join(top, "repo", "pkg")
	if got, err := FindRoot(below); err != nil || got != repo {
		t.Errorf("with a home above the repository: %s, %v", got, err)
	}
	outsideHome(t, pkg)
	if got, err := FindRoot(below); err != nil || got != pkg {
		t.Errorf("with a home below its top: %s, %v", got, err)
	}
}

// TestHomeMoved locks a home that another process moved after it was opened.
func TestHomeMoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be renamed")
	}
	dir := crashtest.Workspace(t, nil)
	first, err := Enter(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	early, err := journal.FindHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.moved() {
		t.Error("the home did not move yet")
	}
	j, err := first.Home.Create(first.Home.NewRun())
	if err != nil {
		t.Fatal(err)
	}
	homes, err := state.Make("homes")
	if err == nil {
		err = first.Home.Move(filepath.Join(homes, homeName(dir)), first.Lock, j)
	}
	if err != nil {
		t.Fatal(err)
	}
	if first.moved() {
		t.Error("the process that moved the home has it elsewhere")
	}
	if _, _, ok := Working(dir); !ok {
		t.Error("the workspace is not locked")
	}
	j.Close()
	first.Close()
	second := &Workspace{Dir: dir, Home: early}
	defer second.Close()
	if second.Lock, err = early.Lock(); !second.moved() {
		t.Errorf("the old home is locked, error %v", err)
	}
	second.closeHome()
	if err := second.lockHome(t.Context(), false); err != nil || second.Home.Dir() == early.Dir() {
		t.Errorf("the moved home is not found: %v", err)
	}
}

// Runs are searched up to the top of the repository, or outside of one up to the
// home directory.
func TestFindRoot(t *testing.T) {
	top := crashtest.Workspace(t, nil)
	mkdir := func(path ...string) string {
		dir := filepath.Join(append([]string{top}, path...)...)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	mkdir(".hone")
	shared := mkdir("shared", "dir")
	repo := mkdir("repo")
	below := mkdir("repo", "a", "b")
	home := mkdir("home")
	mkdir("home", ".hone")
	inHome := mkdir("home", "a", "b")
	mkdir("home", "used", ".hone")
	inUsed := mkdir("home", "used", "a")
	mkdir("repo", ".git")
	if err := os.WriteFile(filepath.Join(repo, ".git", "HEAD"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for dir, want := range map[string]string{
		top: top, shared: shared, below: repo, home: home, inHome: home, inUsed: filepath.Dir(inUsed),
	} {
		if got, err := FindRoot(dir); err != nil || got != want {
			t.Errorf("FindRoot(%s) = %s, %v; want %s", dir, got, err, want)
		}
	}
	t.Setenv("HOME", string(filepath.Separator))
	t.Setenv("USERPROFILE", string(filepath.Separator))
	if got, err := FindRoot(shared); err != nil || got != shared {
		t.Errorf("with / as home: %s, %v", got, err)
	}
}
