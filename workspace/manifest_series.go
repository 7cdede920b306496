package workspace

import (
	"fmt"
	"slices"
)

// Stored is a stored manifest. The zero Stored was never stored.
type Stored struct {
	Name     string // SHA-256 of its text in hex
	Manifest Manifest
}

// StoreNext stores m as the successor of s. If m equals s, it stores nothing and returns s.
// After an error it returns s too.
//
// Contract: put stores a text and returns its SHA-256 in hex.
func (s Stored) StoreNext(m Manifest, put func(text []byte) (name string, err error)) (Stored, error) {
	if s.Name != "" && slices.EqualFunc(s.Manifest, m, Entry.equal) {
		return s, nil
	}
	name, err := put(m.Encode())
	if err != nil {
		return s, err
	}
	return Stored{name, m}, nil
}

// ReadManifest reads a manifest. get is as Series.Get.
func ReadManifest(name string, get func(name string) ([]byte, error)) (Stored, error) {
	s := Series{Get: get}
	_, err := s.MoveTo(name)
	return s.now, err
}

// Series reads manifests one after another, in any order, and decodes only what differs from
// the one before. A Series with Get set is ready to use and is at no manifest. It is not for
// use by several goroutines at once.
type Series struct {
	// Get reads a text by its name. Contract: it returns the text of that name
	// or an error; only hone wrote the texts.
	Get func(name string) ([]byte, error)

	now  Stored
	text []byte
}

// Name returns the name of the current manifest, empty before the first.
func (s *Series) Name() string { return s.now.Name }

// Entry returns the entry of a path in the current manifest and whether there
// is one.
func (s *Series) Entry(path string) (Entry, bool) { return s.now.Manifest.Entry(path) }

// Manifest returns the current manifest. The caller must not change it.
func (s *Series) Manifest() Manifest { return s.now.Manifest }

// Stored returns the current manifest with its name.
func (s *Series) Stored() Stored { return s.now }

// MoveTo moves to the manifest of a name and returns the differences, as
// [Manifest.Diff] does; nil for the first manifest.
func (s *Series) MoveTo(name string) ([]Delta, error) {
	if name == s.now.Name {
		return nil, nil
	}
	text, err := s.Get(name)
	var m Manifest
	if err == nil {
		m, err = decodeAfter(text, s.now.Manifest, s.text)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %.12s: %w", name, err)
	}
	before := s.now
	s.now, s.text = Stored{name, m}, text
	if before.Name == "" {
		return nil, nil
	}
	return before.Manifest.Diff(m), nil
}
