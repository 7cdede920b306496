package task

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"hone"
	"hone/history"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// fold makes CodeScribe's event logs out of a journal.
type fold struct {
	home   *journal.Home
	events []journal.Event
	lookup func(journal.Identity) (begin, record *journal.Event)
}

// sessions are the events of a role's sessions in the rounds that count, as
// TOML. The step that summary names tells how each of them ended.
func (f fold) sessions(role hone.Role, summary string, counts func(round int) bool) ([]byte, error) {
	w := &sessionWriter{fold: f, role: role, summary: summary}
	begun := map[journal.Identity]bool{}
	for _, e := range f.events {
		w.meter.take(e)
		if e.Step == nil || !counts(e.Step.Round) || e.Phase == journal.Begin && begun[*e.Step] {
			continue // what a killed process began is begun again
		}
		begun[*e.Step] = true
		if err := w.take(e); err != nil {
			return nil, fmt.Errorf("event log: %w", err)
		}
	}
	return w.out.Bytes(), nil
}

// sessionWriter writes the events of one role.
type sessionWriter struct {
	fold
	role    hone.Role
	summary string
	out     bytes.Buffer

	at     journal.Identity // of the session: its round and number alone
	run    string           // the session's id
	turn   int
	called bool   // the turn has calls
	said   string // the turn's text
	agent  bool   // the session is one of an agent's
	used   model.Usage
	meter  meter
}

// take writes what an event of the journal comes to.
func (w *sessionWriter) take(e journal.Event) error {
	switch {
	case e.Type == history.TypeAsk && e.Phase == journal.Begin:
		return w.ask(e)
	case e.Type == history.TypeReply:
		return w.reply(e)
	case e.Type == history.TypeTool && e.Step.Name == "tool" && e.Phase == journal.Begin:
		return w.call(e)
	case e.Type == history.TypeTool && e.Step.Name == "tool":
		return w.result(e)
	case e.Phase == journal.Record && e.Step.Name == w.summary:
		return w.end(e)
	}
	return nil
}

// event writes one [[event]].
func (w *sessionWriter) event(name string, at time.Time, pairs ...pair) {
	all := append([]pair{{"event", name}, {"run_id", w.run}}, pairs...)
	w.out.WriteString("[[event]]\n" + encode(append(all, pair{"ts", stamp(at)})) + "\n")
}

func (w *sessionWriter) ask(e journal.Event) error {
	var a history.Asked
	if err := e.Decode(&a); err != nil || a.Role != w.role.Name {
		return err
	}
	if at := (journal.Identity{Round: e.Step.Round, Session: e.Step.Session}); at != w.at {
		*w = sessionWriter{fold: w.fold, role: w.role, summary: w.summary, out: w.out, at: at, run: sessionID(e), agent: a.Command, meter: w.meter}
		mode, most := "native_tools", w.role.Bounds.Resolved().Turns
		if w.agent {
			mode, most = "agent", 1
		}
		w.event("run_start", e.Time, pair{"mode", mode}, pair{"max_iterations", most})
	}
	w.endTurn(e.Time)
	w.turn = e.Step.Turn
	w.event("iteration_start", e.Time, pair{"iteration", w.turn})
	return nil
}

// sessionID is an id of CodeScribe's form for a session.
func sessionID(e journal.Event) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", e.Run, e.Step.Round, e.Step.Session))
	return fmt.Sprintf("%s-%x", e.Time.Local().Format("20060102-150405"), sum[:3])
}

// endTurn ends a turn that had calls.
func (w *sessionWriter) endTurn(at time.Time) {
	if w.called {
		w.event("iteration_end", at, pair{"iteration", w.turn}, pair{"stop_reason", "tool_calls"})
	}
	w.called, w.said = false, ""
}

func (w *sessionWriter) reply(e journal.Event) error {
	var got history.Replied
	if err := e.Decode(&got); err != nil || got.Role != w.role.Name {
		return err
	}
	b, err := w.home.Get(got.Reply)
	if err != nil {
		return err
	}
	var kept struct{ Reply model.Reply }
	if err := json.Unmarshal(b, &kept); err != nil {
		return fmt.Errorf("recorded reply %s: %w", got.Reply, err)
	}
	w.said = kept.Reply.Text()
	tools := pair{"tool_calls", len(kept.Reply.Calls())}
	if w.agent {
		tools = pair{"tools", agentsOwn}
	}
	pairs := []pair{
		{"iteration", w.turn},
		{"duration_ms", w.took(e)},
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

// took is how long a step took, in milliseconds.
func (w *sessionWriter) took(record journal.Event) int64 {
	begin, _ := w.lookup(*record.Step)
	if begin == nil {
		return 0
	}
	return max(0, record.Time.Sub(begin.Time).Milliseconds())
}

// usageText is a usage record as JSON.
func usageText(u model.Usage) string {
	return fmt.Sprintf(`{"input": %d, "output": %d, "reasoning": %d, "cache_write": %d, "cache_read": %d, "total": %d}`,
		u.Input, u.Output, u.Reasoning, u.CacheWrite, u.CacheRead, u.Total())
}

func (w *sessionWriter) call(e journal.Event) error {
	b, ours, err := w.begun(&e)
	if err != nil || !ours {
		return err
	}
	w.called = true
	args := b.Args
	if b.Object != "" {
		text, err := w.home.Get(b.Object)
		if err != nil {
			return err
		}
		args = string(text)
	}
	if b.Refused != "" {
		w.event("tool_rejected", e.Time, pair{"iteration", w.turn}, pair{"tool", b.Tool}, pair{"args", args}, pair{"reason", b.Refused})
		return nil
	}
	pairs := []pair{{"iteration", w.turn}, {"tool", b.Tool}, {"args", args}}
	if w.said != "" {
		pairs = append(pairs, pair{"model_reasoning", w.said})
	}
	w.event("tool_start", e.Time, pairs...)
	return nil
}

// begun reads the begin of a call, and says whether it is the role's.
func (w *sessionWriter) begun(e *journal.Event) (b history.ToolCall, ours bool, err error) {
	if e == nil {
		return b, false, nil
	}
	err = e.Decode(&b)
	return b, err == nil && b.Role == w.role.Name, err
}

func (w *sessionWriter) result(e journal.Event) error {
	begin, _ := w.lookup(*e.Step)
	b, ours, err := w.begun(begin)
	if err != nil || !ours || b.Refused != "" {
		return err
	}
	got, err := recorded[tool.Result](w.home, e)
	if err != nil {
		return err
	}
	pairs := []pair{{"iteration", w.turn}, {"tool", b.Tool}, {"ok", !got.Failed}}
	if got.Failed {
		pairs = append(pairs, pair{"error", short(strings.TrimPrefix(got.Text, "Error: "), 500)})
	}
	w.event("tool_end", e.Time, append(pairs, pair{"duration_ms", w.took(e)}, pair{"output_chars", characters(got.Text)},
		pair{"output_preview", short(got.Text, 500)})...)
	return nil
}

// end ends a session.
func (w *sessionWriter) end(e journal.Event) error {
	s, err := recorded[LoopSummary](w.home, e)
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

// stopReason is CodeScribe's word for how a session ended.
func stopReason(ended string) string {
	switch ended {
	case hone.EndedTurns:
		return "max_iterations"
	case hone.EndedCalls:
		return "tool_budget"
	case hone.EndedBudget:
		return "token_budget"
	}
	return "final_text"
}

// recorded reads a step's record, which may stand in an object.
func recorded[T any](home *journal.Home, e journal.Event) (T, error) {
	var v T
	var in struct {
		Object string `json:"result_object"`
	}
	if err := e.Decode(&in); err != nil {
		return v, err
	}
	if in.Object == "" {
		return v, e.Decode(&v)
	}
	b, err := home.Get(in.Object)
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(b, &v)
}
