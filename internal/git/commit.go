package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Commit is what [Repo.Commit] makes.
type Commit struct {
	// Subject is the first line of the message; it must not be empty.
	Subject string
	// Trailers are the lines after it, such as "Hone-Run: X"; nil for none.
	Trailers []string
	// Exclude are paths from the top that are never added, with what lies below
	// them. What the last commit has there stays as it is. Nil excludes nothing.
	Exclude []string
}

// message is the commit's whole message as git stores it.
func (c Commit) message() (string, error) {
	if strings.TrimSpace(c.Subject) != c.Subject || c.Subject == "" {
		return "", fmt.Errorf("%w: %q is not the subject of a commit", fs.ErrInvalid, c.Subject)
	}
	lines := append([]string{c.Subject}, c.Trailers...)
	for _, line := range lines {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) || strings.TrimSpace(line) == "" {
			return "", fmt.Errorf("%w: %q is not a line of a commit message", fs.ErrInvalid, line)
		}
	}
	if len(c.Trailers) == 0 {
		return c.Subject + "\n", nil
	}
	return c.Subject + "\n\n" + strings.Join(c.Trailers, "\n") + "\n", nil
}

// Commit records the work tree on the branch that HEAD names, or on HEAD itself
// where it names none: every file that is tracked or not ignored, deletions
// too, and a commit even where nothing changed (ruling A6). It returns the
// commit's id. Where the last commit's whole message is already this one,
// nothing is made and made is false, so that a resumed run makes it once.
//
// Files of repositories inside are part of it as files; the inner histories are
// not. A submodule that is not filled stays what it was. Links are stored as
// links. A file that cannot be read is an error that names it, and nothing is
// committed. A sparse work tree is refused, as its absent files would be
// deletions; so is a git directory that leads elsewhere, with [ErrUnsound].
//
// The author is the person whom the global or the system's configuration names,
// else hone. No hook, filter or signing program runs.
//
// The commit is built in an index of its own, which then takes the place of the
// usual one, whatever that said. An index.lock that a killed git left behind
// therefore does not matter. A lock of the branch does: one older than a minute
// is taken away, because git holds it for an instant only; a younger one is an
// error whose hint names it. A kill at any moment leaves the old commit or the
// new one. Only one Commit may run in a repository at a time.
func (r *Repo) Commit(ctx context.Context, c Commit) (id string, made bool, err error) {
	message, err := c.message()
	if err != nil {
		return "", false, err
	}
	head, last, err := r.Head(ctx)
	if err != nil {
		return "", false, err
	}
	if head != "" && last == message {
		return head, false, nil
	}
	if err := r.refuseSparse(ctx); err != nil {
		return "", false, err
	}
	tree, err := r.writeTree(ctx, head, c.Exclude)
	if err != nil {
		return "", false, err
	}
	id, err = r.commitTree(ctx, tree, head, message)
	if err != nil {
		return "", false, err
	}
	if err := r.moveHead(ctx, id, head, c.Subject); err != nil {
		return "", false, err
	}
	return id, true, nil
}

// refuseSparse looks for the setting of a work tree that lacks files on purpose.
func (r *Repo) refuseSparse(ctx context.Context) error {
	// Not through own, which switches the setting off.
	out, err := r.run(ctx, call{args: []string{"config", "--bool", "--get", "core.sparseCheckout"}, none: 1})
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(out)) == "true" {
		return fmt.Errorf("%s is a sparse checkout, whose absent files would be committed as deleted: git sparse-checkout disable", r.root)
	}
	return nil
}

// writeTree stores the work tree and leaves the index at it. The index comes
// before the branch, so that whoever is killed in between only has to do both
// again.
func (r *Repo) writeTree(ctx context.Context, head string, exclude []string) (id string, err error) {
	dir, err := r.scratch()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := filepath.Join(dir, "index")
	content, err := r.choose(ctx, index, head, exclude)
	if err != nil {
		return "", err
	}
	off, err := r.filtersOff(ctx)
	if err != nil {
		return "", err
	}
	// Filters are off in every call that has the index: even write-tree reads
	// files again that are as young as it.
	env := append([]string{"GIT_INDEX_FILE=" + index}, off...)
	if err := r.stage(ctx, env, content); err != nil {
		return "", err
	}
	tree, err := r.line(ctx, call{args: []string{"write-tree"}, env: env})
	if err != nil {
		return "", err
	}
	if err := os.Rename(index, filepath.Join(r.dotGit(), "index")); err != nil {
		return "", fmt.Errorf("replace the index: %w", err)
	}
	return tree, nil
}

// commitTree makes the commit, which no branch has yet.
func (r *Repo) commitTree(ctx context.Context, tree, parent, message string) (string, error) {
	who, err := r.identity(ctx)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", "--no-gpg-sign"}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return r.line(ctx, call{args: append(args, tree), env: who, stdin: []byte(message)})
}

// identity is the environment that names author and committer: the person's own
// words, which no repository has a say in, and hone's where name or address is
// missing.
func (r *Repo) identity(ctx context.Context) ([]string, error) {
	out, err := r.own(ctx, call{
		args: []string{"config", "--show-scope", "--null", "--get-regexp", `^user\.(name|email)$`},
		none: 1,
	})
	if err != nil {
		return nil, err
	}
	name, email := personOf(strings.Split(string(out), "\x00"))
	if name == "" || email == "" {
		name, email = "hone", "hone@localhost"
	}
	return []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email,
	}, nil
}

// personOf reads scopes and settings in turn; of several the last counts.
func personOf(fields []string) (name, email string) {
	for i := 0; i+1 < len(fields); i += 2 {
		if scope := fields[i]; scope != "global" && scope != "system" {
			continue
		}
		key, value, _ := strings.Cut(fields[i+1], "\n")
		switch key {
		case "user.name":
			name = strings.TrimSpace(value)
		case "user.email":
			email = strings.TrimSpace(value)
		}
	}
	return name, email
}

// moveHead makes id the last commit, if the last one is still old.
func (r *Repo) moveHead(ctx context.Context, id, old, subject string) error {
	// A git that is killed here would leave its lock behind, and it takes an
	// instant.
	ctx = context.WithoutCancel(ctx)
	update := call{args: []string{"update-ref", "-m", "commit: " + subject, "HEAD", id, old}}
	_, err := r.own(ctx, update)
	if err == nil {
		return nil
	}
	young, removed := r.breakLocks(ctx)
	if removed && young == "" {
		_, err = r.own(ctx, update)
	}
	if failure, ok := errors.AsType[*Error](err); ok && young != "" {
		failure.Hint = "remove " + quote(young) + " if no git program is running"
	}
	return err
}

// lockAge is how old a branch's lock is before nobody can be holding it.
const lockAge = time.Minute

// breakLocks removes the branch's locks that are old, and names one that is not.
func (r *Repo) breakLocks(ctx context.Context) (young string, removed bool) {
	locks := []string{"HEAD.lock", "reftable/tables.list.lock"}
	ref, err := r.line(ctx, call{args: []string{"symbolic-ref", "--quiet", "HEAD"}})
	if err == nil && filepath.IsLocal(ref) && path.Clean(ref) == ref {
		locks = append(locks, ref+".lock")
	}
	for _, name := range locks {
		file := filepath.Join(r.dotGit(), filepath.FromSlash(name))
		info, err := os.Lstat(file)
		switch {
		case err != nil || !info.Mode().IsRegular():
		case time.Since(info.ModTime()) < lockAge:
			young = file
		default:
			removed = os.Remove(file) == nil || removed
		}
	}
	return young, removed
}
