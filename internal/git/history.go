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
