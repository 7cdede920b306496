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
	mapDepth   = 30     // folders within each other
	mapCounted = 200000 // entries that are looked at to count those left out
	mapFolder  = 100000 // entries of one folder
)

// Map draws the tree of files below a folder as the program tree does with
// -I 'node_modules|.git' --dirsfirst: hidden files are left out, folders come
// first, names stand in the order of their bytes. The first line is the
// folder's name with a slash, the last one "N directories, M files", where the
// folder itself is not counted. Every line ends in a line feed.
//
// Beyond node_modules and .git it leaves out what tools made and would fill
// the map: __pycache__, folders that hold a CACHEDIR.TAG (Cargo's target among
// them), and Python's virtual environments. Symlinks are listed with their
// target, counted as files and never followed; control characters in names are
// escaped. There are at most 4000 entries and 30 levels; a line says how many
// more there are. A folder that cannot be read says so in its line; the error
// means that dir itself cannot be.
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

type mapper struct {
	out     strings.Builder
	folders int // shown
	files   int // shown
	left    int // left out
	more    bool
}

// draw shows a folder's entries.
func (m *mapper) draw(dir *os.Root, entries []fs.DirEntry, lead string, depth int) {
	for i, e := range entries {
		if m.folders+m.files+m.left >= mapCounted {
			m.left += len(entries) - i
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

// entry shows an entry, and what is below it.
func (m *mapper) entry(dir *os.Root, e fs.DirEntry, lead, below string, depth int) {
	if !e.IsDir() {
		m.line(lead, mapName(e.Name())+linkTarget(dir, e), &m.files)
		return
	}
	sub, children, err := mapOpen(dir, e.Name())
	if err != nil {
		m.line(lead, mapName(e.Name())+"  "+mapReason(err), &m.folders)
		return
	}
	defer sub.Close()
	m.line(lead, mapName(e.Name()), &m.folders)
	if depth < mapDepth {
		m.draw(sub, children, below, depth+1)
		return
	}
	m.left += len(children)
	m.more = m.more || slices.ContainsFunc(children, fs.DirEntry.IsDir)
}

// line shows one entry where there is room for it, and counts it.
func (m *mapper) line(lead, text string, kind *int) {
	if m.folders+m.files >= mapEntries {
		m.left++
		return
	}
	*kind++
	m.out.WriteString(lead + text + "\n")
}

// finish adds what is left out, and the sums.
func (m *mapper) finish() {
	if m.left > 0 {
		atLeast := ""
		if m.more {
			atLeast = "at least "
		}
		fmt.Fprintf(&m.out, "\n[%s%d more left out: a map holds %d entries of %d levels]\n", atLeast, m.left, mapEntries, mapDepth)
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

// linkTarget is where a symlink points to, in tree's form; empty for all else.
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

// mapReason says in a folder's line why nothing is shown below it.
func mapReason(err error) string {
	if errors.Is(err, errCrowded) {
		return fmt.Sprintf("[more than %d entries, left out]", mapFolder)
	}
	return "[cannot be read]"
}

// mapOpen opens a folder of a folder and reads it. The caller closes it.
func mapOpen(dir *os.Root, name string) (*os.Root, []fs.DirEntry, error) {
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return nil, nil, err
	}
	children, err := mapRead(sub)
	if err != nil {
		sub.Close()
		return nil, nil, err
	}
	return sub, children, nil
}

// mapRead are the entries of a folder that a map shows, in its order.
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

// unshown reports whether a map leaves an entry out without a word.
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
