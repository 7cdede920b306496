package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Access is what a command may do with a path. A higher one permits more.
type Access int

const (
	AccessNone Access = iota
	AccessRead
	AccessWrite
)

// Entry is one path of a policy.
type Entry struct {
	Path   string // absolute and clean; only its last part may be a symlink
	Access Access
	Dir    bool
	Link   string // the target if the path is a symlink on the way to an entry
	Absent bool   // the path does not exist
	// Lower is the directory below an overlay; empty if the path is not an overlay.
	Lower string
	// Placeholder takes the place of a missing path; nil means that nothing does.
	Placeholder *Placeholder
}

// Entries returns the paths of a policy, outer ones first, which is the order in
// which they can be mounted.
func (p Policy) Entries() ([]Entry, error) {
	v := viewer{seen: map[string]Entry{}}
	for _, list := range []struct {
		paths  []string
		access Access
	}{{p.Write, AccessWrite}, {p.Read, AccessRead}, {p.Hide, AccessNone}} {
		for _, path := range list.paths {
			e, err := v.add(path, list.access)
			if err != nil {
				return nil, err
			}
			if stand, ok := p.Placeholders[path]; ok && list.access == AccessRead {
				e.Placeholder = &stand
			}
			v.put(e)
		}
	}
	entries := make([]Entry, 0, len(v.seen))
	for _, e := range v.seen {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

// Places maps paths to the entries that exist and are not symlinks.
type Places map[string]Entry

// PlacesOf returns the places of entries.
func PlacesOf(entries []Entry) Places {
	p := Places{}
	for _, e := range entries {
		if !e.Absent && e.Link == "" {
			p[e.Path] = e
		}
	}
	return p
}

// At returns the place of a path, or the innermost around it; the zero Entry, which permits nothing, if there is none.
func (p Places) At(path string) Entry {
	for {
		if e, ok := p[path]; ok || path == filepath.Dir(path) {
			return e
		}
		path = filepath.Dir(path)
	}
}

// Around returns the innermost place around a path; the zero Entry if there is none.
func (p Places) Around(path string) Entry {
	if path == filepath.Dir(path) {
		return Entry{}
	}
	return p.At(filepath.Dir(path))
}

type viewer struct{ seen map[string]Entry }

// The symlinks on the way to it are added as well.
func (v viewer) add(path string, a Access) (Entry, error) {
	if !filepath.IsAbs(path) {
		return Entry{}, fmt.Errorf("%s is not an absolute path", path)
	}
	real, err := v.follow(filepath.Clean(path), a)
	if errors.Is(err, fs.ErrNotExist) && a != AccessWrite {
		return Entry{Path: real, Access: a, Absent: true}, nil
	}
	if err != nil {
		return Entry{}, err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Path: real, Access: a, Dir: info.IsDir()}, nil
}

func (v viewer) put(e Entry) {
	old, ok := v.seen[e.Path]
	if ok && old.Link == "" && old.Access < e.Access {
		return
	}
	if ok && e.Access == old.Access && e.Placeholder == nil {
		e.Placeholder = old.Placeholder
	}
	v.seen[e.Path] = e
}

// mostLinks is how many symlinks a path may contain, as in the kernel.
const mostLinks = 40

// If the path does not exist the part that does is resolved.
func (v viewer) follow(path string, a Access) (string, error) {
	for range mostLinks {
		link, target, err := firstLink(path)
		if err != nil || link == "" {
			return path, err
		}
		if a != AccessNone {
			v.put(Entry{Path: link, Access: AccessRead, Link: absoluteTarget(link, target)})
		}
		path = resolved(path, link, target)
	}
	return "", fmt.Errorf("%s contains too many symlinks", path)
}

func absoluteTarget(link, target string) string {
	if filepath.IsAbs(target) {
		return target
	}
	return filepath.Join(filepath.Dir(link), target)
}

func resolved(path, link, target string) string {
	return filepath.Join(absoluteTarget(link, target), strings.TrimPrefix(path, link))
}

func firstLink(path string) (link, target string, err error) {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != filepath.Separator {
			continue
		}
		info, err := os.Lstat(path[:i])
		if err != nil {
			return "", "", err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path[:i])
			return path[:i], target, err
		}
	}
	return "", "", nil
}

// Within reports whether inner is outer or lies below it.
func Within(outer, inner string) bool {
	return inner == outer || outer == "/" || strings.HasPrefix(inner, outer+string(filepath.Separator))
}
