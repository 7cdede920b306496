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
	"syscall"
)

// recordHead is the start of a record. The digest of the rest follows it.
const recordHead = "hone record 1 "

// writeRecord replaces a record by a value, and syncs it to the disk. Its temporary file has
// the name of the record and another ending. The record is not JSON, because names
// of files need not be UTF-8.
func writeRecord(path string, value any) error {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(value); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
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

// readRecord reads a record into the value that a pointer points to.
func readRecord(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	first, body, _ := bytes.Cut(data, []byte("\n"))
	if string(first) != fmt.Sprintf("%s%x", recordHead, sha256.Sum256(body)) {
		return errors.New("it is damaged, or another version of hone wrote it")
	}
	return gob.NewDecoder(bytes.NewReader(body)).Decode(value)
}

// ignoreMissing returns err unless it means that nothing is at a path.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}
