package git

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each row is what a command may do to a repository. The commands that Lost names undo it.
func TestLost(t *testing.T) {
	g := isolatedGit(t)
	for _, c := range []struct {
		do   []string // git's arguments, a line each
		want []string // with X for each id
	}{
		{do: nil},
		{do: []string{"commit -qam three"}},
		{do: []string{"branch another", "tag v2", "branch -f behind main"}},
		{do: []string{"branch -D feature"}, want: []string{"git: the branch feature is gone; to bring it back: git branch feature X"}},
		{do: []string{"branch -D odd$name"}, want: []string{"git: the branch odd$name is gone; to bring it back: git branch 'odd$name' X"}},
		{do: []string{"branch -m feature renamed"}, want: []string{"git: the branch feature is gone; to bring it back: git branch feature X"}},
		{do: []string{"reset -q --soft HEAD~1"}, want: []string{"git: the branch main no longer contains X; to keep that: git branch main-before X"}},
		{do: []string{"commit -q --amend -m other"}, want: []string{"git: the branch main no longer contains X; to keep that: git branch main-before X"}},
		{do: []string{"tag -d v1"}, want: []string{"git: the tag v1 is gone; to bring it back: git tag v1 X"}},
		{do: []string{"tag -f v1 HEAD~1"}, want: []string{"git: the tag v1 was moved; to move it back: git tag -f v1 X"}},
		{do: []string{"stash drop -q stash@{1}"}, want: []string{"git: a stash is gone; to keep it for git stash apply: git branch stash-X X"}},
		{do: []string{"reflog expire --expire=now --all"}, want: []string{"git: a stash is gone; to keep it for git stash apply: git branch stash-X X", "git: a stash is gone; to keep it for git stash apply: git branch stash-X X"}},
		{do: []string{"switch -q feature"}, want: []string{"git: HEAD is no longer on the branch main; to go back: git switch main"}},
		{do: []string{"checkout -q --detach", "branch -D main"}, want: []string{"git: the branch main is gone; to bring it back: git branch main X"}},
	} {
		t.Run(strings.Join(c.do, ", "), func(t *testing.T) {
			dir := repository(t, "f", "1")
			git(t, dir, "branch", "behind")
			write(t, dir, "f", "2")
			git(t, dir, "commit", "-qam", "two")
			for _, args := range []string{"branch feature", "branch odd$name", "tag v1"} {
				git(t, dir, strings.Fields(args)...)
			}
			for _, text := range []string{"first", "second"} {
				write(t, dir, "f", text)
				git(t, dir, "stash", "-q")
			}
			write(t, dir, "f", "3")
			r := open(t, g, dir)
			was, err := r.Refs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range c.do {
				git(t, dir, strings.Fields(args)...)
			}
			lines, err := r.Lost(t.Context(), was)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range lines {
				got = append(got, regexp.MustCompile(`[0-9a-f]{12}`).ReplaceAllString(line, "X"))
				_, command, _ := strings.Cut(line, ": git ")
				git(t, dir, strings.Fields(strings.ReplaceAll(command, "'", ""))...)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
			for name, id := range was.IDs {
				if held := strings.Fields(git(t, dir, "for-each-ref", "--contains", id, "--format=%(refname)")); len(held) == 0 {
					t.Errorf("nothing holds %s, which was at %s", id, name)
				}
			}
			git(t, dir, "gc", "-q", "--prune=now")
			for _, id := range was.Stash {
				git(t, dir, "cat-file", "-e", id)
			}
		})
	}
}

// Without commits or with very many names nothing is known, and nothing is lost.
func TestUnknownRefs(t *testing.T) {
	g := isolatedGit(t)
	r := open(t, g, repository(t))
	was, err := r.Refs(t.Context())
	if err != nil || len(was.IDs) > 0 {
		t.Fatalf("%v, %v", was, err)
	}
	if lines, err := r.Lost(t.Context(), Refs{}); err != nil || lines != nil {
		t.Fatalf("%v, %v", lines, err)
	}
}
