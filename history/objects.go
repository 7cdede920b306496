package history

import (
	"encoding/json"
	"errors"
	"fmt"
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
