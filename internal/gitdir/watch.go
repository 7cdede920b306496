package gitdir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Watch keeps the repositories of a tree as commands found them. It takes away those
// that commands add, or that they make out of a loose one, if git could run a program
// for them.
type Watch struct {
	mu     sync.Mutex
	find   finder
	record record
	told   map[string]bool // repositories of commands that the caller knows of
	unlink func(ctx context.Context, dir string) error
}

// record is what must survive a killed process.
type record struct {
	Home  string   `json:"home"`  // the directory whose .hone/aside receives what is taken away
	Root  string   `json:"root"`  // the tree, in Home
	Known []string `json:"known"` // relative to Root
	Links []string `json:"links"` // as well: the symlinks that git directories had
}

// Moved is a repository that a command made, or a symlink that it put into one.
type Moved struct {
	Path string // absolute
	Link bool   // it is a symlink in a git directory
	Why  string // why it was taken away; empty if it stays
	To   string // where it is now; empty if it stays
}

// NewWatch finds the repositories of a tree. Home is root or a directory around it; its
// .hone/aside receives what is taken away. Loose is called with the repositories below
// the top that are plain, relative to root, and returns those that are treated as if
// commands had made them. Unlink makes the index around a directory forget that it is a
// repository.
func NewWatch(ctx context.Context, home, root string, loose func(paths []string) []string, unlink func(ctx context.Context, dir string) error) (*Watch, error) {
	w := &Watch{find: finder{root: root}, record: record{Home: home, Root: root}, told: map[string]bool{}, unlink: unlink}
	defer w.find.closeAll()
	found, err := w.find.find(ctx)
	if err != nil {
		return nil, err
	}
	var plain []string
	all := inDir(root, found)
	none := func(string) bool { return false }
	for i, path := range found {
		if path != ".git" && notPlain(all[i], all, none) == "" {
			plain = append(plain, path)
		}
	}
	free := loose(plain)
	for _, path := range found {
		if slices.Contains(free, path) {
			w.told[path] = true
		} else {
			w.record.Known = append(w.record.Known, path)
		}
	}
	for _, l := range w.find.links {
		w.record.Links = append(w.record.Links, l.path)
	}
	return w, nil
}

// Known returns the absolute paths of the repositories that commands must leave as they
// are: git directories, and .git files and symlinks.
func (w *Watch) Known() []string { return inDir(w.record.Root, w.record.Known) }

func inDir(dir string, paths []string) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = filepath.Join(dir, path)
	}
	return all
}

// Save records what [Recover] needs, in a file of dir, which commands cannot write.
func (w *Watch) Save(dir string) error {
	b, err := json.Marshal(w.record)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, recordName)
	if err := os.WriteFile(file+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

const recordName = "repositories"

// Forget removes the record. No command may be running.
func (w *Watch) Forget(dir string) error {
	return ignoreMissing(os.Remove(filepath.Join(dir, recordName)))
}

// Recover settles what commands of a killed process left, from its record in dir.
func Recover(ctx context.Context, dir string, unlink func(ctx context.Context, dir string) error) ([]Moved, error) {
	b, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return nil, ignoreMissing(err)
	}
	w := &Watch{told: map[string]bool{}, unlink: unlink}
	if err := json.Unmarshal(b, &w.record); err != nil {
		return nil, fmt.Errorf("%s: %w; move it away", filepath.Join(dir, recordName), err)
	}
	w.find.root = w.record.Root
	if _, err := os.Stat(w.record.Root); err != nil {
		return nil, w.Forget(dir)
	}
	moved, err := w.Settle(ctx)
	if err == nil {
		err = w.Forget(dir)
	}
	return slices.DeleteFunc(moved, func(m Moved) bool { return m.To == "" }), err
}

// Settle returns what commands made since the last call, and takes away what is not
// plain. All commands must have ended, or what they make until the next call may stay.
func (w *Watch) Settle(ctx context.Context) (moved []Moved, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.find.closeAll()
	found, err := w.find.find(ctx)
	if err != nil {
		return nil, err
	}
	all, known := inDir(w.record.Root, found), w.Known()
	isKnown := func(dir string) bool { return slices.Contains(known, dir) }
	linked := map[string]string{} // by the path of a repository that commands made
	for _, l := range w.find.links {
		of := filepath.Join(w.record.Root, l.of)
		switch {
		case slices.Contains(w.record.Links, l.path):
		case !isKnown(of):
			linked[of] = "it has the symlink " + filepath.Base(l.path)
		default: // before git is called
			m := Moved{Path: filepath.Join(w.record.Root, l.path), Link: true, Why: "git follows it when it writes"}
			var failed error
			m.To, failed = w.takeAway(ctx, l.path, true)
			moved, err = append(moved, m), errors.Join(err, failed)
		}
	}
	for i, path := range found { // outer ones first
		at := all[i]
		if isKnown(at) {
			continue
		}
		if _, gone := os.Lstat(at); gone != nil {
			continue // it was taken away with an outer one
		}
		m := Moved{Path: at, Why: cmp.Or(notPlain(at, all, isKnown), linked[at])}
		if m.Why != "" {
			var failed error
			m.To, failed = w.takeAway(ctx, path, false)
			err = errors.Join(err, failed)
		}
		if m.Why != "" || !w.told[path] {
			moved = append(moved, m)
		}
		w.told[path] = m.Why == ""
	}
	return moved, err
}

// A directory of another name than .git may contain other files, so that only its HEAD is moved to .hone/aside, under another
// name.
func (w *Watch) takeAway(ctx context.Context, path string, link bool) (string, error) {
	at, name := filepath.Join(w.record.Root, path), filepath.Base(path)
	isDir := modeOf(at).IsDir()
	switch {
	case link:
	case !isDir || name == ".git":
		_ = w.unlink(ctx, filepath.Dir(at)) // an index without a repository at a link is not an error to git
	default:
		at, name, isDir = filepath.Join(at, "HEAD"), "HEAD", false
	}
	rel, err := filepath.Rel(w.record.Home, at)
	if err != nil {
		return "", err
	}
	home, err := os.OpenRoot(w.record.Home)
	if err != nil {
		return "", err
	}
	defer home.Close()
	folder, err := makeAside(home)
	if err != nil {
		return "", fmt.Errorf("take away %s: %w", at, err)
	}
	to := filepath.Join(folder, name+".aside")
	if isDir {
		_ = home.Chmod(rel, modeOf(at).Perm()|0o700) // else its owner may not move it
	}
	err = home.Rename(rel, to)
	if errors.Is(err, fs.ErrPermission) && w.find.open(filepath.Dir(at)) {
		err = home.Rename(rel, to)
	}
	if err != nil {
		return "", fmt.Errorf("take away %s, which git would obey: %w", at, err)
	}
	if isDir {
		_ = home.Rename(filepath.Join(to, "HEAD"), filepath.Join(to, "HEAD.aside"))
	}
	return filepath.Join(w.record.Home, to), nil
}

func modeOf(path string) fs.FileMode {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Mode()
}

// .hone is made as package journal does if there is none. What a command put in its place is moved out of the way.
func makeAside(home *os.Root) (string, error) {
	for _, dir := range []string{".hone", filepath.Join(".hone", "aside")} {
		info, err := home.Lstat(dir)
		switch {
		case err != nil:
		case !info.IsDir():
			if err := home.Rename(dir, fmt.Sprintf("%s.%d.aside", dir, time.Now().UnixNano())); err != nil {
				return "", err
			}
		case info.Mode().Perm()&0o700 != 0o700:
			_ = home.Chmod(dir, 0o700)
		}
	}
	if err := home.MkdirAll(filepath.Join(".hone", "aside"), 0o700); err != nil {
		return "", err
	}
	ignore, err := home.OpenFile(filepath.Join(".hone", ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = ignore.WriteString("*\n")
		err = errors.Join(err, ignore.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	for n := 1; ; n++ {
		folder := filepath.Join(".hone", "aside", strconv.Itoa(n))
		if err := home.Mkdir(folder, 0o700); !errors.Is(err, fs.ErrExist) {
			return folder, err
		}
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
