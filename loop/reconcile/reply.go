package reconcile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"hone/check"
	"hone/model"
	"hone/workspace"
)

// unreadable returns a blocking finding about an unusable reply, of which nothing was
// applied (ruling G3).
func unreadable(format string, args ...any) check.Finding {
	return check.Finding{Source: "reply", Text: "Your last reply could not be used, and no part of it was applied: " + fmt.Sprintf(format, args...)}
}

// read returns the change in a reply, or all problems that can be found at once. known
// lists the files of the tree.
func read(reply model.Reply, known []string) (workspace.Change, []check.Finding) {
	if !reply.Finish.Normal() {
		return workspace.Change{}, []check.Finding{unreadable("it did not end normally (%s). %s",
			strings.TrimSpace(string(reply.Finish)+" "+reply.Detail), advice(reply.Finish))}
	}
	text, err := object(reply.Text())
	if err != nil {
		return workspace.Change{}, []check.Finding{unreadable("%v", err)}
	}
	ch, err := edits(text)
	if err != nil {
		return workspace.Change{}, []check.Finding{unreadable("%v", err)}
	}
	return ch, collisions(ch, known)
}

func advice(f model.Finish) string {
	if f == model.Length {
		return "It reached the output limit: make a smaller change in one reply, and leave out files that stay as they are."
	}
	return "Answer with the JSON object alone."
}

// fence matches an opening Markdown fence for JSON.
var fence = regexp.MustCompile("(?m)^[ \t]*```json[ \t]*\r?$")

// object returns the JSON in a reply: the reply itself, or the contents of its one
// ```json fence (ruling B6), which may be followed by the rest of the reply: where the
// JSON ends is decided by the JSON, because its strings may contain fences.
func object(text string) (string, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return "", errors.New("it was empty. Answer with the JSON object")
	}
	if strings.HasPrefix(trimmed, "{") {
		return trimmed, nil
	}
	at := fence.FindStringIndex(text)
	if at == nil {
		return "", errors.New("it contains no JSON object: answer with the bare object, or put it in one ```json fence")
	}
	return strings.TrimSpace(text[at[1]:]), nil
}

// edits decodes the object. It may be followed only by the closing fence and by prose
// without another ```json fence.
func edits(text string) (workspace.Change, error) {
	d := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return workspace.Change{}, syntax(text, err)
	}
	rest := strings.TrimSpace(text[d.InputOffset():])
	if rest != "" && !strings.HasPrefix(rest, "```") {
		return workspace.Change{}, fmt.Errorf("something follows the JSON object: %.60q", rest)
	}
	if fence.MatchString(rest) {
		return workspace.Change{}, errors.New("it contains more than one ```json fence: put the whole answer into one object")
	}
	return decode(raw)
}

// syntax returns an error with the line of the JSON's syntax error.
func syntax(text string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("the JSON object is not closed: the reply ends in the middle of it")
	}
	var s *json.SyntaxError
	if !errors.As(err, &s) {
		return fmt.Errorf("the JSON is invalid: %w", err)
	}
	at := max(0, min(int(s.Offset)-1, len(text)))
	line := 1 + strings.Count(text[:at], "\n")
	from, to := max(0, at-30), min(len(text), at+30)
	return fmt.Errorf("the JSON is invalid: %w, on line %d of the object, near %q", err, line, text[from:to])
}

const (
	keyWrite  = "create-or-update"
	keyDelete = "delete"
)

// decode reads the two lists in their order. A missing list is empty. Unknown keys are
// ignored unless they look like a misspelling, which would otherwise make the answer
// empty.
func decode(raw []byte) (workspace.Change, error) {
	var ch workspace.Change
	seen := map[string]bool{}
	known := 0
	err := eachKey(raw, func(key string, d *json.Decoder) error {
		if seen[key] {
			return fmt.Errorf("the key %q appears twice in the object", key)
		}
		seen[key] = true
		switch key {
		case keyWrite:
			known++
			return writes(d, &ch)
		case keyDelete:
			known++
			return deletions(d, &ch)
		}
		if resembles(key, keyWrite) || resembles(key, keyDelete) {
			return fmt.Errorf("the key %q is not one of %q and %q", key, keyWrite, keyDelete)
		}
		var skipped json.RawMessage
		return d.Decode(&skipped)
	})
	if err == nil && known == 0 && len(seen) > 0 {
		err = fmt.Errorf("the object has neither %q nor %q", keyWrite, keyDelete)
	}
	return ch, err
}

// resembles compares keys by their letters only.
func resembles(a, b string) bool {
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r
			}
			return -1
		}, strings.ToLower(s))
	}
	a, b = letters(a), letters(b)
	return a == b || a == b+"d" || a == b+"s" || a == "createupdate" && b == letters(keyWrite)
}

// eachKey walks an object's keys in order, with the decoder before each value.
func eachKey(raw []byte, visit func(key string, d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	open, err := d.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return errors.New("it is JSON, but not an object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if err := visit(key, d); err != nil {
			return err
		}
	}
	return nil
}

func writes(d *json.Decoder, ch *workspace.Change) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	if string(raw) == "null" {
		return nil
	}
	if raw[0] != '{' {
		return fmt.Errorf("%q must be an object of paths and contents", keyWrite)
	}
	return eachKey(raw, func(p string, d *json.Decoder) error {
		var content *string
		if err := d.Decode(&content); err != nil || content == nil {
			return fmt.Errorf("the contents of %q must be a string with the whole file", p)
		}
		ch.Edits = append(ch.Edits, workspace.Edit{Path: p, Content: []byte(*content)})
		return nil
	})
}

func deletions(d *json.Decoder, ch *workspace.Change) error {
	var paths []string
	if err := d.Decode(&paths); err != nil {
		return fmt.Errorf("%q must be a list of paths", keyDelete)
	}
	for _, p := range paths {
		ch.Edits = append(ch.Edits, workspace.Edit{Path: p, Delete: true})
	}
	return nil
}

// collisions returns findings about edits that no order makes possible: the same path
// twice, a path below a file, and deleting a directory (ruling B6).
func collisions(ch workspace.Change, known []string) []check.Finding {
	var found []check.Finding
	files, dirs := map[string]bool{}, map[string]bool{}
	for _, k := range known {
		files[k] = true
		for d := path.Dir(k); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	once := map[string]bool{}
	for _, e := range ch.Edits {
		p := path.Clean(e.Path)
		if once[p] {
			found = append(found, unreadable("%q appears twice", e.Path))
		}
		once[p] = true
		if e.Delete && dirs[p] {
			found = append(found, unreadable("%q is a directory, and only files can be deleted", e.Path))
		}
	}
	for _, e := range ch.Edits {
		for d := path.Dir(path.Clean(e.Path)); !e.Delete && d != "." && d != "/"; d = path.Dir(d) {
			if once[d] || files[d] {
				found = append(found, unreadable("%q is below %q, which is a file", e.Path, d))
			}
		}
	}
	return found
}
