package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"hone/model"
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
	b.WriteByte('"')
	for _, r := range s {
		b.WriteString(escaped(r))
	}
	b.WriteByte('"')
	return b.String()
}

func literal(s string) bool {
	if strings.Contains(s, "'''") || strings.HasSuffix(s, "'") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	})
}

func escaped(r rune) string {
	switch {
	case r == '"' || r == '\\':
		return `\` + string(r)
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r < ' ' || r == 0x7f:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return string(r)
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

// metadata is a file about one session, as CodeScribe writes them since July 2026.
type metadata struct {
	RunID    string  `toml:"run_id"`
	Loop     int     `toml:"loop_index"`
	Phase    string  `toml:"phase"`
	Model    string  `toml:"model"`
	TaskFile string  `toml:"task_file"`
	Workdir  string  `toml:"workdir"`
	Stop     string  `toml:"stop_reason"`
	Final    bool    `toml:"final_text_present"`
	Turns    int     `toml:"iterations"`
	Seconds  float64 `toml:"duration_s"`
	Usage    struct {
		Input      int64 `toml:"input"`
		Output     int64 `toml:"output"`
		Reasoning  int64 `toml:"reasoning"`
		CacheWrite int64 `toml:"cache_write"`
		CacheRead  int64 `toml:"cache_read"`
	} `toml:"usage"`
	Count struct {
		Executed int `toml:"executed"`
		Rejected int `toml:"rejected"`
		Errors   int `toml:"errors"`
		OK       int `toml:"ok"`
	} `toml:"tool_calls"`
	Tools    []executedCall `toml:"tools"`
	Rejected []rejectedCall `toml:"rejected_calls"`
	At       string         `toml:"created_at"`
}

type executedCall struct {
	Name    string         `toml:"name"`
	Args    map[string]any `toml:"args"`
	OK      bool           `toml:"ok"`
	Preview string         `toml:"output_preview"`
}

type rejectedCall struct {
	Name   string         `toml:"name"`
	Args   map[string]any `toml:"args"`
	Reason string         `toml:"reason"`
}

func (m metadata) text(u model.Usage) (string, error) {
	m.Usage.Input, m.Usage.Output, m.Usage.Reasoning, m.Usage.CacheWrite, m.Usage.CacheRead = u.Input, u.Output, u.Reasoning, u.CacheWrite, u.CacheRead
	m.Count.Executed, m.Count.Rejected = len(m.Tools), len(m.Rejected)
	for _, c := range m.Tools {
		if c.OK {
			m.Count.OK++
		}
	}
	m.Count.Errors = m.Count.Executed - m.Count.OK
	b, err := toml.Marshal(m)
	return string(b), err
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
