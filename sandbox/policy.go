package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Policy says what commands behind walls may reach. Paths are absolute; the
// longest one that holds a file decides about it, and of equal ones Hide comes
// before Read and Read before Write. What none of them holds is not there, as
// far as the wall can make it so. The zero Policy lets a command reach nothing,
// not even the programs of the system; see [System].
//
// Paths may lead through symlinks: what they lead to is what is shown, under
// both names.
type Policy struct {
	// Write are folders and files that may be read and changed. They must exist.
	Write []string
	// Read are folders and files that may be read and run. Those that are
	// missing are passed over; where they lie in a folder of Write, a command
	// cannot bring them into being either, or what it made is taken away again:
	// see [Result.Restored].
	Read []string
	// Hide are folders and files that are not there, or are empty and cannot
	// be read: the walls cannot take a file out of a folder that may be written.
	Hide []string
	// Tmp is the folder that is shown as /tmp, for all commands of a run. Where
	// a wall cannot show a folder under another name, and where Tmp is empty,
	// see the wall's doc.
	Tmp string
	// Aside is a folder, outside of all that may be written, for what a command
	// left in the place of a protected file. Empty means that it is lost.
	Aside string
	// Net lets commands reach the network as this process does.
	Net bool
	// Doors are the addresses that can be reached without Net.
	Doors []Door
	// Limits bound each command.
	Limits Limits
}

// Limits bound a command and all that it started, together. Zero means the
// number given with each; a negative one means none.
type Limits struct {
	Memory    int64         // bytes of memory that is not backed by a file; 0 means none
	Processes int           // processes and threads; 0 means 4096
	Time      time.Duration // a ceiling for Command.Timeout; 0 means none
	Output    int64         // a ceiling for Command.MaxOutput, in bytes; 0 means none
}

// Door is an address inside the walls at which somebody outside answers
// (rulings A8 and A13).
type Door struct {
	// Addr is where commands find it: a loopback address and a port, such as
	// 127.0.0.1:3000. Port 0 lets the wall choose; see [Walls.DoorAddr].
	Addr string
	// Serve answers one connection, and closes it.
	// Contract: it is called from many goroutines, and returns when the
	// connection is closed from either side.
	Serve func(net.Conn)
}

// access is what may be done with a path; the more it lets pass, the higher.
type access int

const (
	hide access = iota
	read
	write
)

// entry is one path of a policy, as the walls show it.
type entry struct {
	Path   string // absolute and clean, and free of symlinks but for a last one
	Access access
	Dir    bool
	Link   string // the target, where the path is a symlink that leads to an entry
	Absent bool   // nothing is there now
}

// view is a policy's paths, shallow ones first: what a wall shows, in the order
// in which it can be mounted.
func (p Policy) view() ([]entry, error) {
	v := viewer{seen: map[string]entry{}}
	for _, list := range []struct {
		paths  []string
		access access
	}{{p.Write, write}, {p.Read, read}, {p.Hide, hide}} {
		for _, path := range list.paths {
			if err := v.add(path, list.access); err != nil {
				return nil, err
			}
		}
	}
	entries := make([]entry, 0, len(v.seen))
	for _, e := range v.seen {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

type viewer struct{ seen map[string]entry }

// add adds a path, and the symlinks that lead to it.
func (v viewer) add(path string, a access) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is not an absolute path", path)
	}
	real, err := v.follow(filepath.Clean(path), a)
	if errors.Is(err, fs.ErrNotExist) && a != write {
		v.put(entry{Path: real, Access: a, Absent: true})
		return nil
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return err
	}
	v.put(entry{Path: real, Access: a, Dir: info.IsDir()})
	return nil
}

// put adds an entry; what stands there already stays where it lets less pass.
func (v viewer) put(e entry) {
	if old, ok := v.seen[e.Path]; ok && old.Link == "" && old.Access < e.Access {
		return
	}
	v.seen[e.Path] = e
}

// mostLinks is how many symlinks a path may lead through, as in the kernel.
const mostLinks = 40

// follow is a path without symlinks, each of which becomes an entry of its own.
// Of a path that does not exist it follows what does.
func (v viewer) follow(path string, a access) (string, error) {
	for range mostLinks {
		link, target, err := firstLink(path)
		if err != nil || link == "" {
			return path, err
		}
		rest := strings.TrimPrefix(path, link)
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		if a != hide {
			v.put(entry{Path: link, Access: read, Link: target})
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

// holds reports whether a path is another, or lies below it.
func holds(outer, inner string) bool {
	return inner == outer || outer == "/" || strings.HasPrefix(inner, outer+string(filepath.Separator))
}
