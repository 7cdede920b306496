package reply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Object returns the one JSON object of a reply that has a key for which known
// returns true. It can be in prose, in a fence or in tags, after reasoning. Repeated
// objects count once. The error says why there is none, and what the reply has instead.
func Object(text string, known func(key string) bool) (json.RawMessage, error) {
	all, faults := objects(text, known)
	var covered [][2]int
	for _, o := range all {
		covered = append(covered, [2]int{o.from, o.to})
	}
	answer := Answer(text, covered)
	from := len(text) - len(answer)
	all = slices.DeleteFunc(all, func(o object) bool { return o.from < from })
	faults = slices.DeleteFunc(faults, func(f object) bool { return f.from < from })
	if len(all) > 1 {
		all = slices.CompactFunc(all, func(a, b object) bool { return bytes.Equal(a.raw, b.raw) })
	}
	switch {
	case strings.TrimSpace(answer) == "":
		return nil, errors.New("it was empty. Answer with the JSON object")
	case len(all) == 1:
		return all[0].raw, nil
	case len(all) > 1:
		line := func(o object) int { return 1 + strings.Count(text[:o.from], "\n") }
		return nil, fmt.Errorf("it contains more than one JSON object (at lines %d and %d): put the whole answer into one object", line(all[0]), line(all[1]))
	case len(faults) > 0:
		return nil, syntaxFault(text[faults[0].from:], faults[0].err)
	}
	// None of the keys of an object that is alone need be known: the caller reports which are wrong.
	at := max(0, strings.IndexByte(answer, '{'))
	var raw json.RawMessage
	d := json.NewDecoder(strings.NewReader(answer[at:]))
	if d.Decode(&raw) == nil && raw[0] == '{' && isAlone(answer[:at], answer[at+int(d.InputOffset()):]) {
		return raw, nil
	}
	first, _, _ := strings.Cut(strings.TrimSpace(answer), "\n")
	return nil, fmt.Errorf("it contains no JSON object with one of the expected keys; it begins with %s. Answer with the bare object", brief(first))
}

// object is a JSON object with a known key, and where it is in a text; or one that begins with a known key and cannot be
// parsed.
type object struct {
	from, to int
	raw      json.RawMessage
	err      error
}

// It gives up when it has read the text several times over without finding one.
func objects(text string, known func(string) bool) (found, faults []object) {
	budget := 16*len(text) + 1<<12
	for at := 0; budget > 0; at++ {
		next := strings.IndexByte(text[at:], '{')
		if next < 0 {
			break
		}
		at += next
		const longest = 1000 // of what is read of a key
		rest := strings.TrimLeft(text[at+1:min(len(text), at+longest)], " \t\r\n")
		if rest == "" || strings.IndexByte("\"'}\xe2", rest[0]) < 0 {
			continue // so most braces cost nothing
		}
		end := at + ValueEnd(text[at:])
		if end < at {
			end = len(text)
		}
		if raw, ok := Repair(text[at:end]); ok {
			if hasKnownKey(raw, known) {
				found = append(found, object{from: at, to: end, raw: raw})
			}
			at = end - 1
			continue
		}
		budget -= end - at
		key := strings.TrimLeft(rest, "\"'“”")
		if n := strings.IndexAny(key, "\"'“”:"); n > 0 && len(key) < len(rest) && known(key[:n]) {
			var v any
			faults = append(faults, object{from: at, err: json.NewDecoder(strings.NewReader(text[at:])).Decode(&v)})
			budget -= len(text) - at
		}
	}
	return found, faults
}

func isAlone(before, after string) bool {
	before, after = strings.TrimSpace(before), strings.TrimSpace(after)
	return (before == "" || fenceOpens.MatchString(before)) && (after == "" || fenceCloses.MatchString(after))
}

func hasKnownKey(raw json.RawMessage, known func(string) bool) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return false
	}
	for key := range members {
		if known(key) {
			return true
		}
	}
	return false
}

func syntaxFault(text string, err error) error {
	var s *json.SyntaxError
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON object is not closed: the reply ends in the middle of it")
	}
	if !errors.As(err, &s) {
		return fmt.Errorf("the JSON is invalid: %w", err)
	}
	at := max(0, min(int(s.Offset)-1, len(text)-1))
	line := 1 + strings.Count(text[:at], "\n")
	from, to := max(0, at-30), min(len(text), at+30)
	near := strings.ToValidUTF8(text[from:to], "")
	if r, _ := utf8.DecodeRuneInString(text[at:]); strings.ContainsRune("“”„‘’", r) {
		return fmt.Errorf("the JSON is invalid: found %c in place of the quotation mark \", on line %d of the object, near %q", r, line, near)
	}
	return fmt.Errorf("the JSON is invalid: %w, on line %d of the object, near %q", err, line, near)
}

// RepeatedKey returns a key that an object or one in it has twice, whose meaning is unclear; ok is
// false if there is none, or if the text is not JSON.
func RepeatedKey(raw json.RawMessage) (key string, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	var open []map[string]bool // the keys of each object around; nil in a list
	isKey := false
	for {
		token, err := d.Token()
		if err != nil {
			return "", false
		}
		switch text, isText := token.(string); {
		case token == json.Delim('{'):
			open = append(open, map[string]bool{})
		case token == json.Delim('['):
			open = append(open, nil)
		case token == json.Delim('}') || token == json.Delim(']'):
			open = open[:len(open)-1]
		case isKey && isText:
			if open[len(open)-1][text] {
				return text, true
			}
			open[len(open)-1][text] = true
			isKey = false
			continue
		}
		isKey = len(open) > 0 && open[len(open)-1] != nil
	}
}

// ValueEnd returns the length of the JSON object or list at the beginning of s,
// which it finds by brackets and strings only; -1 if it does not end.
func ValueEnd(s string) int {
	depth, inString := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return -1
}

// Repair returns text as JSON if it is valid, or is so after control characters in
// its strings are escaped and commas before closing brackets are removed: both are
// common, and can have no other meaning.
func Repair(text string) (json.RawMessage, bool) {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), true
	}
	var b strings.Builder
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
			c = text[i]
		case c == '"':
			inString = !inString
		case c == ',' && !inString && closesNext(text[i+1:]):
			continue
		}
		if inString && c < ' ' {
			// Marshal cannot fail for a string.
			escaped, _ := json.Marshal(string(rune(c)))
			b.Write(escaped[1 : len(escaped)-1])
			continue
		}
		b.WriteByte(c)
	}
	return json.RawMessage(b.String()), json.Valid([]byte(b.String()))
}

func closesNext(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '}' || text[0] == ']')
}
