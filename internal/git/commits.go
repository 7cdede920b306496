package git

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxCommits is the maximum number of commits that Commits returns.
const MaxCommits = 10_000

// CommitLine is a commit of HEAD. Subject may contain control characters.
type CommitLine struct{ ID, Subject string }

// Commits returns the commits of HEAD that were made between two times, including the
// seconds of both, oldest first, and on a merge's own side only. Of those that the
// repository's names held at the first time, was, none is; the zero value holds none.
func (r *Repo) Commits(ctx context.Context, was Refs, since, until time.Time) (commits []CommitLine, err error) {
	head, err := r.HeadCommit(ctx)
	if err != nil || head == "" {
		return nil, err
	}
	in := head + "\n"
	for _, id := range was.IDs {
		in += "^" + id + "\n"
	}
	out, err := r.runLine(ctx, call{stdin: []byte(in), args: []string{"log", "--stdin", "--ignore-missing", "--first-parent", "--no-show-signature", "--no-patch",
		"--no-notes", "--no-mailmap", "--no-decorate", "--no-color", "--max-count=" + strconv.Itoa(MaxCommits), "--format=tformat:%H %ct %s"}})
	for line := range strings.Lines(out) {
		id, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		seconds, subject, _ := strings.Cut(rest, " ")
		at, failed := strconv.ParseInt(seconds, 10, 64)
		if failed == nil && at >= since.Unix() && at <= until.Unix() {
			const most = 1000
			commits = append(commits, CommitLine{id, subject[:min(len(subject), most)]})
		}
	}
	slices.Reverse(commits)
	return commits, err
}
