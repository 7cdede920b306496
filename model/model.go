// Package model says what it is to ask a language model once.
//
// A [Model] makes one attempt at one call over one wire format and returns a
// [Reply]: ordered parts, why the model stopped, and what was used. It never
// retries, because a retry costs money and the ledger is the engine's; its
// error is an [*Error], which says whether a retry can help, after how long,
// and what usage is known all the same.
//
// The providers live one folder down, one wire each; package modeltest names
// the behaviours that every one of them shows against a server that speaks
// its real protocol. Nothing in this package or below it prints, logs or
// keeps a key.
package model

import (
	"context"
	"encoding/json"
)

// Model makes one attempt at a call. Implementations are safe for concurrent
// use and keep nothing between calls.
//
// The error, when there is one, is an [*Error] or wraps the context's own.
// A reply that was cut, filtered or ended by its output limit is a reply with
// another [Finish], not an error: what it cost is known, and the caller
// decides what it is worth. A stream that ends without the provider's word
// that it is complete is an error of kind [Cut].
type Model interface {
	Generate(ctx context.Context, req Request) (Reply, error)
}

// Request is all that is sent. Its JSON form is what the journal keeps, and
// its digest is what tells a resumed run that it asks the same question.
type Request struct {
	// System goes in the provider's own field for it; empty sends none.
	System string `json:"system,omitempty"`
	// Messages are in order and end with the user's.
	Messages []Message `json:"messages"`
	// Tools that the model may call, encoded in this order; nil offers none.
	Tools []Spec `json:"tools,omitempty"`
	// Reasoning is the effort asked for; empty leaves it to the provider.
	Reasoning Reasoning `json:"reasoning,omitempty"`
	// MaxOutput is the most tokens that the reply may have, reasoning
	// included; 0 sends no limit where the wire allows that.
	MaxOutput int64 `json:"-"`
	// Seq is how many replies the run had before this call, and Attempt how
	// often this call was tried before. Scripted models choose by them; no
	// wire sends them.
	Seq     int `json:"-"`
	Attempt int `json:"-"`
	// Stream, if not nil, is given the reply's visible text as it arrives, on
	// the goroutine that called Generate. Contract: it must not block for
	// long and must not call back into the model.
	Stream func(text string) `json:"-"`
}

// Reasoning is how hard a model is asked to think before it answers.
type Reasoning string

// The levels that providers know under one name or another.
const (
	Low    Reasoning = "low"
	Medium Reasoning = "medium"
	High   Reasoning = "high"
)

// Role says whose message it is.
type Role string

// Results of tool calls go back in a message of the User role.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one piece of a message: exactly one of Text, Call, Result and
// Opaque is set.
type Part struct {
	Text   string  `json:"text,omitempty"`
	Call   *Call   `json:"call,omitempty"`
	Result *Result `json:"result,omitempty"`
	Opaque *Opaque `json:"opaque,omitempty"`
	// Cache marks the end of a prefix that later requests will repeat byte
	// for byte. Providers that want such marks are given them (Anthropic, at
	// most four, the last ones win); the others find the prefix themselves.
	Cache bool `json:"cache,omitempty"`
}

// Call is the model's wish to have a tool run. Args is what the model wrote,
// which need not be JSON: whoever runs the tool says so to the model. A
// provider that must send it back as an object sends {} for what is not one.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// Result answers the call of the same ID.
type Result struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// Opaque carries a provider's bytes unread: thought signatures, signed
// thinking, reasoning items. It goes back to the same provider unchanged and
// in its place, and is left out for any other. Wire names the provider's
// format, such as "gemini" or "openai-responses".
//
// Provider bytes that belong to a neighbour (Gemini signs text and call
// parts) stand as an Opaque directly before the part that they belong to.
type Opaque struct {
	Wire string          `json:"wire"`
	Data json.RawMessage `json:"data"`
}

// Spec describes a tool to the model. Schema is a JSON Schema of an object.
type Spec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// Reply is what the model answered.
type Reply struct {
	Parts  []Part `json:"parts"`
	Finish Finish `json:"finish"`
	// Detail is the provider's own word for why it stopped, and its reason
	// where it gives one (a safety category, a refusal text).
	Detail string `json:"detail,omitempty"`
	// Usage is nil where the provider said nothing of it.
	Usage *Usage `json:"usage,omitempty"`
	// Raw is the accepted attempt's body, or a JSON array of its stream's
	// events in order. It holds no header.
	Raw json.RawMessage `json:"-"`
}

// Finish says why the model stopped.
type Finish string

// Stop and Calls are normal ends. Every other one makes the reply unreadable,
// whatever it parses to (ruling G3).
const (
	Stop     Finish = "stop"     // it was done
	Calls    Finish = "calls"    // it waits for the results of its calls
	Length   Finish = "length"   // the output limit, or the context's end
	Filtered Finish = "filtered" // refused or filtered, by the model or its provider
	Other    Finish = "other"    // anything else; see Detail
)

// Normal reports whether the reply was ended by the model's own will.
func (f Finish) Normal() bool { return f == Stop || f == Calls }

// Text is the reply's visible text, its parts joined as they came.
func (r Reply) Text() string {
	var n int
	for _, p := range r.Parts {
		n += len(p.Text)
	}
	b := make([]byte, 0, n)
	for _, p := range r.Parts {
		b = append(b, p.Text...)
	}
	return string(b)
}

// Calls are the reply's tool calls, in order.
func (r Reply) Calls() []Call {
	var calls []Call
	for _, p := range r.Parts {
		if p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}

// Usage counts tokens, each once. Reasoning is the part of Output that was
// not shown; the other four add up to the total.
type Usage struct {
	Input      int64 `json:"input"`       // read afresh, at the full price
	Output     int64 `json:"output"`      // written, reasoning included
	Reasoning  int64 `json:"reasoning"`   // of Output
	CacheRead  int64 `json:"cache_read"`  // read from the provider's cache
	CacheWrite int64 `json:"cache_write"` // written to it, where that is charged apart
}

// Total is every token that was read or written.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:      u.Input + v.Input,
		Output:     u.Output + v.Output,
		Reasoning:  u.Reasoning + v.Reasoning,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
	}
}
