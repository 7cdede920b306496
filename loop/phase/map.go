package phase

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"hone/internal/render"
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
// as files and never follows them. It escapes control characters in names. The line of
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
	var out strings.Builder
	folders, files := 0, 0
	var draw func(dir, lead string, entries []fs.DirEntry)
	draw = func(dir, lead string, entries []fs.DirEntry) {
		for i, e := range entries {
			branch, below := "├── ", "│   "
			if i == len(entries)-1 {
				branch, below = "└── ", "    "
			}
			name, text := path.Join(dir, e.Name()), lead+branch+mapName(e.Name())
			if target, err := root.Readlink(name); err == nil {
				text += " -> " + mapName(target)
			}
			if !e.IsDir() {
				files++
				out.WriteString(text + "\n")
				continue
			}
			folders++
			children, err := mapped(root, name)
			if err != nil {
				text += "  [cannot be read]"
			}
			out.WriteString(text + "\n")
			draw(name, lead+below, children)
		}
	}
	entries, err := mapped(root, ".")
	if err != nil {
		return "", fmt.Errorf("map: %w", err)
	}
	out.WriteString(mapName(filepath.Base(abs)) + "/\n")
	draw(".", "", entries)
	fmt.Fprintf(&out, "\n%s, %s\n", plural(folders, "directory", "directories"), plural(files, "file", "files"))
	return out.String(), nil
}

// emptyMap is how the map of an empty directory ends.
const emptyMap = "/\n\n0 directories, 0 files\n"

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func mapName(name string) string {
	return strings.ReplaceAll(render.Line(name), "\t", `\t`)
}

// mapped are the entries of a directory that a map shows, in its order.
func mapped(root *os.Root, dir string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(root.FS(), dir)
	var folders, files []fs.DirEntry
	for _, e := range all {
		name := e.Name()
		made := strings.HasPrefix(name, ".") || name == "node_modules" || name == "__pycache__"
		for _, tag := range []string{"CACHEDIR.TAG", "pyvenv.cfg"} {
			info, err := root.Lstat(path.Join(dir, name, tag))
			made = made || e.IsDir() && err == nil && info.Mode().IsRegular()
		}
		switch {
		case made:
		case e.IsDir():
			folders = append(folders, e)
		default:
			files = append(files, e)
		}
	}
	return append(folders, files...), err
}
