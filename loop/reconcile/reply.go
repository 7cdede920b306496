package reconcile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"hone/check"
	"hone/internal/reply"
	"hone/model"
	"hone/workspace"
)

// It returns the change, or all problems that can be found at once. known lists the files of the tree, and place returns the
// file that a path means.
func read(got model.Reply, known []string, place func(string) string) (workspace.Change, []check.Finding) {
	if cause := reply.EndProblem(got); cause != "" {
		return workspace.Change{}, check.Unusable(cause + ".")
	}
	object, err := reply.Object(got.Text(), isKey)
	if err != nil {
		return workspace.Change{}, check.Unusable(err.Error())
	}
	ch, err := decode(object)
	if err != nil {
		return workspace.Change{}, check.Unusable(err.Error())
	}
	for i := range ch.Edits {
		ch.Edits[i].Path = place(ch.Edits[i].Path)
	}
	return ch, check.Unusable(collisions(ch, known)...)
}

// A misspelling counts too.
func isKey(key string) bool {
	return resembles(key, keyWrite) || resembles(key, keyDelete)
}

const (
	keyWrite  = "create-or-update"
	keyDelete = "delete"
)

// An answer may say something to the user beside its edits, and ask something (ruling B15).
func said(text string) (says string, asks []check.Finding) {
	var members map[string]json.RawMessage
	object, err := reply.Object(text, isKey)
	if err != nil || json.Unmarshal(object, &members) != nil {
		return "", nil
	}
	var lines []string
	for _, key := range []string{"message", "description", "high-level-description", "decisions", "implementation-decisions", "rationale", "questions"} {
		for _, one := range texts(members[key]) {
			if key != "message" {
				one = key + ": " + one
			}
			lines = append(lines, one)
		}
	}
	for _, one := range texts(members["questions"]) {
		asks = append(asks, check.Finding{Source: sourceQuestion, Advisory: true, Text: one})
	}
	return strings.Join(lines, "\n"), asks
}

// texts returns a text, or the texts of a list, without empty ones; nil for anything else.
func texts(raw json.RawMessage) []string {
	var many []string
	if one, ok := stringIn(raw); ok {
		many = []string{one}
	} else if json.Unmarshal(raw, &many) != nil {
		return nil
	}
	for i := range many {
		many[i] = strings.TrimSpace(many[i])
	}
	return slices.DeleteFunc(many, func(one string) bool { return one == "" })
}

// A missing list is empty. Unknown keys are ignored unless they look like a misspelling, which
// would otherwise make the answer empty.
func decode(raw json.RawMessage) (ch workspace.Change, err error) {
	if key, ok := reply.RepeatedKey(raw); ok {
		return ch, fmt.Errorf("the key %q appears twice in the object", key)
	}
	known, unknown := 0, 0
	err = eachKey(raw, func(key string, value json.RawMessage) error {
		known++
		switch {
		case key == keyWrite && string(value) == "null":
			return nil
		case key == keyWrite && value[0] != '{':
			return fmt.Errorf("%q must be an object of paths and contents", keyWrite)
		case key == keyWrite:
			return eachKey(value, func(p string, value json.RawMessage) error {
				content, ok := stringIn(value, "contents", "content")
				if !ok {
					return fmt.Errorf("the contents of %q must be a string with the whole file, and nothing else", p)
				}
				ch.Edits = append(ch.Edits, workspace.Edit{Path: reply.Unquoted(p), Content: []byte(content)})
				return nil
			})
		case key == keyDelete:
			var list []json.RawMessage
			err := json.Unmarshal(value, &list)
			for _, one := range list {
				p, ok := stringIn(one, "file", "path")
				if !ok {
					err = errNoPath
				}
				ch.Edits = append(ch.Edits, workspace.Edit{Path: reply.Unquoted(p), Delete: true})
			}
			if err != nil {
				return errNoPath
			}
			return nil
		case isKey(key):
			return fmt.Errorf("the key %q is not one of %q and %q", key, keyWrite, keyDelete)
		}
		known--
		unknown++
		return nil
	})
	if err == nil && known == 0 && unknown > 0 {
		err = fmt.Errorf("the object has neither %q nor %q", keyWrite, keyDelete)
	}
	return ch, err
}

var errNoPath = fmt.Errorf("%q must be a list of paths", keyDelete)

// Only letters count.
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

// raw is an object. Its members keep their order.
func eachKey(raw json.RawMessage, visit func(key string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	_, err := d.Token() // the opening brace
	for err == nil && d.More() {
		var key json.Token
		var value json.RawMessage
		if key, err = d.Token(); err == nil {
			err = d.Decode(&value)
		}
		if err == nil {
			err = visit(key.(string), value)
		}
	}
	return err
}

// stringIn returns a string, or the one string member of an object that has one of
// the names, as in Bork's later form with a rationale for each edit. Any other member might
// change what the string means.
func stringIn(value json.RawMessage, names ...string) (string, bool) {
	var s *string
	if json.Unmarshal(value, &s) == nil && s != nil {
		return *s, true
	}
	var members map[string]any
	if json.Unmarshal(value, &members) != nil {
		return "", false
	}
	text, found := "", false
	for name, member := range members {
		one, isText := member.(string)
		switch {
		case isText && !found && slices.Contains(names, name):
			text, found = one, true
		case !reply.IsRemark(name, member):
			return "", false
		}
	}
	return text, found
}

// No order makes these edits possible: the same path twice, a path below a file, and deleting a directory (ruling B6).
func collisions(ch workspace.Change, known []string) (faults []string) {
	files, dirs := map[string]bool{}, map[string]bool{}
	for _, k := range known {
		files[k] = true
		for d := path.Dir(k); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	once, gone := map[string]bool{}, map[string]bool{}
	for _, e := range ch.Edits {
		p := path.Clean(e.Path)
		gone[p] = e.Delete
		if once[p] {
			faults = append(faults, fmt.Sprintf("%q appears twice", e.Path))
		}
		once[p] = true
		if e.Delete && dirs[p] {
			faults = append(faults, fmt.Sprintf("%q is a directory, and only files can be deleted", e.Path))
		}
	}
	for _, e := range ch.Edits {
		for d := path.Dir(path.Clean(e.Path)); !e.Delete && d != "." && d != "/"; d = path.Dir(d) {
			if !gone[d] && (once[d] || files[d]) {
				faults = append(faults, fmt.Sprintf("%q is below %q, which is a file", e.Path, d))
			}
		}
	}
	return faults
}
