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

	"hone/internal/transient"
)

// Init opens the repository whose top is dir, or creates one; a repository
// further up does not count. dir is the absolute path of a directory. A new
// repository has the branch main, no commit, and nothing from a template, so no
// hooks. Init completes a repository whose creation was interrupted. If .git is
// a link or a file, or leads elsewhere in another way, the error is
// [ErrUnsafe].
//
// Each exclude is a line for the repository's own list of ignored files,
// info/exclude. Init adds missing lines; without any it does not touch the
// file.
func (g *Git) Init(ctx context.Context, dir string, exclude ...string) (*Repo, error) {
	root, err := resolveDir(dir)
	if err != nil {
		return nil, err
	}
	r := &Repo{git: g, root: root}
	whole, err := isComplete(r.dotGit())
	if err != nil {
		return nil, err
	}
	if !whole {
		if err := g.makeRepository(ctx, root); err != nil {
			return nil, err
		}
	}
	if err := excludeLines(filepath.Join(r.dotGit(), "info"), exclude); err != nil {
		return nil, fmt.Errorf("set the ignored files of %s: %w", root, err)
	}
	return r, nil
}

func resolveDir(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("create a git repository: %w: %q is not an absolute path", fs.ErrInvalid, dir)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("create a git repository: %w", err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return "", fmt.Errorf("create a git repository: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("create a git repository: %w: %s is not a directory", fs.ErrInvalid, root)
	}
	return root, nil
}

// An existing git directory must pass checkGitDir.
func isComplete(dotGit string) (bool, error) {
	switch err := checkGitDir(dotGit); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	for _, name := range []string{"HEAD", "config", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dotGit, name)); transient.Is(err) {
			return false, err
		} else if err != nil {
			return false, nil
		}
	}
	return true, nil
}

// The environment names no work tree, because git init does not allow that.
func (g *Git) makeRepository(ctx context.Context, root string) error {
	_, err := g.run(ctx, call{
		dir:  root,
		set:  fixedSettings,
		args: []string{"init", "--quiet", "--template=", "--initial-branch=main"},
	})
	return err
}

// The file is replaced, so that a partial pattern is never in it.
func excludeLines(info string, lines []string) error {
	file := filepath.Join(info, "exclude")
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := appendMissing(string(old), lines)
	if err != nil || text == string(old) {
		return err
	}
	if err := os.MkdirAll(info, 0o777); err != nil {
		return err
	}
	fresh := file + ".hone"
	if err := os.WriteFile(fresh, []byte(text), 0o666); err != nil {
		return err
	}
	return os.Rename(fresh, file)
}

func appendMissing(text string, lines []string) (string, error) {
	for _, line := range lines {
		if strings.ContainsAny(line, "\r\n\x00") {
			return "", fmt.Errorf("%w: the pattern %q is not one line", fs.ErrInvalid, line)
		}
		same := func(have string) bool { return strings.TrimRight(have, "\r\n") == line }
		if slices.ContainsFunc(slices.Collect(strings.Lines(text)), same) {
			continue
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += line + "\n"
	}
	return text, nil
}
