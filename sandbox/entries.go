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

// Access is what may be done with a path; the more it lets pass, the higher.
type Access int

const (
	AccessNone Access = iota
	AccessRead
	AccessWrite
)

// Entry is one path of a policy, as the walls show it.
type Entry struct {
	Path   string // absolute and clean, and free of symlinks but for a last one
	Access Access
	Dir    bool
	Link   string // the target, where the path is a symlink that leads to an entry
	Absent bool   // nothing is there now
}

// Entries are a policy's paths, shallow ones first: what a wall shows, in the order
// in which it can be mounted.
func (p Policy) Entries() ([]Entry, error) {
	v := viewer{seen: map[string]Entry{}}
	for _, list := range []struct {
		paths  []string
		access Access
	}{{p.Write, AccessWrite}, {p.Read, AccessRead}, {p.Hide, AccessNone}} {
		for _, path := range list.paths {
			if err := v.add(path, list.access); err != nil {
				return nil, err
			}
		}
	}
	entries := make([]Entry, 0, len(v.seen))
	for _, e := range v.seen {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

type viewer struct{ seen map[string]Entry }

// add adds a path, and the symlinks that lead to it.
func (v viewer) add(path string, a Access) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is not an absolute path", path)
	}
	real, err := v.follow(filepath.Clean(path), a)
	if errors.Is(err, fs.ErrNotExist) && a != AccessWrite {
		v.put(Entry{Path: real, Access: a, Absent: true})
		return nil
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return err
	}
	v.put(Entry{Path: real, Access: a, Dir: info.IsDir()})
	return nil
}

// put adds an entry; what stands there already stays where it lets less pass.
func (v viewer) put(e Entry) {
	if old, ok := v.seen[e.Path]; ok && old.Link == "" && old.Access < e.Access {
		return
	}
	v.seen[e.Path] = e
}

// mostLinks is how many symlinks a path may lead through, as in the kernel.
const mostLinks = 40

// follow is a path without symlinks, each of which becomes an entry of its own.
// Of a path that does not exist it follows what does.
func (v viewer) follow(path string, a Access) (string, error) {
	for range mostLinks {
		link, target, err := firstLink(path)
		if err != nil || link == "" {
			return path, err
		}
		rest := strings.TrimPrefix(path, link)
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		if a != AccessNone {
			v.put(Entry{Path: link, Access: AccessRead, Link: target})
		}
		path = filepath.Join(target, rest)
	}
	return "", fmt.Errorf("%s leads through too many symlinks", path)
}

// firstLink is the first component of a path that is a symlink, with its
// target; empty where there is none.
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

// Holds reports whether a path is another, or lies below it.
func Holds(outer, inner string) bool {
	return inner == outer || outer == "/" || strings.HasPrefix(inner, outer+string(filepath.Separator))
}
