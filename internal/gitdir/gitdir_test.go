package gitdir

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSettings(t *testing.T) {
	text := "[Core] hooksPath = a # comment\n\tattributesFile=\"b ;\" ; x\n[include]path=c\\\n d \n" +
		"[includeIf \"x]\\\"\"]\nPath = \"\\\\e\\\"\"\n; path = f\n# not continued \\\n\tshown = 1\r\n[a.B]\nc\n[d]e=\"f\"g  h\\t\n"
	want := []Setting{
		{"core", "", "hookspath", "a"}, {"core", "", "attributesfile", "b ;"}, {"include", "", "path", "c d"},
		{"includeif", `x]"`, "path", `\e"`}, {"includeif", `x]"`, "shown", "1"}, {"a", "b", "c", ""}, {"d", "", "e", "fg  h\t"},
	}
	got, ok := Settings("\ufeff" + text)
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Error(ok, diff)
	}
	for _, bad := range []string{"[a\n", "[a] 1 = 2\n", "[a] b c = 1\n", "[a] b # = 1\n", "[a \"b\n\"]\n", "[a] b = \"c\n", "[a] b = \\x\n", "[a b]\n"} {
		if got, ok := Settings(bad); ok {
			t.Errorf("%q is read: %+v", bad, got)
		}
	}
}

// TestSettingsLikeGit compares with git what a file sets.
func TestSettingsLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED: no git")
	}
	for _, text := range []string{
		"[a]\nb=c", "[a \"d\"] b = \"c;\" ; e\nx\n", "[a.b]\n# \\\nc=\\\n d\n", "\ufeff[a]b=\"\\t\"\r\n", "[a]\nb = c \\\n d\n", "[a]b=\"c # d\"#e\\\nf=g\n",
		"[a]\nb=c\\\r\nd\n", "[a]\n\tb\n[c] d=\n", "[a]\nb=\fc\vd  \n", "[a]\nb=c\"d e\"  f\n", "[a]\nb=\\\"c\n", "[a]\nB-1=c\n", "[a]\n;\\\nb=c\n", "[a] b=c[d]\n",
		"[a \"x\\y\"]b=c", "[a]\nb=c\r", "[a]\rb=c\n", "[ a]b=c\n", "[a ]b=c\n", "[a]b=\"c\\\nd\"\n", "b=c\n", "[]b=c\n", "[a\"x\"]b=c\n", "[a]b_c=d\n",
	} {
		got, ok := Settings(text)
		var have []string
		for _, s := range got {
			have = append(have, s.Name+"="+s.Value)
		}
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(git, "config", "--file", file, "--null", "--list").Output()
		if err != nil {
			continue // what git refuses may be read
		}
		var want []string
		for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if key, value, _ := strings.Cut(entry, "\n"); entry != "" {
				want = append(want, key[strings.LastIndex(key, ".")+1:]+"="+value)
			}
		}
		if diff := cmp.Diff(want, have); ok && diff != "" {
			t.Errorf("%q\n%s", text, diff)
		}
		if !ok {
			t.Logf("%q is not read, but git reads it", text)
		}
	}
}

// TestIs compares with git what makes a directory a repository.
func TestIs(t *testing.T) {
	for name, make := range map[string]string{
		"a branch":                 "echo 'ref: refs/heads/x' >HEAD; mkdir objects refs",
		"a branch without a space": "echo 'ref:refs/heads/x' >HEAD; mkdir objects refs",
		"a commit":                 "echo 0123456789012345678901234567890123456789 >HEAD; mkdir objects refs",
		"a symlink":                "ln -s refs/heads/x HEAD; mkdir objects refs",
		"another symlink":          "echo 'ref: refs/heads/x' >x; ln -s x HEAD; mkdir objects refs",
		"nothing in HEAD":          ": >HEAD; mkdir objects refs",
		"no objects":               "echo 'ref: refs/heads/x' >HEAD; mkdir refs",
		"no refs":                  "echo 'ref: refs/heads/x' >HEAD; mkdir objects",
		"linked objects":           "echo 'ref: refs/heads/x' >HEAD; mkdir refs a; ln -s a objects",
		"commondir":                "echo 'ref: refs/heads/x' >HEAD; echo ../lib >commondir; mkdir -p ../lib/objects ../lib/refs",
		"commondir without refs":   "echo 'ref: refs/heads/x' >HEAD; echo ../bad >commondir; mkdir -p ../bad/objects objects refs",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			run(t, dir, make)
			cmd := exec.Command("git", "rev-parse", "--git-dir")
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1", "HOME=" + dir}
			_, err := cmd.Output()
			if got := Is(dir); got != (err == nil) {
				t.Errorf("git finds a repository: %t; Is: %t", err == nil, got)
			}
		})
	}
}

// run runs a shell script in a directory, with git for it alone.
func run(t *testing.T, dir, script string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: no git")
	}
	cmd := exec.Command("sh", "-e", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e", "GIT_COMMITTER_NAME=n",
		"GIT_COMMITTER_EMAIL=e", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
}

// TestSettle checks what stays of what commands make, and what is taken away.
func TestSettle(t *testing.T) {
	const docs = "mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/x' >docs/HEAD; "
	evil := "printf '[core]\\n\\tfsmonitor = touch /tmp/hone-was-here\\n' >>"
	for name, test := range map[string]struct {
		make        string
		stays, goes []string
	}{
		"a clone":                   {make: "git clone -q known build/x", stays: []string{"build/x/.git"}},
		"a partial sparse clone":    {make: "git clone -q --sparse --filter=blob:none -c advice.detachedHead=false file://$PWD/known x", stays: []string{"x/.git"}},
		"a bare clone":              {make: "git clone -q --bare known x.git", stays: []string{"x.git"}},
		"a worktree":                {make: "git -C known worktree add -q ../w", stays: []string{"known/.git/worktrees/w", "w/.git"}},
		"a submodule":               {make: "git init -q x; cd x; git submodule --quiet add file://$PWD/../known sub", stays: []string{"x/.git", "x/.git/modules/sub", "x/sub/.git"}},
		"settings":                  {make: "git init -q x; " + evil + "x/.git/config", goes: []string{"x/.git"}},
		"settings after a comment":  {make: "git init -q x; printf '[core]\\n# \\\\\\n\\tfsmonitor = x\\n' >x/.git/config", goes: []string{"x/.git"}},
		"many settings":             {make: "git init -q x; head -c 5000000 /dev/zero | tr '\\0' '\\n' >>x/.git/config; " + evil + "x/.git/config", goes: []string{"x/.git"}},
		"settings by symlink":       {make: "git init -q x; mv x/.git/config x/c; ln -s ../c x/.git/config; " + evil + "x/c", goes: []string{"x/.git"}},
		"settings of worktrees":     {make: "git init -q x; git -C x config extensions.worktreeConfig true; " + evil + "x/.git/config.worktree", goes: []string{"x/.git"}},
		"an include":                {make: "git init -q x; git -C x config include.path ../y", goes: []string{"x/.git"}},
		"a hook":                    {make: "git init -q x; mkdir -p x/.git/hooks; echo >x/.git/hooks/pre-commit; chmod +x x/.git/hooks/pre-commit", goes: []string{"x/.git"}},
		"hooks by symlink":          {make: "git init -q x; rm -rf x/.git/hooks; mkdir x/h; echo >x/h/pre-commit; ln -s ../h x/.git/hooks", goes: []string{"x/.git"}},
		"a bare directory":          {make: docs + evil + "docs/config", goes: []string{"docs"}},
		"commondir":                 {make: "mkdir -p docs lib/objects lib/refs; echo 'ref: refs/heads/x' >docs/HEAD; echo ../lib >docs/commondir; " + evil + "lib/config", goes: []string{"docs"}},
		"commondir elsewhere":       {make: "git init -q ../out; mkdir docs; echo 'ref: refs/heads/x' >docs/HEAD; echo ../../out/.git >docs/commondir", goes: []string{"docs"}},
		"a .git file":               {make: docs + evil + "docs/config; mkdir y; echo 'gitdir: ../docs' >y/.git", goes: []string{"docs", "y/.git"}},
		"a .git file to elsewhere":  {make: "git init -q ../out; mkdir y; echo \"gitdir: $PWD/../out/.git\" >y/.git", goes: []string{"y/.git"}},
		"a .git symlink":            {make: "git init -q ../out; mkdir y; ln -s $PWD/../out/.git y/.git", goes: []string{"y/.git"}},
		"within git's directory":    {make: "git init -q x; cd x/.git; " + docs + evil + "docs/config", stays: []string{"x/.git"}, goes: []string{"x/.git/docs"}},
		"below an unreadable one":   {make: "git init -q x; " + evil + "x/.git/config; chmod 0 x/.git/config", goes: []string{"x/.git"}},
		"a nested one in each":      {make: "git init -q x; git init -q x/y; " + evil + "x/.git/config; " + evil + "x/y/.git/config", goes: []string{"x/.git", "x/y/.git"}},
		"a worktree of its own":     {make: "git init -q x; git -C x config core.worktree ..", goes: []string{"x/.git"}},
		"nothing that git takes":    {make: "mkdir -p docs/objects docs/refs .git2; echo no >docs/HEAD; echo x >x"},
		"an edit of a loose one":    {make: evil + "loose/.git/config", goes: []string{"loose/.git"}},
		"an upload program, a vcs":  {make: "git init -q x; git -C x config remote.o.uploadpack evil", goes: []string{"x/.git"}},
		"hooks of later":            {make: "git init -q x; rm -rf x/.git/hooks; mkdir x/h; ln -s ../h x/.git/hooks", goes: []string{"x/.git"}},
		"commondir, plain":          {make: "mkdir -p docs lib/objects lib/refs; echo 'ref: refs/heads/x' >docs/HEAD; echo ../lib >docs/commondir", goes: []string{"docs"}},
		"a .git file to objects":    {make: "git init -q x; mv x/.git known/.git/objects/x; echo 'gitdir: ../known/.git/objects/x' >x/.git", goes: []string{"x/.git"}},
		"a worktree with own hooks": {make: "git -C known config core.hooksPath h; git -C known worktree add -q ../w", goes: []string{"known/.git/worktrees/w", "w/.git"}},
		"a link to known settings":  {make: "git -C known config core.hooksPath h; mkdir y; echo 'gitdir: ../known/.git' >y/.git", goes: []string{"y/.git"}},
		"a worktree, two dots":      {make: "git -C known worktree add -q -b w ../..w", stays: []string{"..w/.git", "known/.git/worktrees/-w"}},
		"symlinks in a known one":   {make: "ln -s /nowhere known/.git/FETCH_HEAD; ln -sf /nowhere known/.git/logs/HEAD", goes: []string{"known/.git/FETCH_HEAD", "known/.git/logs/HEAD"}},
		"a directory elsewhere":     {make: "mv known/.git/logs logs; ln -s ../../logs known/.git/logs", goes: []string{"known/.git/logs"}},
		"a symlink in a new one":    {make: "git init -q x; ln -s /nowhere x/.git/index", goes: []string{"x/.git"}},
		"no place aside":            {make: "ln -s /nowhere .hone; git init -q x; " + evil + "x/.git/config", goes: []string{"x/.git"}},
		"no place aside, deeper":    {make: "mkdir .hone; echo >.hone/aside; chmod 500 .hone; git init -q x; " + evil + "x/.git/config", goes: []string{"x/.git"}},
		"a submodule's own command": {make: "git init -q x; git -C x config submodule.s.update '!evil'", goes: []string{"x/.git"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "tree")
			if err := os.Mkdir(root, 0o700); err != nil {
				t.Fatal(err)
			}
			root, _ = filepath.EvalSymlinks(root)
			run(t, root, "git init -q known; git -C known config core.fsmonitor false; git -C known config uploadpack.allowFilter true; git -C known commit -q --allow-empty -m x; git init -q loose")
			var unlinked []string
			w, err := NewWatch(t.Context(), root, root, func(paths []string) []string { return paths }, func(_ context.Context, dir string) error {
				unlinked = append(unlinked, dir)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{filepath.Join(root, "known", ".git")}; !slices.Equal(want, w.Known()) {
				t.Errorf("%q are known", w.Known())
			}
			aside := t.TempDir()
			if err := w.Save(aside); err != nil {
				t.Fatal(err)
			}
			run(t, root, test.make)
			moved, err := w.Settle(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var stays, goes []string
			for _, m := range moved {
				rel, _ := filepath.Rel(root, m.Path)
				if m.To == "" {
					stays = append(stays, rel)
				} else if goes = append(goes, rel); !isLink(m.To) && (Is(m.To) || !exists(m.To)) {
					t.Errorf("%s: %s", m.Path, m.To)
				}
			}
			if diff := cmp.Diff([][]string{test.stays, test.goes}, [][]string{stays, goes}); diff != "" {
				t.Error(diff, moved)
			}
			again, err := w.Settle(t.Context())
			if len(again) > 0 || err != nil {
				t.Error(again, err)
			}
			if recovered, err := Recover(t.Context(), aside, nil); len(recovered) > 0 || err != nil {
				t.Error(recovered, err)
			}
		})
	}
}

func isLink(path string) bool {
	_, err := os.Readlink(path)
	return err == nil
}

// TestRecover settles what a killed process left.
func TestRecover(t *testing.T) {
	root, _ := filepath.EvalSymlinks(t.TempDir())
	none := func([]string) []string { return nil }
	unlink := func(context.Context, string) error { return nil }
	run(t, root, "git init -q mine; git -C mine config core.fsmonitor mine")
	w, err := NewWatch(t.Context(), root, root, none, unlink)
	if err != nil {
		t.Fatal(err)
	}
	aside := t.TempDir()
	if err := w.Save(aside); err != nil {
		t.Fatal(err)
	}
	run(t, root, "git init -q x; git -C x config core.fsmonitor evil")
	moved, err := Recover(t.Context(), aside, unlink)
	if err != nil || len(moved) != 1 || moved[0].Path != filepath.Join(root, "x", ".git") || !strings.Contains(moved[0].Why, "core.fsmonitor") {
		t.Errorf("%+v, %v", moved, err)
	}
	if moved, err := Recover(t.Context(), aside, unlink); len(moved) > 0 || err != nil {
		t.Error(moved, err)
	}
	if found, err := (&finder{root: root}).find(t.Context()); err != nil || !slices.Equal(found, []string{filepath.Join("mine", ".git")}) {
		t.Error(found, err)
	}
}

// BenchmarkFind searches a tree of 5000 directories, the second time with what the first
// has found.
func BenchmarkFind(b *testing.B) {
	root := b.TempDir()
	for i := range 5000 {
		dir := filepath.Join(root, "a", strings.Repeat("b", i%50+1), strings.Repeat("c", i/50+1))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	time.Sleep(settled)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if _, err := (&finder{root: root}).find(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		f := finder{root: root}
		if _, err := f.find(b.Context()); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := f.find(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
