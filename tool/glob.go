package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"hone/workspace"
)

//go:embed glob.md
var globText string

const globSchema = `{
	"type": "object",
	"properties": {
		"pattern": {"type": "string", "minLength": 1, "description": "such as **/*.go"},
		"root": {"type": "string", "description": "folder to look in; results are relative to it"},
		"include_dirs": {"type": "integer", "minimum": 0, "maximum": 1, "description": "1 lists folders too"},
		"limit": {"type": "integer", "minimum": 1, "maximum": 10000, "description": "most results; 2000 if not given"}
	},
	"required": ["pattern"],
	"additionalProperties": false
}`

type globArgs struct {
	Pattern string `json:"pattern"`
	Root    string `json:"root"`
	Dirs    int    `json:"include_dirs"`
	Limit   int    `json:"limit"`
}

// Glob lists the tree's files by pattern. The guard says which are marked as
// withheld (ruling G8); nil marks none.
func Glob(tree *workspace.Tree, guard *workspace.Guard) Tool {
	t := Tool{Looks: true, MaxText: 64 << 10}
	return define(t, "glob", globText, globSchema, func(ctx context.Context, _ Input, args globArgs) (Result, error) {
		root, err := locateDir(tree, args.Root)
		if err != nil {
			return unreadable(ctx, tree, args.Root, err), nil
		}
		pattern, err := globPattern(tree, args.Pattern)
		if err != nil {
			return Failure(err.Error()), nil
		}
		files, err := tree.Files(ctx)
		if err != nil {
			return Result{}, err
		}
		found := list(files, root, pattern, guard)
		if args.Dirs == 1 {
			found = slices.Sorted(slices.Values(append(found, folders(files, root, pattern)...)))
		}
		if len(found) == 0 {
			return Result{Text: nothing(files, root)}, nil
		}
		return Result{Text: firstOf(found, args.Limit)}, nil
	})
}

// globPattern makes a pattern of the tree's own out of what a model wrote.
func globPattern(tree *workspace.Tree, p string) (string, error) {
	p = strings.TrimPrefix(p, filepath.ToSlash(tree.Dir())+"/")
	for strings.HasPrefix(p, "./") {
		p = strings.TrimPrefix(p, "./")
	}
	if strings.HasSuffix(p, "/") {
		p += "**"
	}
	switch {
	case len(p) > maxPath:
		return "", fmt.Errorf("a pattern of %d bytes is longer than %d", len(p), maxPath)
	case strings.HasPrefix(p, "/"), strings.HasPrefix(p, "~/"), slices.Contains(strings.Split(p, "/"), ".."):
		return "", fmt.Errorf("pattern %q escapes the working directory; patterns are relative to it", clip(p, 200))
	case !doublestar.ValidatePattern(p):
		return "", fmt.Errorf("pattern %q cannot be read: look for a bracket or brace that is not closed", clip(p, 200))
	case choices(p) > maxChoices:
		return "", errors.New("the pattern has too many alternatives in braces; use a simpler one")
	}
	return p, nil
}

// maxChoices is how many patterns one with braces may stand for: matching
// tries them all.
const maxChoices = 1000

// choices is how many patterns one with braces stands for at most.
func choices(p string) int {
	product, commas := 1, 1
	for i := 0; i < len(p) && product <= maxChoices; i++ {
		switch p[i] {
		case ',':
			commas++
		case '{', '}':
			product, commas = product*commas, 1
		}
	}
	return product * commas
}

// list is what the pattern means of the files below a folder, relative to it.
// What is no plain file is named with what it is.
func list(files []workspace.File, root, pattern string, guard *workspace.Guard) []string {
	var found []string
	for _, f := range files {
		name, ok := below(root, f.Path)
		if !ok || !doublestar.MatchUnvalidated(pattern, name) {
			continue
		}
		if reason, ok := guard.WithheldName(f.Path); ok {
			name += " (withheld: " + reason + ")"
		}
		switch f.Kind {
		case workspace.Symlink:
			name += " -> " + f.Target + " (symlink, not followed)"
		case workspace.Other:
			name += " (not a file)"
		}
		found = append(found, valid(name))
	}
	return found
}

// below is a path relative to a folder.
func below(root, p string) (string, bool) {
	if root == "" {
		return p, true
	}
	return strings.CutPrefix(p, root+"/")
}

// folders are those that hold listed files, with a slash at the end.
func folders(files []workspace.File, root, pattern string) []string {
	known := map[string]bool{}
	var found []string
	for _, f := range files {
		name, ok := below(root, f.Path)
		for ok {
			name = path.Dir(name)
			if name == "." || known[name] {
				break
			}
			known[name] = true
			if doublestar.MatchUnvalidated(pattern, name) {
				found = append(found, valid(name)+"/")
			}
		}
	}
	return found
}

// nothing says that there is no result.
func nothing(files []workspace.File, root string) string {
	for _, f := range files {
		if _, ok := below(root, f.Path); ok {
			return "# no match\n"
		}
	}
	return fmt.Sprintf("# no match: %s holds no files\n", clip(path.Join(root, "."), 200))
}

// firstOf are so many of the lines, and how many there are.
func firstOf(lines []string, limit int) string {
	if limit == 0 {
		limit = 2000
	}
	if len(lines) <= limit {
		return strings.Join(lines, "\n") + "\n"
	}
	return fmt.Sprintf("%s\n# %d of %d are listed; narrow the pattern or raise limit\n", strings.Join(lines[:limit], "\n"), limit, len(lines))
}
