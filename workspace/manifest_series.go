package workspace

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A tree is inspected often and changes little. So most manifests are stored as
// changes since the previous one ([Stored.StoreNext]), and only a few complete.
// The cost is that of the changes. So is the cost of moving from one manifest
// to the next with a [Series].

const (
	// maxLinks is the maximum number of successive changes after a complete
	// manifest. It limits the cost of reading the last one.
	maxLinks = 20
	// fullShare limits the length of changes to this fraction of the complete
	// manifest: 4 means a quarter.
	fullShare = 4
)

// Stored is a stored manifest. The zero Stored is an empty manifest that was
// never stored.
type Stored struct {
	Name     string // SHA-256 of its text in hex
	Manifest Manifest

	links    int // number of changes since a complete manifest
	fullSize int // length of that manifest's text in bytes
}

// StoreNext stores m as the successor of s: as changes if they are few, and
// complete if they are many, if s is zero, or after many changes in a row. If m
// equals s, StoreNext stores nothing and returns s. After an error it returns s
// too.
//
// Contract: put stores a text and returns its SHA-256 in hex.
func (s Stored) StoreNext(m Manifest, put func(text []byte) (name string, err error)) (Stored, error) {
	if s.Name != "" {
		c := m.changesSince(s.Manifest, s.Name)
		if len(c.list) == 0 {
			return s, nil
		}
		if text := c.encode(); s.links < maxLinks && len(text) <= s.fullSize/fullShare {
			name, err := put(text)
			if err != nil {
				return s, err
			}
			return Stored{Name: name, Manifest: m, links: s.links + 1, fullSize: s.fullSize}, nil
		}
	}
	text := m.Encode()
	name, err := put(text)
	if err != nil {
		return s, err
	}
	return Stored{Name: name, Manifest: m, fullSize: len(text)}, nil
}

// ReadManifest reads a manifest stored by [Stored.StoreNext]. get is as
// Series.Get.
func ReadManifest(name string, get func(name string) ([]byte, error)) (Stored, error) {
	s := Series{Get: get}
	if _, err := s.MoveTo(name); err != nil {
		return Stored{}, err
	}
	return s.Stored(), nil
}

// Series moves between manifests stored by [Stored.StoreNext], in any order. In
// the order of storing, a move costs only what changed. A Series with Get set
// is ready to use and is at no manifest. It is not for use by several
// goroutines at once.
type Series struct {
	// Get reads a text by its name. Contract: it returns the text of that name
	// or an error; only hone wrote the texts.
	Get func(name string) ([]byte, error)

	name     string
	base     Manifest         // some manifest of the series
	text     []byte           // its text; nil if unknown
	since    map[string]Entry // how the current manifest differs from base; no kind means removed
	links    int
	fullSize int
}

// Name returns the name of the current manifest, empty before the first.
func (s *Series) Name() string { return s.name }

// Entry returns the entry of a path in the current manifest and whether there
// is one.
func (s *Series) Entry(path string) (Entry, bool) {
	e, ok := s.since[path]
	switch {
	case !ok:
		return s.base.Entry(path)
	case e.Kind == "":
		return Entry{}, false
	}
	return e, true
}

// Manifest returns the current manifest. The caller must not change it.
func (s *Series) Manifest() Manifest {
	if len(s.since) == 0 {
		return s.base
	}
	m := make(Manifest, 0, len(s.base)+len(s.since))
	rest := s.base
	for _, path := range slices.Sorted(maps.Keys(s.since)) {
		i, found := rest.search(path)
		m = append(m, rest[:i]...)
		if rest = rest[i:]; found {
			rest = rest[1:]
		}
		if e := s.since[path]; e.Kind != "" {
			m = append(m, e)
		}
	}
	s.base, s.text, s.since = slices.Clip(append(m, rest...)), nil, nil
	return s.base
}

// Stored returns the current manifest in a form that others can be stored
// after.
func (s *Series) Stored() Stored {
	return Stored{Name: s.name, Manifest: s.Manifest(), links: s.links, fullSize: s.fullSize}
}

// MoveTo moves to the manifest of a name and returns the differences, as
// [Manifest.Diff] does; nil for the first manifest. The error reports a text
// that is missing or that StoreNext would not write in this place. The series
// must not be used after an error.
func (s *Series) MoveTo(name string) ([]Delta, error) {
	if name == s.name {
		return nil, nil
	}
	links, whole, err := s.chainTo(name)
	first, was := s.name == "", map[string]Entry{}
	if err == nil && whole != nil {
		err = s.applyFull(whole, was)
	}
	if err == nil {
		err = s.applyChanges(links, was)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %.12s: %w", name, err)
	}
	if s.name = name; first {
		return nil, nil
	}
	return s.deltas(was), nil
}

// chainTo reads the texts that lead to a manifest: changes, last first, and the
// complete manifest that they start from. whole is nil if they start from the
// current manifest.
func (s *Series) chainTo(name string) (links []changes, whole []byte, err error) {
	for at := name; at != s.name; at = links[len(links)-1].base {
		text, err := s.Get(at)
		if err == nil && len(text) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			return nil, nil, err
		}
		if !isChanges(text) {
			return links, text, nil
		}
		c, err := decodeChanges(text)
		if err == nil && len(links) == maxLinks {
			err = fmt.Errorf("it depends on more than %d changes", maxLinks)
		}
		if err != nil {
			return nil, nil, err
		}
		links = append(links, c)
	}
	return links, nil, nil
}

// After the first one, it decodes only the entries that differ from base.
func (s *Series) applyFull(text []byte, was map[string]Entry) (err error) {
	s.links, s.fullSize = 0, len(text)
	if s.name == "" {
		s.base, err = DecodeManifest(text)
		s.text = text
		return err
	}
	if s.text == nil {
		s.text = s.Manifest().Encode()
	}
	list, err := s.base.changesTo(s.text, text)
	if err != nil {
		return err
	}
	since := make(map[string]Entry, len(list))
	for _, e := range list {
		since[e.Path] = e
		was[e.Path], _ = s.Entry(e.Path)
	}
	for path := range s.since {
		was[path], _ = s.Entry(path)
	}
	s.since = since
	return nil
}

// applyChanges applies changes, last first, to the current manifest. It adds
// the previous entries of changed paths to was, unless they are already there.
func (s *Series) applyChanges(links []changes, was map[string]Entry) error {
	if s.since == nil {
		s.since = map[string]Entry{}
	}
	for _, c := range slices.Backward(links) {
		for _, e := range c.list {
			now, there := s.Entry(e.Path)
			switch _, known := was[e.Path]; {
			case e.Kind == "" && !there:
				return fmt.Errorf("%q is removed but did not exist", e.Path)
			case there && now.equal(e):
				return fmt.Errorf("%q is changed but has the same state as before", e.Path)
			case !known:
				was[e.Path] = now
			}
			s.since[e.Path] = e
		}
	}
	s.links += len(links)
	return nil
}

func (s *Series) deltas(was map[string]Entry) []Delta {
	var list []Delta
	for _, path := range slices.Sorted(maps.Keys(was)) {
		d := Delta{Path: path, Op: Changed, Before: was[path]}
		d.After, _ = s.Entry(path)
		switch {
		case d.Before.equalButStamp(d.After):
			continue
		case d.Before.Kind == "":
			d.Op = Added
		case d.After.Kind == "":
			d.Op = Removed
		}
		list = append(list, d)
	}
	return list
}
