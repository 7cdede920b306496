package texttools

import (
	"encoding/json"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
	"hone/model"
)

// object is a call that was parsed from a JSON object.
type object struct {
	model.Call
	exact bool // the object has arguments and no members that are unknown
}

func nameMembers() []string { return []string{"name", "tool", "tool_name", "function"} }

func argumentMembers() []string { return []string{"arguments", "parameters", "args", "input"} }

// callHead matches the beginning of an object that is meant to be a call.
var callHead = lazyregexp.New(
	`^[\[\s]*\{\s*"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]+)"\s*,\s*"(?:arguments|parameters|args|input)"\s*:`)

// nameMember matches a call's name in an object that is not valid JSON.
var nameMember = lazyregexp.New(`['"]?\b(?:name|tool|tool_name|function)['"]?\s*[:=]\s*['"]([^'"\\\n]+)['"]`)

// envelopeHead matches the beginning of CodeScribe's object.
var envelopeHead = lazyregexp.New(`^\{\s*(?:"text"|"tool_calls"\s*:\s*\[)`)

// callList matches the list in such an object that is not valid JSON.
var callList = lazyregexp.New(`"tool_calls"\s*:\s*\[\s*\{`)

// decode parses a call or a list of calls.
func decode(raw string) ([]object, bool) {
	value, ok := reply.Repair(raw)
	if !ok {
		return nil, false
	}
	elements := []json.RawMessage{value}
	if value[0] == '[' {
		// Unmarshal cannot fail: the value is a valid list.
		_ = json.Unmarshal(value, &elements)
	}
	calls := make([]object, len(elements))
	for i, e := range elements {
		if calls[i], ok = decodeObject(e); !ok {
			return nil, false
		}
	}
	return calls, true
}

// decodeObject parses one call. The members may be in an object named function,
// as on OpenAI's wire.
func decodeObject(raw json.RawMessage) (object, bool) {
	members, ok := membersOf(raw)
	if !ok {
		return object{}, false
	}
	if inner, ok := membersOf(members["function"]); ok {
		members = inner
	}
	var c object
	for _, m := range nameMembers() {
		if c.Name == "" {
			c.Name, _ = stringOf(members[m])
		}
	}
	known := 0
	for _, m := range otherMembers() {
		if _, ok := members[m]; ok {
			known++
		}
	}
	for _, m := range argumentMembers() {
		if value, ok := members[m]; ok {
			c.Args, c.exact = argumentText(value), len(members) == known+1
			return c, c.Name != ""
		}
	}
	c.Args = flatArguments(members)
	return c, c.Name != ""
}

// otherMembers returns the members of a call that are not arguments.
func otherMembers() []string { return append(nameMembers(), "id", "call_id", "type") }

// flatArguments returns the members of a call that has no member with arguments. It
// removes the others from members.
func flatArguments(members map[string]json.RawMessage) string {
	for _, m := range otherMembers() {
		delete(members, m)
	}
	// Marshal cannot fail: the values were parsed from JSON.
	text, _ := json.Marshal(members)
	return string(text)
}

// argumentText returns the text of the arguments, which may be in a string, as
// on OpenAI's wire.
func argumentText(value json.RawMessage) string {
	if s, ok := stringOf(value); ok {
		return s
	}
	if string(value) == "null" {
		return "{}"
	}
	return string(value)
}

func membersOf(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var members map[string]json.RawMessage
	ok := json.Unmarshal(raw, &members) == nil && members != nil
	return members, ok
}

func stringOf(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// envelope parses an object with "text" and "tool_calls".
func (r *reader) envelope() (span, bool) {
	text := r.text[r.pos:]
	if !envelopeHead.MatchString(text) {
		return span{}, false
	}
	end := reply.ValueEnd(text)
	if end < 0 {
		return r.brokenEnvelope(text)
	}
	value, ok := reply.Repair(text[:end])
	if !ok {
		return r.brokenEnvelope(text)
	}
	members, _ := membersOf(value)
	var list []json.RawMessage
	words, _ := stringOf(members["text"])
	if raw, ok := members["tool_calls"]; !ok || json.Unmarshal(raw, &list) != nil || len(list) == 0 && words == "" {
		return span{}, false
	}
	s := span{from: r.pos, to: r.pos + end, text: words}
	for _, raw := range list {
		c, ok := decodeObject(raw)
		if !ok {
			c.Call = model.Call{Name: r.guess(string(raw)), Args: string(raw)}
		}
		s.calls = append(s.calls, c.Call)
	}
	return s, true
}

func (r *reader) brokenEnvelope(text string) (span, bool) {
	at := callList.FindStringIndex(text)
	if at == nil {
		return span{}, false
	}
	c := model.Call{Name: r.guess(text[at[0]:]), Args: strings.Trim(text, space)}
	return span{from: r.pos, to: len(r.text), calls: []model.Call{c}}, true
}

// guess returns the likely name of a call that cannot be parsed; empty if it
// finds none.
func (r *reader) guess(raw string) string {
	const limit = 4096 // a name after that is probably in a file's text
	raw = raw[:min(limit, len(raw))]
	if m := nameMember.FindStringSubmatch(raw); m != nil {
		return m[1]
	}
	raw = strings.TrimLeft(raw, space)
	word := raw[:len(raw)-len(strings.TrimLeft(raw, wordBytes))]
	if r.offers(word) {
		return word
	}
	return ""
}

// wordBytes are the characters that a tool's name may contain.
const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/"
