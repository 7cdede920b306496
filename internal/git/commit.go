package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Commit describes a commit for [Repo.Commit].
type Commit struct {
	// Subject is the first line of the message. It must not be empty.
	Subject string
	// Trailers are the lines after it, such as "Hone-Run: X". May be nil.
	Trailers []string
	// Exclude are paths from the top that are never added, including everything
	// below them. They keep their state of the last commit. Nil excludes
	// nothing.
	Exclude []string
	// MaxFile is the size in bytes of the largest file that is added; 0 means no limit.
	// Larger ones keep their state of the last commit.
	MaxFile int64
}

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

// Committed is the commit that [Repo.Commit] made, or that was already made.
type Committed struct {
	ID      string
	Made    bool // false if the last commit already had exactly this message
	Changed bool // its files differ from those of its parent; in the first commit, it has files
	// TooLarge are the files that exceed MaxFile; nil unless this call made the commit.
	TooLarge []string
}

// Commit records the work tree on the branch that HEAD names, or on a detached
// HEAD: every file that is tracked or not ignored, and deletions. It makes a
// commit even if nothing changed (ruling A6). If the last commit already has
// exactly this message, Commit makes none, so that a resumed run makes it once.
//
// Files of nested repositories are included as files, without their histories.
// A submodule that is not checked out keeps its state. Links are stored as
// links. A file that cannot be read is an error that names it, and nothing is
// committed. Commit refuses a sparse work tree, whose absent files would be
// deleted, and a git directory that leads elsewhere, with [ErrUnsafe].
//
// The author is the user named in the global or system configuration, or else
// hone. No hook, filter or signing program runs.
//
// Commit builds the tree in a separate index, which then replaces the usual
// one, whatever that contained. So an index.lock that a killed git left does
// not matter. A lock of the branch does: git's error names it. A kill at any
// moment leaves the old commit or the new one. Only one Commit may run in a repository at a time.
func (r *Repo) Commit(ctx context.Context, c Commit) (made Committed, err error) {
	message, err := c.message()
	if err != nil {
		return made, err
	}
	last, err := r.last(ctx)
	if err != nil {
		return made, err
	}
	if last.id != "" && last.message == message {
		made.ID = last.id
		made.Changed, err = r.changed(ctx, last.id)
		return made, err
	}
	config, err := r.commitConfig(ctx)
	if err != nil {
		return made, err
	}
	if config.sparse {
		return made, fmt.Errorf("%s is a sparse checkout, whose absent files would be committed as deleted; run: git sparse-checkout disable", r.root)
	}
	tree, large, err := r.writeTree(ctx, last.id, config.filtersOff, c)
	if err != nil {
		return made, err
	}
	args := []string{"commit-tree", "--no-gpg-sign"}
	if last.id != "" {
		args = append(args, "-p", last.id)
	}
	id, err := r.runLine(ctx, call{args: append(args, tree), env: config.identity(), stdin: []byte(message)})
	if err != nil {
		return made, err
	}
	// HEAD moves only if the last commit is still the same. A git killed here would leave its lock behind, and the call takes
	// only an instant.
	if _, err := r.runOwn(context.WithoutCancel(ctx), call{args: []string{"update-ref", "-m", "commit: " + c.Subject, "HEAD", id, last.id}}); err != nil {
		return made, err
	}
	changed := tree != last.tree
	if last.id == "" {
		changed = !isObject(tree, "tree", nil)
	}
	return Committed{ID: id, Made: true, Changed: changed, TooLarge: large}, nil
}

type commitConfig struct {
	sparse      bool   // the work tree intentionally lacks files
	name, email string // the user's, which no repository can set; empty if there is none
	filtersOff  []string
}

func (r *Repo) commitConfig(ctx context.Context) (c commitConfig, err error) {
	out, err := r.run(ctx, call{ // not with runOwn, which disables core.sparseCheckout
		args:      []string{"config", "--show-scope", "--null", "--get-regexp", `^(core\.sparsecheckout|user\.(name|email)|` + filterKeys + `)$`},
		env:       configEnv([]string{probeKey, "1"}),
		emptyExit: 1,
	})
	if err != nil {
		return c, err
	}
	var keys []string
	fields := strings.Split(string(out), "\x00") // a scope and a setting in turn; the last of several wins
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, valued := strings.Cut(fields[i+1], "\n")
		keys = append(keys, key)
		c.read(fields[i], key, strings.TrimSpace(value), valued)
	}
	c.filtersOff, err = filtersOff(keys)
	return c, err
}

// A setting without a value is true.
func (c *commitConfig) read(scope, key, value string, valued bool) {
	trusted := scope == "global" || scope == "system"
	switch {
	case key == "core.sparsecheckout":
		c.sparse = !valued || !slices.Contains([]string{"false", "no", "off", "0", ""}, strings.ToLower(value))
	case key == "user.name" && trusted:
		c.name = value
	case key == "user.email" && trusted:
		c.email = value
	}
}

func (c commitConfig) identity() []string {
	name, email := c.name, c.email
	if name == "" || email == "" {
		name, email = "hone", "hone@localhost"
	}
	return []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email,
	}
}

// The index is updated before the branch moves, so that after a kill in between both steps are repeated. large are the files
// that are too large.
func (r *Repo) writeTree(ctx context.Context, head string, filtersOff []string, c Commit) (id string, large []string, err error) {
	dir := filepath.Join(r.dotGit(), "hone-index") // where no other git locks an index
	err = os.RemoveAll(dir)                        // what a killed hone left
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return "", nil, fmt.Errorf("create a directory for the index: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := filepath.Join(dir, "index")
	content, err := r.selectContent(ctx, index, head, c)
	if err != nil {
		return "", nil, err
	}
	// Filters are off in every call with this index, because even write-tree
	// reads files again that are as new as the index.
	env := append([]string{"GIT_INDEX_FILE=" + index}, filtersOff...)
	if err := r.stage(ctx, env, content); err != nil {
		return "", nil, err
	}
	tree, err := r.runLine(ctx, call{args: []string{"write-tree"}, env: env})
	if err != nil {
		return "", nil, err
	}
	if err := os.Rename(index, filepath.Join(r.dotGit(), "index")); err != nil {
		return "", nil, fmt.Errorf("replace the index: %w", err)
	}
	return tree, content.large, nil
}
