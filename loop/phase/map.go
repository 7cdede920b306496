package phase

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/render"
)

const (
	mapEntries = 4000 // lines of a map
	mapDepth   = 30   // nested directories
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
// has at most 4000 entries and 30 levels; a line says so if there are more. The line of
// a directory that cannot be read says so; Map returns an error only if dir itself
// cannot be read.
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
	m := mapper{root: root}
	m.out.WriteString(mapName(filepath.Base(abs)) + "/\n")
	children, err := m.read(".")
	if err != nil {
		return "", fmt.Errorf("map: %w", err)
	}
	m.draw(".", children, "", 1)
	if m.more {
		fmt.Fprintf(&m.out, "\n[more is omitted: a map has at most %d entries and %d levels]\n", mapEntries, mapDepth)
	}
	fmt.Fprintf(&m.out, "\n%s, %s\n", plural(m.folders, "directory", "directories"), plural(m.files, "file", "files"))
	return m.out.String(), nil
}

// emptyMap is how the map of an empty directory ends.
const emptyMap = "/\n\n0 directories, 0 files\n"

type mapper struct {
	root           *os.Root
	out            strings.Builder
	folders, files int
	more           bool // something is omitted
}

func (m *mapper) draw(dir string, entries []fs.DirEntry, lead string, depth int) {
	for i, e := range entries {
		if depth > mapDepth || m.folders+m.files >= mapEntries {
			m.more = true
			return
		}
		branch, below := "├── ", "│   "
		if i == len(entries)-1 {
			branch, below = "└── ", "    "
		}
		name, text := path.Join(dir, e.Name()), lead+branch+mapName(e.Name())
		if !e.IsDir() {
			m.files++
			if target, err := m.root.Readlink(name); err == nil {
				text += " -> " + mapName(target)
			}
			m.out.WriteString(text + "\n")
			continue
		}
		m.folders++
		children, err := m.read(name)
		if err != nil {
			text += "  [cannot be read]"
		}
		m.out.WriteString(text + "\n")
		m.draw(name, children, lead+below, depth+1)
	}
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

func (m *mapper) read(dir string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(m.root.FS(), dir)
	shown := slices.DeleteFunc(all, func(e fs.DirEntry) bool {
		name := e.Name()
		made := strings.HasPrefix(name, ".") || name == "node_modules" || name == "__pycache__"
		for _, tag := range []string{"CACHEDIR.TAG", "pyvenv.cfg"} {
			info, err := m.root.Lstat(path.Join(dir, name, tag))
			made = made || e.IsDir() && err == nil && info.Mode().IsRegular()
		}
		return made
	})
	slices.SortStableFunc(shown, func(a, b fs.DirEntry) int {
		switch {
		case a.IsDir() == b.IsDir():
			return 0
		case a.IsDir():
			return -1
		}
		return 1
	})
	return shown, err
}
