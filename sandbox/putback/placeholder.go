package putback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/transient"
	"hone/sandbox"
)

// placeholder is a harmless file in place of one that must not exist while a command runs, or a directory that is created
// for one. A wall can mount a file read-only only if it exists.
type placeholder struct {
	Root  string // the writable directory around it
	Inode uint64 // of the root, when the placeholder is created
	Path  string // relative to the root
	sandbox.Placeholder
}

// standing are placeholders by their absolute path.
type standing map[string]sandbox.Placeholder

func (s standing) add(all []placeholder) {
	for _, p := range all {
		s[filepath.Join(p.Root, p.Path)] = p.Placeholder
	}
}

func addPlaceholder(all []placeholder, root string, e sandbox.Entry) []placeholder {
	rel := strings.TrimLeft(e.Path[len(root):], string(filepath.Separator))
	for i, c := range rel {
		outer := placeholder{Root: root, Path: rel[:i], Placeholder: sandbox.Placeholder{Dir: true}}
		if c == filepath.Separator && !slices.Contains(all, outer) {
			all = append(all, outer)
		}
	}
	return append(all, placeholder{Root: root, Path: rel, Placeholder: *e.Placeholder})
}

// missing returns the placeholders whose paths are free, or already have a placeholder that others need, too.
func missing(all []placeholder, s standing) (missing []placeholder, err error) {
	for _, p := range all {
		root, err := os.OpenRoot(p.Root)
		if err != nil {
			return nil, fmt.Errorf("protect files in %s: %w", p.Root, err)
		}
		info, err := root.Stat(".")
		if err == nil {
			p.Inode = stampOf(info).Inode
		}
		if _, stands := s[filepath.Join(p.Root, p.Path)]; stands || !p.exists(root) {
			missing = append(missing, p)
		}
		if root.Close(); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// A file in place of a directory is in the way.
func (p placeholder) exists(root *os.Root) bool {
	info, err := root.Lstat(p.Path)
	return err == nil && (info.IsDir() || !p.Dir)
}

func (p placeholder) create() error {
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if p.exists(root) { // others need it, too
		return nil
	}
	if p.Dir {
		err := root.Mkdir(p.Path, 0o755)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s is not a directory; remove it", p.Path)
		}
		return err
	}
	to, err := root.OpenFile(p.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = to.WriteString(p.Text)
	return errors.Join(err, to.Close())
}

// remove removes the placeholders that no other command needs. If some cannot be removed, the error is that of the last one.
func remove(all []placeholder, needed standing) (err error) {
	for _, p := range slices.Backward(all) {
		if _, stays := needed[filepath.Join(p.Root, p.Path)]; stays {
			continue
		}
		if failed := p.remove(); failed != nil {
			err = fmt.Errorf("remove placeholders in %s: %w", p.Root, failed)
		}
	}
	return err
}

// A placeholder is removed only if it is still as it was created, or its text was only begun, because the process was killed
// meanwhile. What replaced it or was added to it comes from outside the walls.
func (p placeholder) remove() error {
	root, _, err := openAgain(p.Root, p.Inode)
	if err != nil {
		return err
	}
	defer root.Close()
	for i, c := range p.Path { // outer ones first
		if c == filepath.Separator {
			reopen(root.Lstat, root.Chmod, p.Path[:i])
		}
	}
	info, err := root.Lstat(p.Path)
	switch {
	case transient.Is(err):
		return err
	case err != nil || info.IsDir() != p.Dir:
		return nil
	case p.Dir:
		_ = root.Remove(p.Path) // fails if it is not empty
		return nil
	case !info.Mode().IsRegular() || info.Size() > int64(len(p.Text)):
		return nil
	}
	if text, err := root.ReadFile(p.Path); err != nil || !strings.HasPrefix(p.Text, string(text)) {
		return err
	}
	return root.Remove(p.Path)
}
