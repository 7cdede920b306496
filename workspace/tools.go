package workspace

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// toolLink is a symbolic link by which one of the user's own tools may find its files, and
// where in the tree it leads. Both are cleaned.
type toolLink struct{ at, target string }

// maxToolFiles limits how many files ToolFiles looks at, and maxToolLinks how many links are
// followed one after the other.
const (
	maxToolFiles = 10_000
	maxToolLinks = 40
)

// ToolReason is [treepath.ToolReason], and knows where the links led that the tree's first
// manifest or its top had: with a link .vscode to cfg, VS Code runs cfg/tasks.json
// (ruling G26).
func (t *Tree) ToolReason(cleaned string) string {
	if why := treepath.ToolReason(cleaned); why != "" {
		return why
	}
	folded := treepath.Fold(cleaned)
	for _, l := range t.toolLinks() {
		rest, ok := strings.CutPrefix(folded, treepath.Fold(l.target))
		if ok && (rest == "" || rest[0] == '/') {
			if why := treepath.ToolReason(l.at + rest); why != "" {
				return why
			}
		}
	}
	return ""
}

func (t *Tree) toolLinks() []toolLink {
	if links := t.links.Load(); links != nil {
		return *links
	}
	return nil
}

// noteLinks notes the links of a manifest, and those at the top that git ignores.
func (t *Tree) noteLinks(m Manifest) {
	links := []toolLink{}
	for _, e := range m {
		if e.Kind == Symlink && slices.ContainsFunc(strings.Split(e.Path, "/"), treepath.MayBeTool) {
			links = append(links, t.follow(e.Path)...)
		}
	}
	cur := nofollow.Cursor{Root: t.root}
	defer cur.Close()
	names, err := cur.Names("")
	t.note(err)
	for _, name := range names {
		if _, listed := m.Entry(name); !listed && treepath.MayBeTool(name) {
			links = append(links, t.follow(name)...)
		}
	}
	t.links.Store(&links)
}

// follow returns where in the tree a link leads: each link on the way, whether or not
// there is a file at its end, and the end where directories on the way are links too.
func (t *Tree) follow(at string) (list []toolLink) {
	add := func(target string) {
		if target != "." && filepath.IsLocal(target) {
			list = append(list, toolLink{at, filepath.ToSlash(target)})
		}
	}
	next := at
	for range maxToolLinks {
		target, err := t.root.Readlink(filepath.FromSlash(next))
		if err != nil {
			t.note(err)
			break
		}
		if !filepath.IsAbs(target) {
			next = path.Join(path.Dir(next), filepath.ToSlash(target))
		} else if next, err = filepath.Rel(t.dir, target); err != nil {
			break
		}
		add(next)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(t.dir, at))
	if t.note(err); err == nil {
		if rel, err := filepath.Rel(t.dir, real); err == nil {
			add(rel)
		}
	}
	return list
}

// ToolFiles returns the files that the user's own tools run or believe and that lie at the
// top of the tree, in a directory of theirs there, or where a link leads that is theirs,
// whether or not git ignores them, also in a directory of this user's whose names it may not
// read: a tool that knows the name finds the file there. It leaves out what else may not be read.
func (t *Tree) ToolFiles() ([]string, error) {
	cur := nofollow.Cursor{Root: t.root, Force: true}
	defer cur.Close()
	names, err := cur.Names("")
	if err != nil {
		return nil, err
	}
	for _, l := range t.toolLinks() {
		names = append(names, l.target)
	}
	var found []string
	seen := 0
	for _, name := range names {
		info, err := cur.Lstat(name)
		if t.note(err); err != nil || !treepath.MayBeTool(name) && t.ToolReason(name) == "" {
			continue
		}
		if !info.Mode.IsDir() {
			found = append(found, name)
			continue
		}
		_ = cur.Walk(name, func(p string, info nofollow.Info, err error) error {
			if seen++; seen > maxToolFiles {
				return fs.SkipAll
			}
			if t.note(err); err == nil && !info.Mode.IsDir() && t.ToolReason(p) != "" {
				found = append(found, p)
			}
			return nil
		})
	}
	return found, t.Fault()
}
