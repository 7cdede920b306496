package phase

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/render"
)

const (
	mapEntries = 4000   // lines of a map
	mapDepth   = 30     // nested directories
	mapCounted = 200000 // entries that are inspected to count the omitted ones
	mapFolder  = 100000 // entries of one directory
)

// Map draws the tree of files below a directory, like the program tree with
// -I 'node_modules|.git' --dirsfirst: without hidden files, directories first,
// names in byte order. The first line is the directory's name with a slash, the last
// line "N directories, M files", without the directory itself. Every line ends with
// a line feed.
//
// Besides node_modules and .git it omits large directories that tools create:
// __pycache__, directories with a CACHEDIR.TAG (such as Cargo's target), and
// Python's virtual environments. It lists symlinks with their targets, counts them
// as files and never follows them. It escapes control characters in names. A map
// has at most 4000 entries and 30 levels; a line states how many entries were
// omitted. The line of a directory that cannot be read says so; Map returns an error
// only if dir itself cannot be read.
func Map(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("map: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("map: %w", err)
	}
	defer root.Close()
	var m mapper
	m.out.WriteString(mapName(filepath.Base(abs)) + "/\n")
	children, err := mapRead(root)
	if err != nil {
		return "", fmt.Errorf("map: %w", err)
	}
	m.draw(root, children, "", 1)
	m.finish()
	return m.out.String(), nil
}

// emptyMap is how the map of an empty directory ends.
const emptyMap = "/\n\n0 directories, 0 files\n"

type mapper struct {
	out     strings.Builder
	folders int // included
	files   int // included
	omitted int
	more    bool // more were omitted than were counted
}

func (m *mapper) draw(dir *os.Root, entries []fs.DirEntry, lead string, depth int) {
	for i, e := range entries {
		if m.folders+m.files+m.omitted >= mapCounted {
			m.omitted += len(entries) - i
			m.more = true
			return
		}
		branch, below := "├── ", "│   "
		if i == len(entries)-1 {
			branch, below = "└── ", "    "
		}
		m.entry(dir, e, lead+branch, lead+below, depth)
	}
}

func (m *mapper) entry(dir *os.Root, e fs.DirEntry, lead, below string, depth int) {
	if !e.IsDir() {
		m.line(lead, mapName(e.Name())+linkTarget(dir, e), &m.files)
		return
	}
	var children []fs.DirEntry
	sub, err := dir.OpenRoot(e.Name())
	if err == nil {
		defer sub.Close()
		children, err = mapRead(sub)
	}
	if err != nil {
		why := "[cannot be read]"
		if errors.Is(err, errCrowded) {
			why = fmt.Sprintf("[more than %d entries, omitted]", mapFolder)
		}
		m.line(lead, mapName(e.Name())+"  "+why, &m.folders)
		return
	}
	m.line(lead, mapName(e.Name()), &m.folders)
	if depth < mapDepth {
		m.draw(sub, children, below, depth+1)
		return
	}
	m.omitted += len(children)
	m.more = m.more || slices.ContainsFunc(children, fs.DirEntry.IsDir)
}

func (m *mapper) line(lead, text string, kind *int) {
	if m.folders+m.files >= mapEntries {
		m.omitted++
		return
	}
	*kind++
	m.out.WriteString(lead + text + "\n")
}

func (m *mapper) finish() {
	if m.omitted > 0 {
		atLeast := ""
		if m.more {
			atLeast = "at least "
		}
		fmt.Fprintf(&m.out, "\n[%s%d more omitted: a map has at most %d entries and %d levels]\n", atLeast, m.omitted, mapEntries, mapDepth)
	}
	fmt.Fprintf(&m.out, "\n%s, %s\n", plural(m.folders, "directory", "directories"), plural(m.files, "file", "files"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func mapName(name string) string {
	return strings.ReplaceAll(render.Line(name), "\t", `\t`)
}

// It has the form of the program tree.
func linkTarget(dir *os.Root, e fs.DirEntry) string {
	if e.Type()&fs.ModeSymlink == 0 {
		return ""
	}
	target, err := dir.Readlink(e.Name())
	if err != nil {
		return " -> [cannot be read]"
	}
	return " -> " + mapName(target)
}

var errCrowded = errors.New("too many entries")

func mapRead(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.ReadDir(mapFolder + 1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(all) > mapFolder:
		return nil, errCrowded
	}
	shown := slices.DeleteFunc(all, func(e fs.DirEntry) bool { return unshown(dir, e) })
	slices.SortFunc(shown, func(a, b fs.DirEntry) int {
		if a.IsDir() != b.IsDir() {
			if a.IsDir() {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name(), b.Name())
	})
	return shown, nil
}

// Such an entry is not counted either.
func unshown(dir *os.Root, e fs.DirEntry) bool {
	name := e.Name()
	if strings.HasPrefix(name, ".") || name == "node_modules" || name == "__pycache__" {
		return true
	}
	if !e.IsDir() {
		return false
	}
	for _, tag := range []string{"CACHEDIR.TAG", "pyvenv.cfg"} {
		if info, err := dir.Lstat(name + "/" + tag); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}
