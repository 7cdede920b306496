package git

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Head returns the last commit's id and complete message. The id is empty if
// there is no commit yet, or if HEAD names none that git can read.
func (r *Repo) Head(ctx context.Context) (id, message string, err error) {
	last, err := r.last(ctx)
	return last.id, last.message, err
}

// lastCommit is the commit that HEAD names; the zero value if it names none.
type lastCommit struct{ id, tree, message string }

func (r *Repo) last(ctx context.Context) (lastCommit, error) {
	if err := checkGitDir(r.dotGit()); err != nil {
		return lastCommit{}, err
	}
	out, err := r.catFile(ctx, "HEAD")
	if err != nil || string(out) == "HEAD missing\n" {
		return lastCommit{}, err
	}
	id, _, _ := strings.Cut(string(out), " ")
	object, _, err := nextCommit(out)
	if err != nil {
		return lastCommit{}, fmt.Errorf("read HEAD: %w", err)
	}
	first, _, _ := strings.Cut(string(object), "\n")
	return lastCommit{id, strings.TrimPrefix(first, "tree "), messageOf(object)}, nil
}

// FindCommit returns the id and complete message of the newest commit reachable
// from HEAD whose first line is exactly the subject. The id is empty if there
// is none.
func (r *Repo) FindCommit(ctx context.Context, subject string) (id, message string, err error) {
	if _, err := (Commit{Subject: subject}).message(); err != nil {
		return "", "", err
	}
	last, err := r.last(ctx)
	if err != nil || last.id == "" || isSubject(subject, last.message) {
		return last.id, last.message, err
	}
	out, err := r.runOwn(ctx, call{args: []string{"rev-list", "--topo-order", "--fixed-strings", "--grep=" + subject, last.id}})
	ids := strings.Fields(string(out))
	if err != nil || len(ids) == 0 {
		return "", "", err
	}
	messages, err := r.messages(ctx, ids)
	if err != nil {
		return "", "", err
	}
	for i, message := range messages {
		if isSubject(subject, message) {
			return ids[i], message, nil
		}
	}
	return "", "", nil
}

func isSubject(text, message string) bool {
	first, _, _ := strings.Cut(message, "\n")
	return first == text
}

func (r *Repo) changed(ctx context.Context, id string) (bool, error) {
	out, err := r.runOwn(ctx, call{args: []string{"cat-file", "--batch-check"}, stdin: []byte(id + "^{tree}\n" + id + "^^{tree}\n")})
	if err != nil {
		return false, err
	}
	tree, parent, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if strings.HasSuffix(parent, " missing") {
		return !strings.HasSuffix(tree, " tree 0"), nil
	}
	return tree != parent, nil
}

func (r *Repo) messages(ctx context.Context, ids []string) ([]string, error) {
	out, err := r.catFile(ctx, ids...)
	if err != nil {
		return nil, err
	}
	messages := make([]string, 0, len(ids))
	for _, id := range ids {
		var object []byte
		if object, out, err = nextCommit(out); err != nil {
			return nil, fmt.Errorf("read commit %s: %w", id, err)
		}
		messages = append(messages, messageOf(object))
	}
	return messages, nil
}

func (r *Repo) catFile(ctx context.Context, names ...string) ([]byte, error) {
	return r.runOwn(ctx, call{args: []string{"cat-file", "--batch"}, stdin: []byte(strings.Join(names, "\n"))})
}

func messageOf(object []byte) string {
	_, text, _ := bytes.Cut(object, []byte("\n\n"))
	return string(text)
}

// An answer of cat-file is "ID commit SIZE", the object and a newline.
func nextCommit(out []byte) (object, rest []byte, err error) {
	head, rest, _ := bytes.Cut(out, []byte{'\n'})
	fields := strings.Fields(string(head))
	if len(fields) != 3 || fields[1] != "commit" {
		return nil, nil, fmt.Errorf("unexpected output of git: %q", oneLine(string(head)))
	}
	size, err := strconv.Atoi(fields[2])
	if err != nil || size < 0 || size >= len(rest) {
		return nil, nil, fmt.Errorf("git announced %q bytes but sent %d", fields[2], len(rest))
	}
	return rest[:size], rest[size+1:], nil
}

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
