package git

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCommits(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t)
	r := open(t, g, dir)
	if list, err := r.Commits(t.Context(), Refs{}, time.Time{}, time.Now()); list != nil || err != nil {
		t.Errorf("before the first: %v, %v", list, err)
	}
	commit := func(seconds int, subject string) {
		t.Helper()
		t.Setenv("GIT_COMMITTER_DATE", "@"+strconv.Itoa(seconds)+" +0200")
		git(t, dir, "commit", "-q", "--allow-empty", "-m", subject)
	}
	commit(1000, "first")
	commit(2000, "held")
	was, err := r.Refs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commit(2000, "second: of two \x1b[31mé")
	git(t, dir, "checkout", "-q", "-b", "other")
	commit(2001, "beside")
	git(t, dir, "checkout", "-q", "main")
	git(t, dir, "merge", "-q", "--no-ff", "-m", "joined", "other")
	commit(3000, "last")
	for _, c := range []struct {
		name         string
		was          Refs
		since, until int64
		want         []string
	}{
		{"everything", Refs{}, 0, 4000, []string{"first", "held", "second: of two \x1b[31mé", "joined", "last"}},
		{"not what was held", was, 2000, 4000, []string{"second: of two \x1b[31mé", "joined", "last"}},
		{"until", was, 2000, 2500, []string{"second: of two \x1b[31mé", "joined"}},
		{"by time alone", Refs{}, 2000, 2000, []string{"held", "second: of two \x1b[31mé"}},
		{"after all", was, 3001, 4000, nil},
	} {
		list, err := r.Commits(t.Context(), c.was, time.Unix(c.since, 999), time.Unix(c.until, 1))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range list {
			if len(one.ID) != 40 {
				t.Errorf("%s: the id %q", c.name, one.ID)
			}
			got = append(got, one.Subject)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
