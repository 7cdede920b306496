package putback

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hone/sandbox"
)

// recordHead is the start of a record. The digest of the rest follows it.
const recordHead = "hone protected paths 2 "

// writeRecord replaces a record, and syncs it to the disk. A record is not JSON,
// because names need not be UTF-8.
func writeRecord(path string, record any) error {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(record); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), recordPrefix+"*")
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

// readRecord reads a record that writeRecord wrote.
func readRecord(path string, record any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, body, _ := bytes.Cut(data, []byte("\n"))
	if string(head) != fmt.Sprintf("%s%x", recordHead, sha256.Sum256(body)) {
		return errors.New("it is damaged, or another version of hone wrote it")
	}
	return gob.NewDecoder(bytes.NewReader(body)).Decode(record)
}

// Settle restores the protected paths that commands of earlier processes changed,
// from the records in aside, which no living process may use. It leaves a record that
// it cannot read or restore unchanged, and returns an error that names it.
func Settle(aside string) ([]sandbox.Restored, error) {
	files, err := os.ReadDir(aside)
	errs := []error{ignoreMissing(err)}
	var restored []sandbox.Restored
	for _, f := range files {
		path := filepath.Join(aside, f.Name())
		if !strings.HasPrefix(f.Name(), recordPrefix) {
			continue
		}
		if strings.HasSuffix(path, armed) {
			changes, err := settle(path)
			restored = append(restored, changes...)
			if err != nil {
				errs = append(errs, fmt.Errorf("restore what a command changed before hone was stopped: %s: %w; check the paths that it names, then move the file away", path, err))
				continue
			}
		}
		errs = append(errs, ignoreMissing(os.Remove(path)))
	}
	return restored, errors.Join(errs...)
}

// settle restores what a record contains.
func settle(path string) ([]sandbox.Restored, error) {
	g := &Guard{aside: filepath.Dir(path)}
	if err := readRecord(path, &g.trees); err != nil {
		return nil, err
	}
	for _, t := range g.trees {
		defer t.close()
		if err := t.open(); err != nil {
			return nil, err
		}
		info, err := t.self.Stat()
		if err != nil {
			return nil, err
		}
		if stampOf(info).Inode != t.Items["."].Stamp.Inode {
			return nil, fmt.Errorf("%s is not the same directory as before", t.Path)
		}
	}
	return g.putBack()
}
