package texttools

import (
	"encoding/json"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
	"hone/model"
)

// call is a call that was read from a text.
type call struct {
	model.Call
	// certain says that it is a call even without tags: it names an offered tool and
	// has an object of arguments and no unknown members, or is one of an envelope's.
	certain bool
}

var (
	// callHead matches the beginning of an object that is meant to be a call.
	callHead = lazyregexp.New(
		`^[\[\s]*\{\s*"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]+)"\s*,\s*"(?:arguments|parameters|args|input)"\s*:`)
	// envelopeHead matches the beginning of an envelope, and callList its list of calls.
	envelopeHead = lazyregexp.New(`^\{\s*(?:"text"|"tool_calls"\s*:\s*\[)`)
	callList     = lazyregexp.New(`"tool_calls"\s*:\s*\[\s*\{`)
	// nameMember matches a call's name in an object that is not valid JSON.
	nameMember = lazyregexp.New(`['"]?\b(?:name|tool|tool_name|function)['"]?\s*[:=]\s*['"]([^'"\\\n]+)['"]`)
	// firstWord matches a name at the beginning of a text.
	firstWord = lazyregexp.New(`^` + toolName)
)

// decode reads a call, a list of calls or an envelope; after a name, the object with
// its arguments.
func (r *reader) decode(name, raw string) (f found, ok bool) {
	value, ok := reply.Repair(raw)
	if !ok {
		return f, false
	}
	if name != "" {
		return one(name, string(value), ""), true
	}
	elements := []json.RawMessage{value}
	if value[0] == '[' {
		// Unmarshal cannot fail: the value is a valid list.
		_ = json.Unmarshal(value, &elements)
	} else if text, calls, ok := envelope(value); ok {
		f.text, f.envelope, elements = text, true, calls
	}
	for _, e := range elements {
		c, ok := r.object(e)
		if !ok && !f.envelope {
			return f, false
		}
		if !ok {
			c.Name, c.Args = r.guess(string(e)).Name, string(e)
		}
		c.certain = c.certain || f.envelope
		f.calls = append(f.calls, c)
	}
	return f, true
}

// envelope returns the members of an object with "text" and "tool_calls", of which
// one may be missing or empty.
func envelope(raw json.RawMessage) (text string, calls []json.RawMessage, ok bool) {
	members := membersOf(raw)
	ok = json.Unmarshal(members["tool_calls"], &calls) == nil
	text, _ = stringOf(members["text"])
	return text, calls, ok && envelopeHead.Match(raw) && (len(calls) > 0 || text != "")
}

// object reads one call. The members may be in an object named function, as on
// OpenAI's wire, and the arguments in a string.
func (r *reader) object(raw json.RawMessage) (c call, ok bool) {
	members := membersOf(raw)
	if inner := membersOf(members["function"]); inner != nil {
		members = inner
	}
	for _, m := range []string{"name", "tool", "tool_name", "function"} {
		if c.Name == "" {
			c.Name, _ = stringOf(members[m])
		}
		delete(members, m)
	}
	for _, m := range []string{"id", "call_id", "type"} {
		delete(members, m)
	}
	for _, m := range []string{"arguments", "parameters", "args", "input"} {
		value, ok := members[m]
		if !ok {
			continue
		}
		c.Args = string(value)
		if text, ok := stringOf(value); ok {
			c.Args = text
		} else if c.Args == "null" {
			c.Args = "{}"
		}
		c.certain = len(members) == 1 && r.offers(c.Name) && isObject(c.Args)
		return c, c.Name != ""
	}
	c.Args = encode(members)
	return c, c.Name != ""
}

// membersOf returns an object's members; nil if raw is not an object.
func membersOf(raw json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

func stringOf(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// guess returns a call for text that cannot be read. Its name is the likely one;
// empty if there is none.
func (r *reader) guess(raw string) call {
	c := call{Call: model.Call{Args: raw}}
	if m := callHead.FindStringSubmatch(raw); m != nil {
		c.certain = r.offers(m[1])
	} else if at := callList.FindStringIndex(raw); at != nil && envelopeHead.MatchString(raw) {
		c.certain, raw = true, raw[at[0]:]
	}
	const limit = 4096 // a name after that is probably in a file's text
	raw = raw[:min(limit, len(raw))]
	if m := nameMember.FindStringSubmatch(raw); m != nil {
		c.Name = m[1]
	} else if word := firstWord.FindString(raw); r.offers(word) {
		c.Name = word
	}
	return c
}
