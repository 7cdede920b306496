package history

import (
	"encoding/json"
	"fmt"
	"slices"

	"hone/journal"
	"hone/model"
)

// Get reads an object; see [journal.Home.Get].
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

// StoredReply is what the object of a reply holds.
type StoredReply struct {
	Reply model.Reply     `json:"reply"`
	Raw   json.RawMessage `json:"raw,omitempty"` // as the provider sent it
}

// ReadReply reads the reply that a record names.
func ReadReply(r Replied, get Get) (model.Reply, error) {
	var stored StoredReply
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

// AddedRequest is how a request is stored that repeats an earlier one and adds
// messages to it.
type AddedRequest struct {
	After    string          `json:"after"` // object of the earlier one
	Messages []model.Message `json:"messages"`
}

// StoredRequest is what the object of a request holds: the whole request, or an
// [AddedRequest], if After is not empty.
type StoredRequest struct {
	After string `json:"after"`
	model.Request
}

// ReadRequest reads the object of a request, which [Asked] names. It does not
// read the earlier requests that this one repeats; see [ReadWholeRequest].
func ReadRequest(object string, get Get) (StoredRequest, error) {
	var stored StoredRequest
	return stored, readObject(&stored, "request", object, get)
}

// ReadWholeRequest reads the object of a request with all the messages of the earlier
// requests that it repeats.
func ReadWholeRequest(object string, get Get) (model.Request, error) {
	var messages []model.Message
	for {
		stored, err := ReadRequest(object, get)
		if err != nil {
			return stored.Request, err
		}
		messages = slices.Concat(stored.Messages, messages)
		if object = stored.After; object == "" {
			stored.Messages = messages
			return stored.Request, nil
		}
	}
}

// readObject decodes an object that holds JSON.
func readObject(v any, what, object string, get Get) error {
	b, err := get(object)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read the recorded %s in object %s: %w", what, object, err)
	}
	return nil
}
