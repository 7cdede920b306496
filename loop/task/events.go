package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"hone"
	"hone/history"
	"hone/model"
	"hone/tool"
)

// sessionLog is one session of an agent as CodeScribe's event log, which is TOML, shows it.
type sessionLog struct {
	get           history.Get
	logs          []*eventLog
	round, number int
	phase         string
	agent         bool // it is a command-line agent's
	begun         history.Event
	id            string
	turn          int
	called        bool         // the turn has calls
	said          string       // the turn's text
	usage         *model.Usage // of an agent's model calls: of the run's ledger, not what the agent reports; nil if not known
	used          model.Usage
	ended         string // CodeScribe's word; empty while it goes on
	calls         []map[string]any
	rejected      []map[string]any
}

func (s *sessionLog) event(name string, at time.Time, pairs ...pair) {
	all := append([]pair{{"event", name}, {"run_id", s.id}}, pairs...)
	text := "[[event]]\n" + encode(append(all, pair{"ts", stamp(at)})) + "\n"
	for _, log := range s.logs {
		log.text = append(log.text, text...)
	}
}

func (s *sessionLog) endTurn(at time.Time) {
	if s.called {
		s.event("iteration_end", at, pair{"iteration", s.turn}, pair{"stop_reason", "tool_calls"})
	}
	s.called, s.said = false, ""
}

func (s *sessionLog) reply(e, begin history.Event, p history.Replied) error {
	reply, err := history.ReadReply(p, s.get)
	if err != nil {
		return err
	}
	s.said = reply.Text()
	used, tools := p.Usage, pair{"tool_calls", len(reply.Calls())}
	if s.agent {
		used, tools = s.usage, pair{"tools", agentsOwn}
	}
	pairs := []pair{{"iteration", s.turn}, took(begin, e), {"text_chars", utf8.RuneCountInString(s.said)}, tools}
	if used != nil {
		s.used = s.used.Add(*used)
		pairs = append(pairs, pair{"usage", fmt.Sprintf(`{"input": %d, "output": %d, "reasoning": %d, "cache_write": %d, "cache_read": %d, "total": %d}`,
			used.Input, used.Output, used.Reasoning, used.CacheWrite, used.CacheRead, used.Total())})
	}
	if s.said != "" {
		pairs = append(pairs, pair{"model_text", short(s.said, 500)})
	}
	s.event("model_response", e.Time, pairs...)
	return nil
}

func took(begin, record history.Event) pair {
	return pair{"duration_ms", max(0, record.Time.Sub(begin.Time).Milliseconds())}
}

func (s *sessionLog) call(e history.Event, c history.ToolCall) error {
	s.called = true
	args, err := c.Arguments(s.get)
	if err != nil {
		return err
	}
	pairs := []pair{{"iteration", s.turn}, {"tool", c.Tool}, {"args", args}}
	switch {
	case c.Refused != "":
		s.rejected = append(s.rejected, map[string]any{"name": c.Tool, "args": object(args), "reason": c.Refused})
		s.event("tool_rejected", e.Time, append(pairs, pair{"reason", c.Refused})...)
		return nil
	case s.said != "":
		pairs = append(pairs, pair{"model_reasoning", s.said})
	}
	s.event("tool_start", e.Time, pairs...)
	return nil
}

func (s *sessionLog) result(e, begin history.Event, c history.ToolCall) error {
	got, err := history.ReadResult[tool.Result](e.Event, s.get)
	if err != nil {
		return err
	}
	args, err := c.Arguments(s.get)
	if err != nil {
		return err
	}
	preview := short(got.Text, 500)
	if call := map[string]any{"name": c.Tool, "args": object(args)}; got.Refused {
		call["reason"] = "refused"
		s.rejected = append(s.rejected, call)
	} else {
		call["ok"], call["output_preview"] = !got.Failed, preview
		s.calls = append(s.calls, call)
	}
	pairs := []pair{{"iteration", s.turn}, {"tool", c.Tool}, {"ok", !got.Failed}}
	if got.Failed {
		pairs = append(pairs, pair{"error", short(strings.TrimPrefix(got.Text, "Error: "), 500)})
	}
	s.event("tool_end", e.Time, append(pairs, took(begin, e), pair{"output_chars", utf8.RuneCountInString(got.Text)}, pair{"output_preview", preview})...)
	return nil
}

func (s *sessionLog) end(e history.Event, facts LoopSummary) {
	s.endTurn(e.Time)
	switch s.ended = "final_text"; facts.Ended { // CodeScribe's names
	case hone.EndedTurns:
		s.ended = "max_iterations"
	case hone.EndedCalls:
		s.ended = "tool_budget"
	case hone.EndedBudget:
		s.ended = "token_budget"
	case hone.EndedDiscarded, hone.EndedRepeats:
		s.ended = "no_progress"
	}
	pairs := []pair{
		{"iteration", s.turn},
		{"stop_reason", s.ended},
		{"total_input_tokens", s.used.Input},
		{"total_output_tokens", s.used.Output},
		{"total_reasoning_tokens", s.used.Reasoning},
		{"total_cache_creation_tokens", s.used.CacheWrite},
		{"total_cache_read_tokens", s.used.CacheRead},
	}
	if facts.Agent {
		pairs = append(pairs, pair{"files", facts.filesText()})
	}
	s.event("run_end", e.Time, pairs...)
}

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
		if text, ok := p.value.(string); ok {
			p.value = quote(text)
		}
		fmt.Fprintf(&b, "%s = %v\n", p.key, p.value)
	}
	return b.String()
}

// quote returns a string as CodeScribe writes it: between ”' if it has several lines,
// or on one line if it cannot be written that way.
func quote(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }
	if strings.Contains(s, "\n") && !strings.Contains(s, "'''") && !strings.HasSuffix(s, "'") && !strings.ContainsFunc(s, control) {
		return "'''\n" + s + "'''"
	}
	var b strings.Builder
	e := json.NewEncoder(&b) // JSON's escapes are TOML's too
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007F`)
}

// CodeScribe formats times like this.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// most is in characters.
func short(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
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
		if n := utf8.RuneCountInString(v); n > 500 {
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
