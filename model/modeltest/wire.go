package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
)

// Wire encodes turns in a provider's protocol. A provider with a protocol of
// its own implements it in its tests, as [Provider.Wire].
//
// Each method that receives a Turn encodes these of its fields: Text, Calls,
// Thinking, Finish, Detail and Usage in Events and Body; Status, Message and
// Code in Error. The server itself acts on the others.
type Wire interface {
	// Stream reports whether a request asks for a stream. A wire without
	// streams always returns false, and its Events is never called.
	Stream(r *http.Request, body []byte) bool
	// Events returns the stream's events in order, each with the line feeds
	// after it. The last one completes the stream: a client must not accept a
	// stream without it. A text is spread over events by [Turn.Pieces].
	// Thinking is sent with [Turn.Signature], and Usage by
	// [Turn.ReportedUsage]; if Usage is nil, no counts are sent.
	Events(t Turn) [][]byte
	// Body returns the complete response to a request without a stream. It
	// sends the same as Events.
	Body(t Turn) []byte
	// Error returns the body of a response with the HTTP status t.Status.
	// Any JSON that [hone/model.ErrorBody] reads will do.
	Error(t Turn) []byte
}

// builtIn is a wire of a provider in this module.
type builtIn interface {
	Wire
	// Match reports whether a request's path belongs to this wire.
	Match(path string) bool
}

// builtIns returns the protocols that every Server speaks, one file each.
func builtIns() []builtIn { return []builtIn{chat{}, responses{}, gemini{}, anthropic{}} }

// builtInFor returns the built-in wire of a path; nil if there is none.
func builtInFor(path string) Wire {
	for _, b := range builtIns() {
		if b.Match(path) {
			return b
		}
	}
	return nil
}

// Signature returns a stand-in for the signature of the turn's thinking. The
// wire sends it where its protocol has the bytes that a provider must send
// back.
func (t Turn) Signature() string { return base64.StdEncoding.EncodeToString([]byte(t.Thinking)) }

// Pieces splits text into pieces of at most t.Chunk bytes, but never inside a
// character. An empty text has no pieces.
func (t Turn) Pieces(text string) []string {
	size := t.Chunk
	if size <= 0 {
		size = 16
	}
	var pieces []string
	start, last := 0, 0
	for i := range text {
		if i-start > size && last > start {
			pieces = append(pieces, text[start:last])
			start = last
		}
		last = i
	}
	if start < len(text) {
		pieces = append(pieces, text[start:])
	}
	return pieces
}

// object is a JSON object; its keys are sent in alphabetical order.
type object = map[string]any

// arguments returns a call's arguments as a JSON value, or as a string if they
// are not JSON.
func arguments(args string) any {
	if args == "" {
		return object{}
	}
	if json.Valid([]byte(args)) {
		return json.RawMessage(args)
	}
	return args
}

// encode returns v as JSON; everything in a turn can be encoded.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
