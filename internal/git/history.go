package git

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Head is the last commit's id and its whole message. An empty id means that
// there is no commit yet, or that HEAD names none that git can read.
func (r *Repo) Head(ctx context.Context) (id, message string, err error) {
	if err := sound(r.dotGit()); err != nil {
		return "", "", err
	}
	id, err = r.line(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", "HEAD"}, none: 1})
	if err != nil || id == "" {
		return "", "", err
	}
	messages, err := r.messages(ctx, []string{id})
	if err != nil {
		return "", "", err
	}
	return id, messages[0], nil
}

// Find is the newest commit reachable from HEAD whose message begins with a
// line that is exactly the subject, and the whole of its message. An empty id
// means that there is none.
func (r *Repo) Find(ctx context.Context, subject string) (id, message string, err error) {
	if _, err := (Commit{Subject: subject}).message(); err != nil {
		return "", "", err
	}
	head, _, err := r.Head(ctx)
	if err != nil || head == "" {
		return "", "", err
	}
	out, err := r.own(ctx, call{args: []string{"rev-list", "--topo-order", "--fixed-strings", "--grep=" + subject, head}})
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

// messages is the message of each commit, byte for byte.
func (r *Repo) messages(ctx context.Context, ids []string) ([]string, error) {
	out, err := r.own(ctx, call{args: []string{"cat-file", "--batch"}, stdin: []byte(strings.Join(ids, "\n"))})
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

// nextCommit reads one answer of cat-file, "ID commit SIZE", the object, and a
// line's end, and returns what follows it.
func nextCommit(out []byte) (object, rest []byte, err error) {
	head, rest, _ := bytes.Cut(out, []byte{'\n'})
	fields := strings.Fields(string(head))
	if len(fields) != 3 || fields[1] != "commit" {
		return nil, nil, fmt.Errorf("git says %q", oneLine(string(head)))
	}
	size, err := strconv.Atoi(fields[2])
	if err != nil || size < 0 || size >= len(rest) {
		return nil, nil, fmt.Errorf("git says that it has %q bytes, and sends %d", fields[2], len(rest))
	}
	return rest[:size], rest[size+1:], nil
}
