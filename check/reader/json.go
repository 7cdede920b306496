package reader

import (
	"encoding/json"
	"slices"
	"strings"
)

// forEachDocument calls read with a decoder at the start of each JSON document in a text: an
// object, or an array of objects, that begins a line. read leaves the decoder behind what
// it could read, and returns false if that is not JSON, or is cut.
func forEachDocument(text string, read func(d *json.Decoder) bool) {
	// After a document that cannot be read, its inner values are tried again: the
	// budget keeps that linear.
	budget := 8*len(text) + 1<<20
	for at := 0; at < len(text) && budget > 0; {
		if beginsDocument(text[at:]) {
			in := strings.NewReader(text[at:])
			d := json.NewDecoder(in)
			if !read(d) {
				budget -= len(text) - at - in.Len()
			}
			at += int(d.InputOffset())
		}
		end := strings.IndexByte(text[min(at, len(text)):], '\n')
		if end < 0 {
			return
		}
		at += end + 1
	}
}

func beginsDocument(text string) bool {
	after := strings.TrimLeft(text[1:], " \t\r\n")
	switch {
	case after == "":
		return false
	case text[0] == '{':
		return after[0] == '"' || after[0] == '}'
	}
	return text[0] == '[' && (after[0] == '{' || after[0] == ']')
}

// It calls each with every value at one of the paths below the one where the decoder is, in order. A path names keys; "*" is any
// element of an array. It returns false if the value is not complete or is not JSON: all elements before that were called.
func forEachElement(d *json.Decoder, at []string, paths [][]string, each func(path []string, value json.RawMessage)) bool {
	inside := false
	for _, p := range paths {
		if slices.Equal(p, at) {
			var value json.RawMessage
			if d.Decode(&value) != nil {
				return false
			}
			each(at, value)
			return true
		}
		inside = inside || len(p) > len(at) && slices.Equal(p[:len(at)], at)
	}
	if !inside {
		var skipped json.RawMessage
		return d.Decode(&skipped) == nil
	}
	token, err := d.Token()
	if err != nil {
		return false
	}
	delim, nested := token.(json.Delim)
	for nested && d.More() {
		key := "*"
		if delim == '{' {
			token, err := d.Token()
			if err != nil {
				return false
			}
			key, _ = token.(string)
		}
		if !forEachElement(d, append(at[:len(at):len(at)], key), paths, each) {
			return false
		}
	}
	if nested {
		_, err = d.Token()
	}
	return err == nil
}

func forEachValue[T any](text string, path []string, each func(T)) {
	forEachDocument(text, func(d *json.Decoder) bool {
		return forEachElement(d, nil, [][]string{path}, func(_ []string, raw json.RawMessage) {
			var v T
			if json.Unmarshal(raw, &v) == nil {
				each(v)
			}
		})
	})
}
