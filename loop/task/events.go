package task

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"hone"
	"hone/history"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// CodeScribe's event log is TOML. It has the sessions of a role in the rounds for which counts is true; the record of the step
// summary ends each session.
func sessionLog(r *hone.Run, role hone.Role, summary string, counts func(round int) bool) ([]byte, error) {
	w := &sessionWriter{past: r.Past(), get: r.Journal.Home().Get, role: role, summary: summary}
	started := map[journal.Identity]bool{}
	for _, e := range w.past.Events() {
		w.meter.add(e)
		if e.Step == nil || !counts(e.Step.Round) || e.Phase == journal.Begin && started[*e.Step] {
			continue // a resumed process starts a step again that was not recorded
		}
		started[*e.Step] = true
		if err := w.add(e); err != nil {
			return nil, fmt.Errorf("event log: %w", err)
		}
	}
	return w.out.Bytes(), nil
}

type sessionWriter struct {
	past    *history.Past
	get     history.Get
	role    hone.Role
	summary string
	out     bytes.Buffer

	at     journal.Identity // of the session: only its round and number
	run    string           // the session's id
	turn   int
	called bool   // the turn has calls
	said   string // the turn's text
	agent  bool   // a command-line agent holds the session
	used   model.Usage
	meter  meter
}

func (w *sessionWriter) add(e history.Event) error {
	switch p := e.Payload.(type) {
	case history.Unreadable:
		return p.Err
	case history.Asked:
		if p.Role == w.role.Name {
			w.ask(e, p)
		}
	case history.Replied:
		if p.Role == w.role.Name {
			return w.reply(e, p)
		}
	case history.ToolCall:
		if p.Role == w.role.Name {
			return w.call(e, p)
		}
	case history.ToolResult:
		begin, _ := w.past.Begin(*e.Step)
		if call, ok := begin.Payload.(history.ToolCall); ok && call.Role == w.role.Name && call.Refused == "" {
			return w.result(e, call)
		}
	case history.StepResult:
		if e.Step.Name == w.summary {
			return w.end(e)
		}
	}
	return nil
}

func (w *sessionWriter) event(name string, at time.Time, pairs ...pair) {
	all := append([]pair{{"event", name}, {"run_id", w.run}}, pairs...)
	w.out.WriteString("[[event]]\n" + encode(append(all, pair{"ts", stamp(at)})) + "\n")
}

func (w *sessionWriter) ask(e history.Event, a history.Asked) {
	if at := (journal.Identity{Round: e.Step.Round, Session: e.Step.Session}); at != w.at {
		*w = sessionWriter{past: w.past, get: w.get, role: w.role, summary: w.summary, out: w.out, at: at, run: sessionID(e), agent: a.Command, meter: w.meter}
		mode, most := "native_tools", w.role.Bounds.Resolved().Turns
		if w.agent {
			mode, most = "agent", 1
		}
		w.event("run_start", e.Time, pair{"mode", mode}, pair{"max_iterations", most})
	}
	w.endTurn(e.Time)
	w.turn = e.Step.Turn
	w.event("iteration_start", e.Time, pair{"iteration", w.turn})
}

// CodeScribe's ids have this form.
func sessionID(e history.Event) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", e.Run, e.Step.Round, e.Step.Session))
	return fmt.Sprintf("%s-%x", e.Time.Local().Format("20060102-150405"), sum[:3])
}

func (w *sessionWriter) endTurn(at time.Time) {
	if w.called {
		w.event("iteration_end", at, pair{"iteration", w.turn}, pair{"stop_reason", "tool_calls"})
	}
	w.called, w.said = false, ""
}

func (w *sessionWriter) reply(e history.Event, p history.Replied) error {
	reply, err := history.ReadReply(p, w.get)
	if err != nil {
		return err
	}
	w.said = reply.Text()
	tools := pair{"tool_calls", len(reply.Calls())}
	if w.agent {
		tools = pair{"tools", agentsOwn}
	}
	pairs := []pair{
		{"iteration", w.turn},
		{"duration_ms", w.durationOf(e)},
		{"text_chars", characters(w.said)},
		tools,
	}
	if used := w.meter.last; used != nil {
		w.used = w.used.Add(*used)
		pairs = append(pairs, pair{"usage", usageText(*used)})
	}
	if w.said != "" {
		pairs = append(pairs, pair{"model_text", short(w.said, 500)})
	}
	w.event("model_response", e.Time, pairs...)
	return nil
}

func (w *sessionWriter) durationOf(record history.Event) int64 {
	begin, ok := w.past.Begin(*record.Step)
	if !ok {
		return 0
	}
	return max(0, record.Time.Sub(begin.Time).Milliseconds())
}

func usageText(u model.Usage) string {
	return fmt.Sprintf(`{"input": %d, "output": %d, "reasoning": %d, "cache_write": %d, "cache_read": %d, "total": %d}`,
		u.Input, u.Output, u.Reasoning, u.CacheWrite, u.CacheRead, u.Total())
}

func (w *sessionWriter) call(e history.Event, c history.ToolCall) error {
	w.called = true
	args, err := c.Arguments(w.get)
	if err != nil {
		return err
	}
	if c.Refused != "" {
		w.event("tool_rejected", e.Time, pair{"iteration", w.turn}, pair{"tool", c.Tool}, pair{"args", args}, pair{"reason", c.Refused})
		return nil
	}
	pairs := []pair{{"iteration", w.turn}, {"tool", c.Tool}, {"args", args}}
	if w.said != "" {
		pairs = append(pairs, pair{"model_reasoning", w.said})
	}
	w.event("tool_start", e.Time, pairs...)
	return nil
}

func (w *sessionWriter) result(e history.Event, c history.ToolCall) error {
	got, err := history.ReadResult[tool.Result](e.Event, w.get)
	if err != nil {
		return err
	}
	pairs := []pair{{"iteration", w.turn}, {"tool", c.Tool}, {"ok", !got.Failed}}
	if got.Failed {
		pairs = append(pairs, pair{"error", short(strings.TrimPrefix(got.Text, "Error: "), 500)})
	}
	w.event("tool_end", e.Time, append(pairs, pair{"duration_ms", w.durationOf(e)}, pair{"output_chars", characters(got.Text)},
		pair{"output_preview", short(got.Text, 500)})...)
	return nil
}

func (w *sessionWriter) end(e history.Event) error {
	s, err := history.ReadResult[LoopSummary](e.Event, w.get)
	if err != nil {
		return err
	}
	w.endTurn(e.Time)
	pairs := []pair{
		{"iteration", w.turn},
		{"stop_reason", stopReason(s.Ended)},
		{"total_input_tokens", w.used.Input},
		{"total_output_tokens", w.used.Output},
		{"total_reasoning_tokens", w.used.Reasoning},
		{"total_cache_creation_tokens", w.used.CacheWrite},
		{"total_cache_read_tokens", w.used.CacheRead},
	}
	if s.Agent {
		pairs = append(pairs, pair{"files", s.filesText()})
	}
	w.event("run_end", e.Time, pairs...)
	return nil
}

// The names are CodeScribe's.
func stopReason(ended string) string {
	switch ended {
	case hone.EndedTurns:
		return "max_iterations"
	case hone.EndedCalls:
		return "tool_budget"
	case hone.EndedBudget:
		return "token_budget"
	case hone.EndedDiscarded, hone.EndedRepeats:
		return "no_progress"
	}
	return "final_text"
}
