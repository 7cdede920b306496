// Package model defines one call to a language model.
//
// A [Model] makes one attempt at a call over one wire format and returns a
// [Reply]: its parts in order, why the model stopped, and the tokens used. It
// never retries, because a retry costs money and the engine keeps the ledger.
// Its error is an [*Error], which tells whether a retry can help, how long to
// wait, and how many tokens are known to be used.
//
// Each provider is a package below this one; these packages never print, log or
// store a key. One that answers JSON over HTTP is an [Endpoint] and a [Reader]. The file
// example_test.go contains a complete small provider, built on an [Exchange]. Package modeltest lists what all providers guarantee, and
// tests it against servers that speak the real protocols, or a protocol of your
// own. A provider without native tool calls ignores [Request.Tools]; package
// texttools wraps it and sends tools and calls as text.
package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Model makes one attempt at a call. Implementations are safe for concurrent
// use and keep no state between calls.
//
// A non-nil error is an [*Error] or wraps the context's error. A reply that
// was filtered or reached its output limit is not an error but a reply with
// the corresponding [Finish]: its cost is known, and the caller decides what
// to do with it. A stream that ends before the provider marks it complete is
// an error of kind [Cut].
type Model interface {
	Generate(ctx context.Context, req Request) (Reply, error)
}

// Request is everything that is sent to the model. The journal stores its
// JSON form; a resumed run compares its digest to verify that it asks the
// same question.
type Request struct {
	// System is sent in the provider's field for system prompts; if empty,
	// none is sent.
	System string `json:"system,omitempty"`
	// Messages are in order; the last one has the User role.
	Messages []Message `json:"messages"`
	// Tools are the tools that the model may call, sent in this order; nil
	// means no tools.
	Tools []Spec `json:"tools,omitempty"`
	// Reasoning is the requested effort; empty means the provider's default.
	Reasoning Reasoning `json:"reasoning,omitempty"`
	// MaxOutput limits the reply's tokens, reasoning included; 0 sends no
	// limit if the wire allows that.
	MaxOutput int64 `json:"-"`
	// CacheKey is equal for requests that may begin alike, and has no other meaning.
	// It is sent to providers that use such keys to find what they have cached (OpenAI);
	// empty means that none is sent.
	CacheKey string `json:"-"`
	// Seq is the number of replies that the run received before this call,
	// Attempt the number of earlier attempts at this call. Scripted models
	// choose their reply by them; they are never sent.
	Seq     int `json:"-"`
	Attempt int `json:"-"`
	// Stream, if not nil, receives the reply's visible text as it arrives, on
	// the goroutine that called Generate. A provider that does not stream calls
	// it once, with the entire text. It must return quickly and must not call
	// the model.
	Stream func(text string) `json:"-"`
	// Received, if not nil, is called with the size of each part of the response
	// as it arrives, also if the part has no visible text. It may be called from
	// any goroutine and must return quickly. It shows that the server is not silent;
	// a provider that does not stream need not call it.
	Received func(bytes int) `json:"-"`
}

// Reasoning is the effort that a model is asked to spend on thinking.
type Reasoning string

// The reasoning levels; each wire sends its provider's name for them.
const (
	Low    Reasoning = "low"
	Medium Reasoning = "medium"
	High   Reasoning = "high"
)

// Role is the author of a message.
type Role string

// The roles. Results of tool calls belong to a message of the User role.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one piece of a message. Exactly one of Text, Call, Result and
// Opaque is set.
type Part struct {
	Text   string  `json:"text,omitempty"`
	Call   *Call   `json:"call,omitempty"`
	Result *Result `json:"result,omitempty"`
	Opaque *Opaque `json:"opaque,omitempty"`
	// Cache marks the end of a prefix that later requests repeat byte for
	// byte. It is sent to providers that support such marks (Anthropic, which
	// takes four: the last ones win); others detect the prefix themselves.
	Cache bool `json:"cache,omitempty"`
}

// Call is the model's request to run a tool. Args is what the model wrote; it
// may be invalid JSON, which the tool's caller reports to the model.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// Object returns Args if it is a JSON object, otherwise an empty object, for
// wires that send the arguments of earlier calls as an object.
func (c Call) Object() json.RawMessage {
	raw := bytes.TrimSpace([]byte(c.Args))
	if len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
		return raw
	}
	return json.RawMessage("{}")
}

// Result is the result of the call with the same ID.
type Result struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// Opaque holds a provider's bytes, which hone does not interpret: thought
// signatures, signed thinking, reasoning items. They are sent back to the
// same provider unchanged and in the same position, and never to another.
// Wire names the provider's format, such as "gemini" or "openai-responses".
//
// Bytes that belong to another part (Gemini signs text and call parts) are an
// Opaque directly before that part.
type Opaque struct {
	Wire string          `json:"wire"`
	Data json.RawMessage `json:"data"`
	// From is the model that wrote it. Package paid sets it, and sends the part to no
	// other model. Providers ignore it.
	From string `json:"from,omitempty"`
}

// Spec describes a tool to the model. Schema is the JSON Schema of an object;
// nil means a tool without parameters.
type Spec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// Reply is the model's answer.
type Reply struct {
	Parts  []Part `json:"parts"`
	Finish Finish `json:"finish"`
	// Detail is the provider's term for why the model stopped, followed by
	// the provider's explanation if there is one (a safety category, the text
	// of a refusal).
	Detail string `json:"detail,omitempty"`
	// Usage is nil if the provider did not report it, or reported something
	// that cannot be counts of tokens.
	Usage *Usage `json:"usage,omitempty"`
	// Raw is the response body, or a JSON array of the stream's events in
	// order. It contains no headers.
	Raw json.RawMessage `json:"-"`
}

// Finish is the reason why the model stopped.
type Finish string

// Stop and Calls are normal. Every other reason makes the reply unreadable,
// even if it can be parsed (ruling G3).
const (
	Stop     Finish = "stop"     // the model finished
	Calls    Finish = "calls"    // the model waits for the results of its calls
	Length   Finish = "length"   // the output limit or the context's end was reached
	Filtered Finish = "filtered" // the model refused, or the provider filtered the reply
	Other    Finish = "other"    // anything else; see Detail
)

// Normal reports whether the model itself ended the reply.
func (f Finish) Normal() bool { return f == Stop || f == Calls }

// Text returns the reply's visible text, its parts joined.
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

// Calls returns the reply's tool calls, in order.
func (r Reply) Calls() []Call {
	var calls []Call
	for _, p := range r.Parts {
		if p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}

// HasContent reports whether the reply has a text or a call.
func (r Reply) HasContent() bool { return r.Size() > 0 }

// Size returns how many bytes the reply's texts and calls have; 0 if there are none.
func (r Reply) Size() int64 {
	var n int
	for _, p := range r.Parts {
		n += len(p.Text)
		if p.Call != nil {
			n += 1 + len(p.Call.Name) + len(p.Call.Args)
		}
	}
	return int64(n)
}

// Usage counts tokens. Reasoning is part of Output; each token is in exactly
// one of the other four fields. If a server does not count reasoning or cached
// tokens, their fields are 0: they are then counted and charged as the rest of Output
// and Input.
type Usage struct {
	Input      int64 `json:"input"`       // input at the full price, not from the cache
	Output     int64 `json:"output"`      // output, reasoning included
	Reasoning  int64 `json:"reasoning"`   // the hidden part of Output
	CacheRead  int64 `json:"cache_read"`  // input read from the provider's cache
	CacheWrite int64 `json:"cache_write"` // input written to the cache, if priced separately

	// Cost is what the server, such as a gateway, says that the call costs, in USD; nil if
	// it does not say so.
	Cost *float64 `json:"cost,omitempty"`
}

// Total returns the number of all tokens, input and output.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	cost := u.Cost
	if cost == nil || v.Cost == nil {
		cost = cmp.Or(cost, v.Cost)
	} else {
		cost = new(*cost + *v.Cost)
	}
	return Usage{
		Cost:       cost,
		Input:      u.Input + v.Input,
		Output:     u.Output + v.Output,
		Reasoning:  u.Reasoning + v.Reasoning,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
	}
}

// madeID begins the ids of calls to which no server gave one. They have nine letters and
// digits, the only form that Mistral takes.
const madeID = "made"

// HasMadeID reports whether a call got its ID from [Reply.Complete].
func HasMadeID(id string) bool { return strings.HasPrefix(id, madeID) && len(id) == 9 }

// Complete returns the reply to a request as a provider returns it. Its calls have IDs that
// are unique in the conversation: strict servers reject a request in which two calls have the
// same ID. A missing ID, and one that is used before, is replaced. Characters that the
// response cut in two are whole; a reply with half a character has the finish [Other], because
// it is not what the model wrote. The parts are changed.
func (r Reply) Complete(req Request) Reply {
	nameCalls(req, r.Parts)
	for i := range r.Parts {
		p, whole := &r.Parts[i], true
		switch {
		case p.Opaque != nil:
			data, _ := joinHalves(string(p.Opaque.Data))
			p.Opaque.Data = json.RawMessage(data)
		case p.Call != nil:
			p.Call.Args, whole = joinHalves(string(markHalves([]byte(p.Call.Args))))
		default:
			p.Text, whole = joinHalves(p.Text)
		}
		if !whole && r.Finish.Normal() {
			r.Finish, r.Detail = Other, "half a character: an escape such as \\ud83d without the one of the other half"
		}
	}
	return r
}

func nameCalls(req Request, parts []Part) {
	used := map[string]bool{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if p.Call != nil {
				used[p.Call.ID] = true
			}
		}
	}
	for _, p := range parts {
		if p.Call == nil {
			continue
		}
		for n := len(used) + 1; p.Call.ID == "" || used[p.Call.ID]; n++ {
			p.Call.ID = fmt.Sprintf("%s%05d", madeID, n)
		}
		used[p.Call.ID] = true
	}
}
