package nofollow

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// Grants are directories that this user owns and may not use, as commands leave them behind, and to which cursors have given
// their owner all rights. They get their permission bits back when nothing uses them any more. The zero Grants has none.
type Grants struct {
	mu    sync.Mutex
	users int
	given []grant // outer ones first
}

type grant struct {
	path          string
	mode          uint32 // all bits, as they were
	inode, device uint64
}

// Begin announces cursors with these grants. The caller calls End after it has closed them.
func (g *Grants) Begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users++
}

// End restores the permission bits of the directories below root, if nothing else uses the grants. It leaves those that were
// removed or replaced, and those that another user owns now.
func (g *Grants) End(root *os.Root) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users--; g.users > 0 || len(g.given) == 0 {
		return
	}
	c := Cursor{Root: root}
	defer c.Close()
	for _, one := range slices.Backward(g.given) {
		if c.Enter(one.path) == nil {
			c.top().takeBack(one)
		}
	}
	g.given = nil
}

// Given returns how many directories have been given back to their owner so far.
func (g *Grants) Given() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.given)
}

// enter opens the root or a directory of the current one. needed are the bits of the owner that must be set.
func (g *Grants) enter(path string, needed fs.FileMode, open func() (directory, error), give func(needed fs.FileMode) (grant, bool)) (directory, error) {
	dir, err := open()
	if g == nil || err != nil && !errors.Is(err, fs.ErrPermission) || err == nil && !dir.lacks(needed) {
		return dir, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	one, ok := give(needed)
	if one.path = path; ok {
		g.given = append(g.given, one)
	}
	if err != nil { // another cursor may have given it
		dir, err = open()
	}
	return dir, err
}
