package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"

	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// DigestOf returns the digest of a value's encoding.
func DigestOf(v any) (string, error) {
	b, err := journal.Encode(v)
	return workspace.Digest(b), err
}

// Get reads an object; see [journal.Home.Get]. nil means that none can be read.
type Get func(object string) ([]byte, error)

// StoredResult is the payload of a record whose result is too long for the line.
type StoredResult struct {
	Object string `json:"result_object"`  // object with the result
	Said   string `json:"said,omitempty"` // of the result, as in [Report]
}

// ReadResult reads what a step recorded, from the event or from the object that
// it names.
func ReadResult[T any](e journal.Event, get Get) (T, error) {
	var v T
	var stored StoredResult
	if err := e.Decode(&stored); err != nil {
		return v, err
	}
	if stored.Object == "" {
		return v, e.Decode(&v)
	}
	return v, readObject(&v, "result", stored.Object, get)
}

// Report returns what the record of a loop's own step or command tells users; zero if it
// tells nothing. A long report has no Log if get is nil or fails.
func (e Event) Report(get Get) Report {
	var line Report
	if e.Decode(&line) != nil || line.Said == "" {
		return Report{}
	}
	if whole, err := ReadResult[Report](e.Event, get); err == nil {
		return whole
	}
	return line
}

// StoredReply is what a record has of a reply.
type StoredReply struct {
	Reply model.Reply     `json:"reply"`
	Raw   json.RawMessage `json:"raw,omitempty"` // as the provider sent it
}

// ReadReply reads the reply that a record has or names.
func ReadReply(r Replied, get Get) (model.Reply, error) {
	var stored StoredReply
	if r.Stored != "" {
		get = func(string) ([]byte, error) { return []byte(r.Stored), nil }
	}
	err := readObject(&stored, "reply", r.Reply, get)
	stored.Reply.Raw = stored.Raw
	return stored.Reply, err
}

// Arguments returns the arguments of a tool call, as the model wrote them.
func (c ToolCall) Arguments(get Get) (string, error) {
	if c.Object == "" {
		return c.Args, nil
	}
	b, err := get(c.Object)
	return string(b), err
}

// AddedRequest is the stored form of a request that repeats an earlier one. The request
// has all messages of the earlier one and further ones, or the first parts of its only
// message and further ones. An event of the same run names the earlier one.
type AddedRequest struct {
	After    string          `json:"after"` // object of the earlier one
	Messages []model.Message `json:"messages,omitempty"`
	// Repeated is the number of parts that the request repeats; 0 if it repeats the
	// messages. Parts are those that follow.
	Repeated int          `json:"repeated,omitempty"`
	Parts    []model.Part `json:"parts,omitempty"`
}

// Added returns the stored form of a request that follows an earlier one, whose object is named. ok is false if it does not repeat
// that, or if the name is empty.
func Added(object string, earlier, next model.Request) (added AddedRequest, ok bool) {
	if object == "" {
		return added, false
	}
	was, err := DigestOf([]any{earlier.System, earlier.Tools, earlier.Reasoning})
	now, err2 := DigestOf([]any{next.System, next.Tools, next.Reasoning})
	if err != nil || err2 != nil || was != now {
		return added, false
	}
	sent, messages := earlier.Messages, next.Messages
	n := len(sent)
	if n < len(messages) && reflect.DeepEqual(sent, messages[:n]) {
		return AddedRequest{After: object, Messages: messages[n:]}, true
	}
	if n != 1 || len(messages) != 1 || sent[0].Role != messages[0].Role {
		return added, false
	}
	parts, same := messages[0].Parts, 0
	for same < min(len(sent[0].Parts), len(parts)) && reflect.DeepEqual(sent[0].Parts[same], parts[same]) {
		same++
	}
	return AddedRequest{After: object, Repeated: same, Parts: parts[same:]}, same > 0
}

// StoredRequest is what the object of a request holds: the whole request, or an
// [AddedRequest], if After is not empty.
type StoredRequest struct {
	After    string       `json:"after"`
	Repeated int          `json:"repeated"`
	Parts    []model.Part `json:"parts"`
	model.Request
}

func (s StoredRequest) follow(earlier model.Request) (model.Request, error) {
	if s.Repeated == 0 {
		earlier.Messages = append(earlier.Messages, s.Messages...)
		return earlier, nil
	}
	if len(earlier.Messages) != 1 || s.Repeated > len(earlier.Messages[0].Parts) {
		return earlier, fmt.Errorf("a recorded request repeats %d parts, and the request before it has fewer", s.Repeated)
	}
	m := &earlier.Messages[0]
	m.Parts = append(m.Parts[:s.Repeated], s.Parts...)
	return earlier, nil
}

// ReadRequest reads the object of a request, which [Asked] names. It does not
// read the earlier requests that this one repeats; see [ReadWholeRequest].
func ReadRequest(object string, get Get) (StoredRequest, error) {
	var stored StoredRequest
	return stored, readObject(&stored, "request", object, get)
}

// ReadWholeRequest reads the object of a request with everything that it repeats of
// earlier requests.
func ReadWholeRequest(object string, get Get) (model.Request, error) {
	var chain []StoredRequest // newest first
	for object != "" {
		stored, err := ReadRequest(object, get)
		if err != nil {
			return stored.Request, err
		}
		chain = append(chain, stored)
		object = stored.After
	}
	last := len(chain) - 1
	whole := chain[last].Request
	for _, added := range slices.Backward(chain[:last]) {
		var err error
		if whole, err = added.follow(whole); err != nil {
			return whole, err
		}
	}
	return whole, nil
}

var errNoObjects = errors.New("no objects can be read")

func readObject(v any, what, object string, get Get) error {
	if get == nil {
		return errNoObjects
	}
	b, err := get(object)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read the recorded %s in object %s: %w", what, object, err)
	}
	return nil
}

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
