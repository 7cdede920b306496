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
)

// Init opens the repository whose top is dir, and makes it where dir has none
// of its own; a repository further up does not count. dir is an absolute path of
// a directory. A new repository has the branch main, no commit, and nothing of
// any template: no hooks. Where making one was interrupted, it is completed. A
// .git that is a link or a file, or that leads elsewhere in another way, is
// refused with [ErrUnsound].
//
// Each exclude is a line of the repository's own list of ignored files,
// info/exclude, which gets those that it lacks; without any it is not touched.
func (g *Git) Init(ctx context.Context, dir string, exclude ...string) (*Repo, error) {
	root, err := topFor(dir)
	if err != nil {
		return nil, err
	}
	r := &Repo{git: g, root: root}
	whole, err := isWhole(r.dotGit())
	if err != nil {
		return nil, err
	}
	if !whole {
		if err := g.makeRepository(ctx, root); err != nil {
			return nil, err
		}
	}
	if err := excludeLines(filepath.Join(r.dotGit(), "info"), exclude); err != nil {
		return nil, fmt.Errorf("say what %s ignores: %w", root, err)
	}
	return r, nil
}

// topFor is dir without symbolic links.
func topFor(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("make a git repository: %w: %q is not an absolute path", fs.ErrInvalid, dir)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("make a git repository: %w", err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return "", fmt.Errorf("make a git repository: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("make a git repository: %w: %s is not a directory", fs.ErrInvalid, root)
	}
	return root, nil
}

// isWhole reports whether a git directory is there and has all that git asks of
// one. What is there must be sound.
func isWhole(dotGit string) (bool, error) {
	switch err := sound(dotGit); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	for _, name := range []string{"HEAD", "config", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dotGit, name)); err != nil {
			return false, nil
		}
	}
	return true, nil
}

// makeRepository has an environment without a work tree, which git does not
// allow here.
func (g *Git) makeRepository(ctx context.Context, root string) error {
	_, err := g.run(ctx, call{
		dir:  root,
		set:  steady,
		args: []string{"init", "--quiet", "--template=", "--initial-branch=main"},
	})
	return err
}

// excludeLines adds the lines that the file exclude in info lacks. The file is
// replaced whole, so that half a pattern never stands in it.
func excludeLines(info string, lines []string) error {
	file := filepath.Join(info, "exclude")
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := withLines(string(old), lines)
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

// withLines is a text with each line in it.
func withLines(text string, lines []string) (string, error) {
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
