package git

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Head returns the last commit's id and complete message. The id is empty if
// there is no commit yet, or if HEAD names none that git can read.
func (r *Repo) Head(ctx context.Context) (id, message string, err error) {
	if err := checkGitDir(r.dotGit()); err != nil {
		return "", "", err
	}
	id, err = r.runLine(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", "HEAD"}, emptyExit: 1})
	if err != nil || id == "" {
		return "", "", err
	}
	messages, err := r.messages(ctx, []string{id})
	if err != nil {
		return "", "", err
	}
	return id, messages[0], nil
}

// FindCommit returns the id and complete message of the newest commit reachable
// from HEAD whose first line is exactly the subject. The id is empty if there
// is none.
func (r *Repo) FindCommit(ctx context.Context, subject string) (id, message string, err error) {
	if _, err := (Commit{Subject: subject}).message(); err != nil {
		return "", "", err
	}
	head, _, err := r.Head(ctx)
	if err != nil || head == "" {
		return "", "", err
	}
	out, err := r.runOwn(ctx, call{args: []string{"rev-list", "--topo-order", "--fixed-strings", "--grep=" + subject, head}})
	if err != nil {
		return "", "", err
	}
	ids := strings.Fields(string(out))
	messages, err := r.messages(ctx, ids)
	if err != nil {
		return "", "", err
	}
	for i, message := range messages {
		if first, _, _ := strings.Cut(message, "\n"); first == subject {
			return ids[i], message, nil
		}
	}
	return "", "", nil
}

// messages returns the message of each commit, byte for byte.
func (r *Repo) messages(ctx context.Context, ids []string) ([]string, error) {
	out, err := r.runOwn(ctx, call{args: []string{"cat-file", "--batch"}, stdin: []byte(strings.Join(ids, "\n"))})
	if err != nil {
		return nil, err
	}
	messages := make([]string, 0, len(ids))
	for _, id := range ids {
		var object []byte
		if object, out, err = nextCommit(out); err != nil {
			return nil, fmt.Errorf("read commit %s: %w", id, err)
		}
		_, message, _ := bytes.Cut(object, []byte("\n\n"))
		messages = append(messages, string(message))
	}
	return messages, nil
}

// nextCommit reads one answer of cat-file, "ID commit SIZE", the object and a
// newline, and returns what follows it.
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
