package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"hone/sandbox"
)

// ForeignError says that git refuses a repository because another user owns it,
// and that no safe.directory setting of the user allows it.
type ForeignError struct {
	Dir    string // the top of the work tree
	Advice string // git's own: the command that allows the repository
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("git detected dubious ownership in repository at %s: another user could have planted it", e.Dir)
}

// Root is [Top], but the error is a [*ForeignError] if git refuses the repository
// because another user owns it. Only if another user does, and a safe.directory
// setting may allow it, does Root start a process. dir is the tree of [Find].
func Root(dir string) (string, error) {
	return rootBy(dir, func() (*Git, error) { return Find(dir) })
}

func rootBy(dir string, find func() (*Git, error)) (string, error) {
	top, err := Top(dir)
	if err != nil || isOwn(top) {
		return top, err
	}
	g, err := find()
	if err != nil {
		return "", err
	}
	// Git repeats the check in each call, but what is read without git depends on this one.
	_, err = (&Repo{git: g, root: top}).run(context.Background(), call{args: []string{"rev-parse", "--git-dir"}})
	if failure, ok := errors.AsType[*Error](err); ok && strings.HasPrefix(failure.Hint, safeDirectory) {
		return "", &ForeignError{Dir: top, Advice: failure.Hint}
	}
	return top, nil // the next call of git reports any other error
}

// safeDirectory starts git's advice about a repository of another user.
const safeDirectory = "git config --global --add safe.directory "

func isOwn(top string) bool {
	dotGit := filepath.Join(top, ".git")
	if !ownedByUser(top) || !ownedByUser(dotGit) {
		return false
	}
	f, err := os.Open(dotGit)
	if err != nil {
		return false
	}
	defer f.Close()
	pointer, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return true // a directory
	}
	dir := strings.TrimSpace(strings.TrimPrefix(string(pointer), "gitdir:"))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(top, dir)
	}
	return ownedByUser(dir)
}

// A symbolic link counts itself. Where files belong to no numbers, hone leaves the question to git.
func ownedByUser(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	uid, ok := sandbox.FileOwner(info)
	return !ok || uid == os.Geteuid()
}
