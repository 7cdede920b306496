package putback

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone/sandbox"
)

// form is the record that a guard writes to Aside while a command runs, in case
// this process ends before it can restore. It is one file: armed while a command
// runs and idle between commands, so that it is written and synced only when the
// protected paths have changed. A lock file next to it shows that its process is
// alive.
//
// Arming an existing form again is not synced. The form survives the end of the
// process, and a power failure except for the last seconds before it.
type form struct {
	aside string // empty: no form is written
	name  string // the path of its files, without their extensions
	lock  *os.File
	plots []written // the contents of the form; nil if it is not written
}

// written is the stored form of a plot.
type written struct {
	Path string
	Node *node
}

const (
	formPrefix = "protected-"
	armed      = ".armed"
	idle       = ".idle"
	fresh      = ".new"
	locked     = ".lock"
)

// arm records the state that an inspection found.
func (f *form) arm(plots []*plot) error {
	if f.aside == "" {
		return nil
	}
	var now []written
	for _, p := range plots {
		now = append(now, written{p.path, p.node})
	}
	if f.plots != nil && slices.EqualFunc(f.plots, now, written.says) && os.Rename(f.name+idle, f.name+armed) == nil {
		return nil
	}
	if err := f.write(now); err != nil {
		return fmt.Errorf("record the protected paths: %w", err)
	}
	return nil
}

// write writes and arms a form.
func (f *form) write(now []written) error {
	if err := f.claim(); err != nil {
		return err
	}
	f.plots = nil
	data, err := encodeForm(now)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.name+fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.name+fresh, f.name+armed); err != nil {
		return err
	}
	if err := ignoreGone(os.Remove(f.name + idle)); err != nil {
		return err
	}
	f.plots = now
	return syncFolder(f.aside)
}

// claim chooses a name for the form, and locks it.
func (f *form) claim() error {
	if f.lock != nil {
		return nil
	}
	name := filepath.Join(f.aside, formPrefix+rand.Text())
	file, err := os.OpenFile(name+locked, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if ok, err := lockFile(file); err != nil || !ok {
		return errors.Join(fmt.Errorf("cannot lock %s", name+locked), err, file.Close())
	}
	f.name, f.lock = name, file
	return nil
}

// disarm records that nothing needs to be restored.
func (f *form) disarm() error {
	if f.aside == "" {
		return nil
	}
	return ignoreGone(os.Rename(f.name+armed, f.name+idle))
}

// close removes the form, but not an armed one if a restoration is still owed.
func (f *form) close(owed bool) error {
	if f.lock == nil {
		return nil
	}
	err := ignoreGone(os.Remove(f.name + idle))
	if !owed {
		err = errors.Join(err, ignoreGone(os.Remove(f.name+armed)))
	}
	err = errors.Join(err, f.lock.Close(), ignoreGone(os.Remove(f.name+locked)))
	f.lock, f.plots = nil, nil
	return err
}

// says reports whether both would restore the same. For paths that cannot be
// restored it compares the stamps, which show a change.
func (w written) says(other written) bool {
	return w.Path == other.Path && w.Node.Stamp.Ino == other.Node.Stamp.Ino && w.Node.says(other.Node)
}

// says is the same for a node.
func (n *node) says(o *node) bool {
	if n == o {
		return true
	}
	a, b := n.Stamp, o.Stamp
	if n.Unkept == "" {
		a, b = stamp{UID: a.UID, GID: a.GID, Links: a.Links, Size: a.Size}, stamp{UID: b.UID, GID: b.GID, Links: b.Links, Size: b.Size}
	}
	if n.Kind == isWay || n.Kind == isFolder {
		a.Links, b.Links, a.Size, b.Size = 0, 0, 0, 0
	}
	return n.Name == o.Name && n.Kind == o.Kind && n.Mode == o.Mode && n.Link == o.Link && n.Unkept == o.Unkept && a == b &&
		bytes.Equal(n.Data, o.Data) && slices.Equal(n.Free, o.Free) && slices.EqualFunc(n.Inner, o.Inner, (*node).says)
}

// formHead is the start of a form. The digest of the rest follows it.
const formHead = "hone protected paths 1 "

// encodeForm returns the contents of a form. It is not JSON, because names need not
// be UTF-8.
func encodeForm(plots []written) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(plots); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b.Bytes())
	return append([]byte(formHead+hex.EncodeToString(sum[:])+"\n"), b.Bytes()...), nil
}

// decodeForm parses the contents of a form.
func decodeForm(data []byte) ([]written, error) {
	head, body, ok := bytes.Cut(data, []byte("\n"))
	sum := sha256.Sum256(body)
	if !ok || string(head) != formHead+hex.EncodeToString(sum[:]) {
		return nil, errors.New("it is damaged, or another version of hone wrote it")
	}
	var plots []written
	err := gob.NewDecoder(bytes.NewReader(body)).Decode(&plots)
	return plots, err
}

// Settle restores the protected paths that commands of earlier processes changed,
// from the forms in aside. Call it before an aside is used. It leaves a form that
// it cannot read or restore unchanged, and returns an error that names it. An
// empty aside has no forms.
func Settle(aside string) ([]sandbox.Restored, error) {
	if aside == "" {
		return nil, nil
	}
	aside, err := openAside(aside)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(aside)
	if err != nil {
		return nil, err
	}
	var restored []sandbox.Restored
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), formPrefix) {
			continue
		}
		one, err := settleFile(aside, e.Name())
		restored = append(restored, one...)
		errs = append(errs, err)
	}
	return restored, errors.Join(errs...)
}

// young is the minimum age of a lock file that counts as abandoned: between its
// creation and its locking it looks abandoned.
const young = time.Minute

// settleFile restores from one file of a form whose process has ended.
func settleFile(aside, file string) ([]sandbox.Restored, error) {
	ending := filepath.Ext(file)
	if !slices.Contains([]string{armed, idle, fresh, locked}, ending) {
		return nil, nil
	}
	path := filepath.Join(aside, file)
	name := strings.TrimSuffix(path, ending)
	info, err := os.Stat(path)
	if err != nil {
		return nil, ignoreGone(err)
	}
	lock, err := os.OpenFile(name+locked, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if ok, err := lockFile(lock); err != nil || !ok {
		return nil, errors.Join(err, lock.Close())
	}
	var restored []sandbox.Restored
	switch {
	case ending == locked && time.Since(info.ModTime()) < young:
		return nil, lock.Close()
	case ending == armed:
		if restored, err = settleForm(path, aside); err != nil {
			err = fmt.Errorf("restore what a command changed before hone was stopped: %s: %w; check the paths that it names, then move the file away", path, err)
		}
	}
	if err == nil {
		err = ignoreGone(os.Remove(path))
	}
	err = errors.Join(err, lock.Close())
	return restored, errors.Join(err, ignoreGone(os.Remove(name+locked)))
}

// settleForm restores the state that a form records.
func settleForm(path, aside string) ([]sandbox.Restored, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	forms, err := decodeForm(data)
	if err != nil {
		return nil, err
	}
	g := &Guard{form: form{aside: aside}}
	defer g.leave()
	for _, w := range forms {
		p := &plot{path: w.Path, node: w.Node}
		g.plots = append(g.plots, p)
		if err := p.pin(); err != nil {
			return nil, err
		}
		info, err := p.self.Stat()
		if err != nil {
			return nil, err
		}
		if stampOf(info).Ino != w.Node.Stamp.Ino {
			return nil, fmt.Errorf("%s is not the same directory as before", w.Path)
		}
	}
	return g.putBack()
}
