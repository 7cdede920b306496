package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"hone/history"
)

// pair is a key with its value: a string, an int64, an int or a bool.
type pair struct {
	key   string
	value any
}

// A reader gets every string back unchanged, except that each sequence of bytes that are not UTF-8, which TOML cannot
// represent, becomes U+FFFD.
func encode(pairs []pair) string {
	var b strings.Builder
	for _, p := range pairs {
		switch v := p.value.(type) {
		case string:
			fmt.Fprintf(&b, "%s = %s\n", p.key, quote(v))
		default:
			fmt.Fprintf(&b, "%s = %v\n", p.key, v)
		}
	}
	return b.String()
}

// quote returns a string as CodeScribe writes it: between ”' if it has several lines,
// or on one line if it cannot be written that way.
func quote(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.Contains(s, "\n") && literal(s) {
		return "'''\n" + s + "'''"
	}
	var b strings.Builder
	e := json.NewEncoder(&b) // JSON's escapes are TOML's too
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007F`)
}

func literal(s string) bool {
	if strings.Contains(s, "'''") || strings.HasSuffix(s, "'") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	})
}

// most is in characters.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i]
		}
		n++
	}
	return text
}

func characters(text string) int { return utf8.RuneCountInString(text) }

// metadata returns the file about a session, as CodeScribe writes it since July 2026.
func (s *sessionLog) metadata(facts LoopSummary, e history.Event) map[string]any {
	failed := 0
	for _, c := range s.calls {
		if c["ok"] == false {
			failed++
		}
	}
	u := s.used
	return map[string]any{"loop_index": s.round, "stop_reason": s.ended, "final_text_present": facts.missingAnswer() == "", "iterations": s.turn,
		"duration_s": float64(e.Active-s.begun.Active) / 1000, "created_at": stamp(e.Time), "tools": s.calls, "rejected_calls": s.rejected,
		"usage":      map[string]int64{"input": u.Input, "output": u.Output, "reasoning": u.Reasoning, "cache_write": u.CacheWrite, "cache_read": u.CacheRead},
		"tool_calls": map[string]int{"executed": len(s.calls), "rejected": len(s.rejected), "errors": failed, "ok": len(s.calls) - failed}}
}

// object returns the arguments of a call in a form that TOML has; empty if they are not JSON.
func object(args string) map[string]any {
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var v map[string]any
	if d.Decode(&v) != nil {
		return map[string]any{}
	}
	return inTOML(v).(map[string]any)
}

// CodeScribe cuts strings as well.
func inTOML(v any) any {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if n := characters(v); n > 500 {
			return fmt.Sprintf("%s... [truncated, %d chars total]", short(v, 500), n)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		n, _ := v.Float64()
		return n
	case []any:
		for i := range v {
			v[i] = inTOML(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = inTOML(v[key])
		}
	}
	return v
}
