package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

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

// StoredRequest is what the object of a request holds: the whole request or, if it has all messages
// of an earlier one of its session, the further ones.
type StoredRequest struct {
	After string `json:"after,omitempty"` // object of the earlier one; empty if this one is whole
	model.Request
}

// Added returns the stored form of a request after an earlier one of the same session, whose object
// is named. ok is false if it does not repeat that, or if the name is empty.
func Added(object string, earlier, next model.Request) (added StoredRequest, ok bool) {
	n := len(earlier.Messages)
	if object == "" || n >= len(next.Messages) || !reflect.DeepEqual(earlier.Messages, next.Messages[:n]) {
		return added, false
	}
	return StoredRequest{After: object, Request: model.Request{Messages: next.Messages[n:]}}, true
}

// ReadRequest reads the object of a request, which [Asked] names, without what it repeats of the
// earlier one.
func ReadRequest(object string, get Get) (StoredRequest, error) {
	var stored StoredRequest
	return stored, readObject(&stored, "request", object, get)
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
