package putback

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/lockedfile"

	"hone/sandbox"
)

// record is what one guard owes while its commands run. Its process has locked it meanwhile.
type record struct {
	Entries      []*entry      // to restore
	Placeholders []placeholder // to remove
}

const (
	// recordHead is the start of a record. The digest of the rest follows it.
	recordHead   = "hone record 2 "
	recordPrefix = "command-"
	// newEnding is that of a record that is being written.
	newEnding = ".new"
	// mutexName is the file that is locked while records and what they name change.
	mutexName = "mutex"
)

// writeRecord replaces a record, and syncs it to the disk. The record is not JSON, because names
// of files need not be UTF-8.
func writeRecord(path string, r record) error {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(r); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), recordPrefix+"*"+newEnding)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = fmt.Fprintf(f, "%s%x\n%s", recordHead, sha256.Sum256(body.Bytes()), body.Bytes())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err == nil {
		_ = dir.Sync() // not every system can
		err = dir.Close()
	}
	return err
}

func readRecord(path string) (r record, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	first, body, _ := bytes.Cut(data, []byte("\n"))
	if string(first) != fmt.Sprintf("%s%x", recordHead, sha256.Sum256(body)) {
		return r, errors.New("it is damaged, or another version of hone wrote it")
	}
	return r, gob.NewDecoder(bytes.NewReader(body)).Decode(&r)
}

// book is what is recorded by other guards, of all processes of the user. It does not change until it is unlocked.
type book struct {
	unlock   func()
	standing standing // all placeholders
	needed   standing // those of commands that run
	dead     []page
}

// page is a record that no command needs.
type page struct {
	record
	path    string
	damaged error
}

// openBook reads the records in a directory but one.
func openBook(aside, except string) (*book, error) {
	unlock, err := lockedfile.MutexAt(filepath.Join(aside, mutexName)).Lock()
	if err != nil {
		return nil, fmt.Errorf("lock the records of commands: %w", err)
	}
	b := &book{unlock: unlock, standing: standing{}, needed: standing{}}
	files, err := os.ReadDir(aside)
	for _, f := range files {
		path := filepath.Join(aside, f.Name())
		if !strings.HasPrefix(f.Name(), recordPrefix) || path == except {
			continue
		}
		if filepath.Ext(path) == newEnding { // its process was killed
			_ = os.Remove(path)
			continue
		}
		r, damaged := readRecord(path)
		b.standing.add(r.Placeholders)
		switch lock, locked := sandbox.Lock(path); {
		case locked == nil:
			lock()
			b.dead = append(b.dead, page{r, path, damaged})
		case ignoreMissing(damaged) != nil:
			err = errors.Join(err, fmt.Errorf("%s: %w", path, damaged))
		default:
			b.needed.add(r.Placeholders)
		}
	}
	if err != nil {
		unlock()
	}
	return b, err
}

// Recover does what earlier processes owe: it restores the protected paths that their commands changed in tree, and removes
// their placeholders everywhere. aside is the Aside of their policies. Call it before anything is read
// that a command may have changed: a configuration, and what the next policy names. A record of what cannot be done yet
// stays, and so does one that cannot be read. The error names the records that are damaged and those
// that concern tree. Placeholders whose directory is not there are no error.
func Recover(aside, tree string) (all []sandbox.Restored, err error) {
	files, err := os.ReadDir(aside)
	if !slices.ContainsFunc(files, func(f fs.DirEntry) bool { return strings.HasPrefix(f.Name(), recordPrefix) }) {
		return nil, ignoreMissing(err)
	}
	b, err := openBook(aside, "")
	if err != nil {
		return nil, err
	}
	defer b.unlock()
	if real, err := filepath.EvalSymlinks(tree); err == nil { // as in a record
		tree = real
	}
	for _, p := range b.dead {
		concerned := p.damaged != nil || p.concerns(tree)
		failed := p.damaged
		if concerned && failed == nil {
			var restored []sandbox.Restored
			restored, failed = restore(p.Entries, aside, b.standing)
			all = append(all, restored...)
		}
		owed := remove(p.Placeholders, b.needed)
		if failed == nil && owed == nil && (concerned || len(p.Entries) == 0) {
			failed = os.Remove(p.path)
		}
		if !errors.Is(owed, errAway) {
			failed = errors.Join(failed, owed)
		}
		if failed != nil && concerned {
			err = errors.Join(err, fmt.Errorf("restore what a command changed before hone was stopped: %s: %w; check the paths that it names, then move the file away", p.path, failed))
		}
	}
	return all, err
}

func (r record) concerns(tree string) bool {
	related := func(dir string) bool { return sandbox.Within(tree, dir) || sandbox.Within(dir, tree) }
	return slices.ContainsFunc(r.Entries, func(e *entry) bool { return related(e.Dir) }) ||
		slices.ContainsFunc(r.Placeholders, func(p placeholder) bool { return related(p.Root) })
}

// ignoreMissing returns err unless it means that nothing is at a path.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}
