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

// form is what a guard keeps in Aside while a command runs, for the case that
// this process does not live to put things back. It is one file, armed while a
// command runs and idle between two, so that it is written, and synced, only
// when what is protected is not what it was. A lock beside it says that its
// process is alive.
//
// That a form is armed again is not synced: the death of the process is
// survived, and a power cut but for its last seconds.
type form struct {
	aside string // empty: nothing is kept
	name  string // the path of its files, without their endings
	lock  *os.File
	plots []written // as it was written; nil while nothing is
}

// written is a plot as it is written.
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

// arm writes down what a look found.
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
		return fmt.Errorf("write down what commands must not change: %w", err)
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

// claim takes a name for the form.
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
		return errors.Join(fmt.Errorf("%s cannot be locked", name+locked), err, file.Close())
	}
	f.name, f.lock = name, file
	return nil
}

// disarm says that nothing needs to be put back.
func (f *form) disarm() error {
	if f.aside == "" {
		return nil
	}
	return ignoreGone(os.Rename(f.name+armed, f.name+idle))
}

// close removes the form, unless something is still owed.
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

// says reports whether what is written is as good as another: it brings the
// same back. Of what it cannot bring back the stamps count, as a change is told
// by them.
func (w written) says(other written) bool {
	return w.Path == other.Path && w.Node.Stamp.Ino == other.Node.Stamp.Ino && w.Node.says(other.Node)
}

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

// formHead begins a form, with the digest of the rest behind it.
const formHead = "hone protected paths 1 "

// encodeForm is a form: its head, and what was found. It is no JSON, as names
// need not be UTF-8.
func encodeForm(plots []written) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(plots); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b.Bytes())
	return append([]byte(formHead+hex.EncodeToString(sum[:])+"\n"), b.Bytes()...), nil
}

// decodeForm reads a form.
func decodeForm(data []byte) ([]written, error) {
	head, body, ok := bytes.Cut(data, []byte("\n"))
	sum := sha256.Sum256(body)
	if !ok || string(head) != formHead+hex.EncodeToString(sum[:]) {
		return nil, errors.New("it is damaged, or of another version of hone")
	}
	var plots []written
	err := gob.NewDecoder(bytes.NewReader(body)).Decode(&plots)
	return plots, err
}

// Settle puts back what commands of processes that are gone did to protected
// paths, by the forms in aside; it is the first thing that is done with an
// aside. What it cannot read or put back it leaves as it is, with an error that
// names it.
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

// young is how old a file of a form must be before it is taken for a dead
// process's: between its making and its locking it is nobody's.
const young = time.Minute

// settleFile deals with one file of a form whose process is gone.
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
			err = fmt.Errorf("put back what a command changed before hone was ended: %s: %w; look at what it names, then move it away", path, err)
		}
	}
	if err == nil {
		err = ignoreGone(os.Remove(path))
	}
	err = errors.Join(err, lock.Close())
	return restored, errors.Join(err, ignoreGone(os.Remove(name+locked)))
}

// settleForm puts back what a form says.
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
			return nil, fmt.Errorf("%s is another folder than it was then", w.Path)
		}
	}
	return g.putBack()
}
