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
	out, err := r.catFile(ctx, "HEAD")
	if err != nil || string(out) == "HEAD missing\n" {
		return "", "", err
	}
	id, _, _ = strings.Cut(string(out), " ")
	message, _, err = nextMessage(out)
	if err != nil {
		return "", "", fmt.Errorf("read HEAD: %w", err)
	}
	return id, message, nil
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

// ChangesNothing reports whether a commit has the same files as its parent; the first
// commit, whether it has none.
func (r *Repo) ChangesNothing(ctx context.Context, id string) (bool, error) {
	out, err := r.runOwn(ctx, call{args: []string{"cat-file", "--batch-check"}, stdin: []byte(id + "^{tree}\n" + id + "^^{tree}\n")})
	if err != nil {
		return false, err
	}
	tree, parent, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if strings.HasSuffix(parent, " missing") {
		return strings.HasSuffix(tree, " tree 0"), nil
	}
	return tree == parent, nil
}

// messages returns the message of each commit, byte for byte.
func (r *Repo) messages(ctx context.Context, ids []string) ([]string, error) {
	out, err := r.catFile(ctx, ids...)
	if err != nil {
		return nil, err
	}
	messages := make([]string, 0, len(ids))
	for _, id := range ids {
		var message string
		if message, out, err = nextMessage(out); err != nil {
			return nil, fmt.Errorf("read commit %s: %w", id, err)
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// catFile returns git's answers about the objects of several names.
func (r *Repo) catFile(ctx context.Context, names ...string) ([]byte, error) {
	return r.runOwn(ctx, call{args: []string{"cat-file", "--batch"}, stdin: []byte(strings.Join(names, "\n"))})
}

// nextMessage returns the message of the commit in one answer, and what follows it.
func nextMessage(out []byte) (message string, rest []byte, err error) {
	object, rest, err := nextCommit(out)
	_, text, _ := bytes.Cut(object, []byte("\n\n"))
	return string(text), rest, err
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
