package texttools

import (
	"encoding/json"

	"hone/internal/lazyregexp"
	"hone/model"
)

var (
	// callHead matches the beginning of an envelope, or of an object that is meant to be
	// a call. The group is the call's name.
	callHead = lazyregexp.New(`(?s)^[\[\s]*\{\s*(?:(?:"text".*)?"tool_calls"\s*:\s*\[\s*\{|` +
		`"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]+)"\s*,\s*"(?:arguments|parameters|args|input)"\s*:)`)
	// nameMember matches a call's name in an object that is not valid JSON.
	nameMember = lazyregexp.New(`['"]?\b(?:name|tool|tool_name|function)['"]?\s*[:=]\s*['"]([^'"\\\n]+)['"]`)
	// firstWord matches a name at the beginning of a text.
	firstWord = lazyregexp.New(`^` + toolName)
)

// value is a call, a list of calls or an envelope. With certain, each call must name an offered tool, and have an object of
// arguments and no unknown members.
func (r *reader) calls(value json.RawMessage, certain bool) (f found, ok bool) {
	var envelope struct {
		Text  string
		Calls []json.RawMessage `json:"tool_calls"`
	}
	list := []json.RawMessage{value}
	// Unmarshal fails for other members and values. They are not calls.
	if value[0] == '[' {
		_ = json.Unmarshal(value, &list)
	} else if _ = json.Unmarshal(value, &envelope); envelope.Calls != nil && (envelope.Text != "" || len(envelope.Calls) > 0) {
		f.parts, f.envelope, list = appendText(nil, envelope.Text), true, envelope.Calls
	}
	for _, raw := range list {
		c, known := r.call(raw)
		if !f.envelope && (c.Name == "" || certain && !known) {
			return f, false
		}
		f.parts = append(f.parts, model.Part{Call: &c})
	}
	return f, true
}

// The members may be in an object named function, as on OpenAI's wire, and the arguments in a string. Without a name, the
// arguments are the entire text. certain reports whether it is a call even without a tag.
func (r *reader) call(raw json.RawMessage) (c model.Call, certain bool) {
	var members, inner map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members)
	if json.Unmarshal(members["function"], &inner) == nil {
		members = inner
	}
	_ = json.Unmarshal(take(members, "name", "tool", "tool_name", "function"), &c.Name)
	take(members, "id", "call_id", "type")
	args := take(members, "arguments", "parameters", "args", "input")
	switch {
	case c.Name == "":
		c.Args = string(raw)
	case args == nil:
		c.Args = encode(members)
	case string(args) == "null":
		c.Args = "{}"
	case json.Unmarshal(args, &c.Args) != nil:
		c.Args = string(args)
	}
	return c, args != nil && len(members) == 0 && r.offers(c.Name) && isObject(c.Args)
}

func take(members map[string]json.RawMessage, keys ...string) (value json.RawMessage) {
	for _, key := range keys {
		if value == nil {
			value = members[key]
		}
		delete(members, key)
	}
	return value
}

// beginsCall reports whether a text without a tag that cannot be parsed begins with a
// call of an offered tool, or with an envelope.
func (r *reader) beginsCall(raw string) bool {
	m := callHead.FindStringSubmatch(raw)
	return m != nil && (m[1] == "" || r.offers(m[1]))
}

func (r *reader) guess(raw string) string {
	const limit = 4096 // a name after that is probably in a file's text
	if m := nameMember.FindStringSubmatch(raw[:min(limit, len(raw))]); m != nil {
		return m[1]
	}
	if word := firstWord.FindString(raw); r.offers(word) {
		return word
	}
	return ""
}
