package history

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/journal"
)

// plainKeys are the fields of events whose texts a redacted journal keeps: names that
// hone or the user's files have, and hone's own words.
var plainKeys = []string{
	"hone", "loop", "model", "role", "tool", "finish", "result", "decision", "verdict", "basis", "by", "what", "verb",
	"wall", "level", "net", "path", "paths", "file", "outside", "put_back", "tree", "repo", "id",
}

var envelope = []string{"v", "seq", "time", "run", "type", "phase", "step", "input", "active_ms"}

// Redact returns the events of a run without its texts, for a report about a fault. What
// is kept are numbers, times, digests, the names of models, tools and files, and how steps
// and rounds ended. Every other text, such as the contents of files, prompts, replies,
// commands, their output, findings and the settings, is replaced by its length and by a
// MAC with the key, so that equal texts can be recognized. The journal has a chain of its
// own and no MACs; it can be shown, and not resumed or replayed.
func Redact(events []journal.Event, key []byte) ([]journal.Event, error) {
	r := redaction{key}
	var text []byte
	prev := ""
	for i, e := range events {
		var v map[string]any
		d := json.NewDecoder(bytes.NewReader(e.Line()))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("redact event %d: %w", e.Seq, err)
		}
		for name, value := range v {
			if !slices.Contains(envelope, name) {
				v[name] = r.value(name, "", value)
			}
		}
		delete(v, "mac")
		if v["prev"] = prev; i == 0 {
			v["redacted"] = true
			delete(v, "git") // its keys are names
		}
		line, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("redact event %d: %w", e.Seq, err)
		}
		prev = fmt.Sprintf("%x", sha256.Sum256(line))
		text = append(append(text, line...), '\n')
	}
	if len(events) == 0 {
		return nil, nil
	}
	return journal.Parse(events[0].Run, text)
}

type redaction struct{ key []byte }

// parent is the key of the object that the value is in.
func (r redaction) value(key, parent string, v any) any {
	switch v := v.(type) {
	case string:
		if r.isPlain(key, parent, v) {
			return v
		}
		return r.mark(v)
	case []any:
		for i := range v {
			v[i] = r.value(key, parent, v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = r.value(name, key, v[name])
		}
	}
	return v
}

func (r redaction) isPlain(key, parent, text string) bool {
	if text == "" || slices.Contains(plainKeys, key) {
		return true
	}
	if key == "name" && strings.HasSuffix(parent, "model") || parent == "flags" { // of what to type next
		return true
	}
	if len(text) == 64 && strings.Trim(text, "0123456789abcdef") == "" {
		return true
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

func (r redaction) mark(text string) string {
	h := hmac.New(sha256.New, r.key)
	h.Write([]byte(text))
	return fmt.Sprintf("[%d bytes, %x]", len(text), h.Sum(nil)[:6])
}
