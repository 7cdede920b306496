package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"hone/workspace"
	"hone/workspace/secret"
)

//go:embed glob.md
var globText string

const globSchema = `{
	"type": "object",
	"properties": {
		"pattern": {"type": "string", "minLength": 1},
		"root": {"type": "string"},
		"include_dirs": {"type": "boolean"},
		"limit": {"type": "integer", "minimum": 1, "maximum": 10000, "description": "default 2000"}
	},
	"required": ["pattern"],
	"additionalProperties": false
}`

type globArgs struct {
	Pattern string `json:"pattern"`
	Root    string `json:"root"`
	Dirs    bool   `json:"include_dirs"`
	Limit   int    `json:"limit"`
}

// Glob returns the tool that lists the tree's files by pattern. It marks the
// files that the guard withholds (ruling G8), and redacts names and the targets
// of links; a nil guard withholds and redacts nothing.
func Glob(tree *workspace.Tree, guard *secret.Guard) Tool {
	t := Tool{ReadOnly: true, MaxText: 64 << 10}
	return Define(t, "glob", globText, globSchema, func(ctx context.Context, _ Input, args globArgs) (Result, error) {
		root, err := locateDir(tree, args.Root)
		if err != nil {
			return Result{}, readError(ctx, tree, guard, args.Root, err)
		}
		pattern, err := globPattern(tree, args.Pattern)
		if err != nil {
			return Result{}, err
		}
		files, err := tree.Files(ctx)
		if err != nil {
			return Result{}, err
		}
		found := matchFiles(files, root, pattern, guard)
		if args.Dirs {
			found = slices.Sorted(slices.Values(append(found, matchFolders(files, root, pattern, guard)...)))
		}
		if len(found) == 0 {
			if slices.ContainsFunc(files, func(f workspace.File) bool { _, ok := relBelow(root, f.Path); return ok }) {
				return Result{Text: "# no match\n"}, nil
			}
			return Result{Text: fmt.Sprintf("# no match: %s has no files\n", clip(path.Join(root, "."), 200))}, nil
		}
		limit := cmp.Or(args.Limit, 2000)
		if len(found) <= limit {
			return Result{Text: strings.Join(found, "\n") + "\n"}, nil
		}
		return Result{Text: fmt.Sprintf("%s\n# %d of %d results; narrow the pattern or increase limit\n", strings.Join(found[:limit], "\n"), limit, len(found))}, nil
	})
}

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
		return "", wrong("a pattern of %d bytes is longer than %d", len(p), maxPath)
	case strings.HasPrefix(p, "/"), strings.HasPrefix(p, "~/"), slices.Contains(strings.Split(p, "/"), ".."):
		return "", wrong("pattern %q escapes the working directory; patterns are relative to it", clip(p, 200))
	case !doublestar.ValidatePattern(p):
		return "", wrong("pattern %q is invalid: close all brackets and braces", clip(p, 200))
	case strings.Count(p, "{") > 1 && strings.Count(p, "{")+strings.Count(p, ",") > 20: // matching tries all combinations
		return "", wrong("the pattern has too many alternatives in braces; simplify it")
	}
	return p, nil
}

// They are relative to the directory, with notes about withheld and special files.
func matchFiles(files []workspace.File, root, pattern string, guard *secret.Guard) []string {
	var found []string
	for _, f := range files {
		name, ok := relBelow(root, f.Path)
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
		found = append(found, guard.Redact(validUTF8(name)))
	}
	return found
}

func relBelow(root, p string) (string, bool) {
	if root == "" {
		return p, true
	}
	return strings.CutPrefix(p, root+"/")
}

// They have listed files and end with a slash.
func matchFolders(files []workspace.File, root, pattern string, guard *secret.Guard) []string {
	known := map[string]bool{}
	var found []string
	for _, f := range files {
		name, ok := relBelow(root, f.Path)
		for ok {
			name = path.Dir(name)
			if name == "." || known[name] {
				break
			}
			known[name] = true
			if doublestar.MatchUnvalidated(pattern, name) {
				found = append(found, guard.Redact(validUTF8(name))+"/")
			}
		}
	}
	return found
}
