// Package bundle writes and reads a run as one file, to move it to another machine.
//
// A bundle is a tar archive that is compressed with zstd, so that other programs can
// read it, as with zstd -dc run.hone | tar -x. It has these entries, in this order, all of
// them regular files:
//
//	bundle.json     the [Header], as JSON
//	journal.jsonl   the run's journal, line by line as it was recorded
//	objects/NAME    an object that the journal needs, not compressed; NAME is its
//	                SHA-256 in hex, and each object appears once
//
// [Write] writes a bundle, and [NewReader] reads one that may come from anyone. The
// reader guarantees that the journal is complete, that its chain is right and ends with
// the hash in the header, that each object has its name, and that nothing follows. It
// returns no more bytes than its caller allows, and needs little memory whatever the file
// contains, except for the journal. It accepts no names but those above, so that no
// bundle can name another file.
//
// The reader does not guarantee who recorded the run, or that the objects are those that
// the journal needs.
package bundle

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"hone/journal"
)

// Format is the format that this package writes, and the only one that it reads.
const Format = 1

const (
	headerName   = "bundle.json"
	journalName  = "journal.jsonl"
	objectPrefix = "objects/"
)

// window is how far back the compression looks, and so the memory that reading takes.
const window = 8 << 20

// Header is the first entry of a bundle.
type Header struct {
	Format  int    `json:"format"`
	Hone    string `json:"hone"` // version of the program that wrote the bundle
	Run     string `json:"run"`
	Events  int    `json:"events"`  // number of lines of the journal
	Head    string `json:"head"`    // SHA-256 of the last one
	Objects int    `json:"objects"` // number of objects
	// Base is the commit that was checked out where the run was exported; empty if there
	// was none.
	Base string `json:"base,omitempty"`
	// Without is the commit whose files the bundle leaves out; empty if it leaves out none.
	Without string `json:"without,omitempty"`
	// Withheld are the paths of files whose contents the journal needs to restore them,
	// and which the bundle leaves out.
	Withheld []string `json:"withheld,omitempty"`
}

// Object is an object of a bundle.
type Object struct {
	Name string
	Size int64 // in bytes; less than 0 if it is not known, so that it is read into memory
}

// Write writes a bundle of the events, which are a run's first ones, and of the objects.
// It sets Format, Run, Events, Head and Objects in the header. open opens an object, as
// [journal.Home.OpenObject] does.
func Write(w io.Writer, h Header, events []journal.Event, list []Object, open func(name string) (io.ReadCloser, error)) error {
	if len(events) == 0 {
		return fmt.Errorf("write a bundle: the run has no events")
	}
	last := events[len(events)-1]
	h.Format, h.Run, h.Events, h.Head, h.Objects = Format, last.Run, len(events), last.Hash(), len(list)
	// A better level finds what manifests of large trees have in common.
	z, err := zstd.NewWriter(w, zstd.WithWindowSize(window), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return err
	}
	defer z.Close()
	t := &writer{tar.NewWriter(z)}
	head, err := json.MarshalIndent(h, "", "  ")
	if err == nil {
		err = t.add(headerName, append(head, '\n'))
	}
	if err == nil {
		err = t.add(journalName, journal.Lines(events))
	}
	for i := 0; err == nil && i < len(list); i++ {
		err = t.addObject(list[i], open)
	}
	if err == nil {
		err = t.tar.Close()
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return fmt.Errorf("write a bundle: %w", err)
	}
	return nil
}

type writer struct{ tar *tar.Writer }

func (t *writer) add(name string, content []byte) error {
	return t.copy(name, int64(len(content)), bytes.NewReader(content))
}

func (t *writer) addObject(o Object, open func(string) (io.ReadCloser, error)) error {
	in, err := open(o.Name)
	if err != nil {
		return err
	}
	defer in.Close()
	if o.Size >= 0 {
		return t.copy(objectPrefix+o.Name, o.Size, in)
	}
	content, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	return t.add(objectPrefix+o.Name, content)
}

func (t *writer) copy(name string, size int64, from io.Reader) error {
	if err := t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600}); err != nil {
		return err
	}
	_, err := io.Copy(t.tar, from)
	return err
}
