package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"hone/journal"
	"hone/workspace"
)

// Needed is an object that the events of a run need.
type Needed struct {
	Name string
	Size int64 // in bytes; less than 0 if it is not known
	// Manifest means that it is a tree's manifest.
	Manifest bool
	// Paths are those of the files that had these contents. Nil means that it is a record
	// of the run, or contents that a model or the user wrote for an edit.
	Paths []string
}

// NeededObjects returns the objects that the events of a run need, in the order in which they
// name them: requests, replies and results, manifests, and the contents of the files in
// these and of edits. Contents that were not stored are left out. If an object that names
// others, or a reply, is missing, the error wraps [fs.ErrNotExist], and the list has the
// others.
func NeededObjects(home *journal.Home, events []journal.Event) ([]Needed, error) {
	n := newNeeds(home)
	var lost error
	for _, e := range events {
		n.lost = nil
		if err := n.addJSON(e.Line()); err != nil {
			return nil, fmt.Errorf("find what event %d (%s) needs: %w", e.Seq, e.Type, err)
		}
		if n.lost != nil && lost == nil {
			lost = fmt.Errorf("find what event %d (%s) needs: %w", e.Seq, e.Type, n.lost)
		}
	}
	for i := range n.list {
		if n.written[n.list[i].Name] {
			n.list[i].Paths = nil
		}
	}
	return n.list, lost
}

// Manifests returns those of the objects that are manifests: what is known of the trees
// without the contents of files.
func Manifests(home *journal.Home, events []journal.Event) ([]Needed, error) {
	n := newNeeds(home)
	for _, e := range events {
		if m := Decode(e).Manifest(); m != "" {
			if err := n.addManifest(m); err != nil {
				return nil, fmt.Errorf("find the manifest of event %d (%s): %w", e.Seq, e.Type, err)
			}
		}
	}
	return slices.DeleteFunc(n.list, func(o Needed) bool { return !o.Manifest }), nil
}

type needs struct {
	home    *journal.Home
	list    []Needed
	index   map[string]int  // in the list, by name
	written map[string]bool // contents that a model or the user wrote for an edit
	tree    workspace.Series
	lost    error // about the first missing object of an event; nil if none is
}

func newNeeds(home *journal.Home) *needs {
	n := &needs{home: home, index: map[string]int{}, written: map[string]bool{}}
	n.tree.Get = func(name string) ([]byte, error) {
		b, err := n.read(name)
		if err == nil {
			n.list[n.index[name]].Manifest = true
		}
		return b, err
	}
	return n
}

// The path is empty, or that of a file with these contents.
func (n *needs) add(name string, size int64, path string) {
	i, ok := n.index[name]
	if !ok {
		i = len(n.list)
		n.index[name] = i
		n.list = append(n.list, Needed{Name: name, Size: size})
	}
	if path != "" && !slices.Contains(n.list[i].Paths, path) {
		n.list[i].Paths = append(n.list[i].Paths, path)
	}
}

func (n *needs) read(name string) ([]byte, error) {
	b, err := n.home.Get(name)
	if err == nil {
		n.add(name, int64(len(b)), "")
	}
	return b, err
}

// A value names an object if it is a digest and nothing else, so that a text cannot name one.
func (n *needs) addJSON(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return n.addValue("", "", v)
}

// path is that of the file that the value is about; it may be empty.
func (n *needs) addValue(key, path string, v any) error {
	switch v := v.(type) {
	case string:
		err := n.addName(key, path, v)
		if errors.Is(err, fs.ErrNotExist) {
			n.lost, err = cmp.Or(n.lost, err), nil
		}
		return err
	case []any:
		for _, one := range v {
			if err := n.addValue(key, path, one); err != nil {
				return err
			}
		}
	case map[string]any:
		if p, ok := v["path"].(string); ok {
			path = p
		}
		if written, ok := v["digest"].(string); ok && (key == "after" || key == "edited") {
			n.written[written] = true
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := n.addValue(key, path, v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *needs) addName(key, path, name string) error {
	if len(name) != 64 {
		return nil
	}
	switch key {
	case "manifest":
		return n.addManifest(name)
	case "request", "after":
		return n.addRequest(name)
	case "result_object":
		if _, known := n.index[name]; known {
			return nil
		}
		b, err := n.read(name)
		if err != nil {
			return err
		}
		return n.addJSON(b)
	case "reply", "object", "attempted":
		n.written[name] = true
		if !n.home.Has(name) {
			_, err := n.home.Get(name)
			return err
		}
	}
	if _, known := n.index[name]; known || n.home.Has(name) {
		n.add(name, -1, path)
	}
	return nil
}

func (n *needs) addManifest(name string) error {
	first := n.tree.Name() == ""
	deltas, err := n.tree.MoveTo(name)
	if err != nil {
		return err
	}
	if first {
		deltas = workspace.Manifest(nil).Diff(n.tree.Manifest())
	}
	for _, d := range deltas {
		if e := d.After; e.Kind == workspace.Regular && n.home.Has(e.Digest) {
			n.add(e.Digest, e.Size, e.Path)
		}
	}
	return nil
}

func (n *needs) addRequest(name string) error {
	for name != "" {
		if _, known := n.index[name]; known {
			return nil
		}
		b, err := n.read(name)
		if err != nil {
			return err
		}
		var r struct {
			After string `json:"after"`
		}
		if err := json.Unmarshal(b, &r); err != nil {
			return fmt.Errorf("the request %.12s: %w", name, err)
		}
		name = r.After
	}
	return nil
}
