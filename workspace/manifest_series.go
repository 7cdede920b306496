package workspace

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A tree is looked at often and changes little. Of the manifests that are kept
// one after the other a few are kept whole, and the others as changes to the
// one before ([Stored.Next]), so that each costs what has changed. A [Series]
// goes from one to the next at that cost as well.

const (
	// mostLinks is how many changes in a row lead from a whole manifest to the
	// last one: reading one back costs no more than that.
	mostLinks = 20
	// wholeShare is the part of a whole manifest's length from which on changes
	// are not worth it: one to so many.
	wholeShare = 4
)

// Stored is a manifest and how it is kept. Zero is an empty one that is not.
type Stored struct {
	Name     string // of its text: SHA-256 in hex
	Manifest Manifest

	links int // changes between a whole manifest and this one
	whole int // length in bytes of the whole one's text
}

// Next keeps m as what comes after s: as changes to it where they are few, and
// whole where they are many, where s is zero, and at the end of a long row of
// changes. Where m is what s is, nothing is kept, and s is the answer; so it is
// with an error.
//
// Contract: put keeps a text and answers with its SHA-256 in hex.
func (s Stored) Next(m Manifest, put func(text []byte) (name string, err error)) (Stored, error) {
	if s.Name != "" {
		c := m.changesSince(s.Manifest, s.Name)
		if len(c.list) == 0 {
			return s, nil
		}
		if text := c.encode(); s.links < mostLinks && len(text) <= s.whole/wholeShare {
			name, err := put(text)
			if err != nil {
				return s, err
			}
			return Stored{Name: name, Manifest: m, links: s.links + 1, whole: s.whole}, nil
		}
	}
	text := m.Encode()
	name, err := put(text)
	if err != nil {
		return s, err
	}
	return Stored{Name: name, Manifest: m, whole: len(text)}, nil
}

// ReadManifest reads a manifest that was kept by [Stored.Next], whether as
// changes or whole. get is as in [Series].
func ReadManifest(name string, get func(name string) ([]byte, error)) (Stored, error) {
	s := Series{Get: get}
	if _, err := s.Go(name); err != nil {
		return Stored{}, err
	}
	return s.Stored(), nil
}

// Series goes through manifests that were kept by [Stored.Next], in any order;
// in the order in which they were kept it costs what has changed. With Get set
// it is ready, and stands at no manifest. It is not for use by several
// goroutines at once.
type Series struct {
	// Get reads a text by its name. Contract: it answers with the text of that
	// name or an error; the texts were written by nobody but hone.
	Get func(name string) ([]byte, error)

	name  string
	base  Manifest         // some manifest of the series
	text  []byte           // its text; nil: not known
	since map[string]Entry // how the one at hand differs from it; of no kind: gone
	links int
	whole int
}

// Name is that of the manifest at hand; empty before the first.
func (s *Series) Name() string { return s.name }

// Entry finds a path in the manifest at hand.
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

// Manifest is the one at hand. It is not to be changed.
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

// Stored is the manifest at hand, so that others can be kept after it.
func (s *Series) Stored() Stored {
	return Stored{Name: s.name, Manifest: s.Manifest(), links: s.links, whole: s.whole}
}

// Go goes to the manifest of a name, and says what became of the paths on the
// way there, as [Manifest.Diff] does; nil for the first. A text that is missing,
// or not as Next writes it, alone or after the one before, is an error; the
// series is of no more use then.
func (s *Series) Go(name string) ([]Delta, error) {
	if name == s.name {
		return nil, nil
	}
	links, whole, err := s.way(name)
	first, was := s.name == "", map[string]Entry{}
	if err == nil && whole != nil {
		err = s.restart(whole, was)
	}
	if err == nil {
		err = s.follow(links, was)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %.12s: %w", name, err)
	}
	if s.name = name; first {
		return nil, nil
	}
	return s.deltas(was), nil
}

// way reads what leads to a manifest: changes, the last first, to a whole one,
// or, where that is nil, to the one at hand.
func (s *Series) way(name string) (links []changes, whole []byte, err error) {
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
		if err == nil && len(links) == mostLinks {
			err = fmt.Errorf("it is made of more than %d changes", mostLinks)
		}
		if err != nil {
			return nil, nil, err
		}
		links = append(links, c)
	}
	return links, nil, nil
}

// restart goes to a manifest that was kept whole, and adds how paths were. Of
// the second and later ones it decodes only what is not as in the base.
func (s *Series) restart(text []byte, was map[string]Entry) (err error) {
	s.links, s.whole = 0, len(text)
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

// follow makes changes, the last first, to the manifest at hand, and adds how
// paths were that it does not know of yet.
func (s *Series) follow(links []changes, was map[string]Entry) error {
	if s.since == nil {
		s.since = map[string]Entry{}
	}
	for _, c := range slices.Backward(links) {
		for _, e := range c.list {
			now, there := s.Entry(e.Path)
			switch _, known := was[e.Path]; {
			case e.Kind == "" && !there:
				return fmt.Errorf("%q is gone and was not there", e.Path)
			case there && now.equal(e):
				return fmt.Errorf("%q is changed and is what it was", e.Path)
			case !known:
				was[e.Path] = now
			}
			s.since[e.Path] = e
		}
	}
	s.links += len(links)
	return nil
}

// deltas says what became of paths that were so.
func (s *Series) deltas(was map[string]Entry) []Delta {
	var list []Delta
	for _, path := range slices.Sorted(maps.Keys(was)) {
		d := Delta{Path: path, Op: Changed, Before: was[path]}
		d.After, _ = s.Entry(path)
		switch {
		case d.Before.same(d.After):
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
