package task

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"hone"
	"hone/history"
	"hone/internal/artifact"
	"hone/model"
	"hone/tool"
)

// sessionLog is one session of an agent as CodeScribe's event log, which is TOML, shows it.
type sessionLog struct {
	get           history.Get
	logs          []*eventLog
	round, number int
	role          hone.Role
	phase         string
	agent         bool // it is a command-line agent's
	begun         history.Event
	id            string // CodeScribe's ids have the local time
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

func (s *sessionLog) start() {
	e := s.begun
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", e.Run, s.round, s.number))
	s.id = fmt.Sprintf("%s-%x", e.Time.Local().Format("20060102-150405"), sum[:3])
	for _, log := range s.logs {
		log.begin(s.id)
	}
	mode, most := "native_tools", s.role.Bounds.Resolved().Turns
	if s.agent {
		mode, most = "agent", 1
	}
	s.event("run_start", e.Time, pair{"mode", mode}, pair{"max_iterations", most})
}

func (s *sessionLog) ask(e history.Event) {
	s.endTurn(e.Time)
	s.turn = e.Step.Turn
	s.event("iteration_start", e.Time, pair{"iteration", s.turn})
}

func (s *sessionLog) endTurn(at time.Time) {
	if s.called {
		s.event("iteration_end", at, pair{"iteration", s.turn}, pair{"stop_reason", "tool_calls"})
	}
	s.called, s.said = false, ""
}

func (s *sessionLog) commit(c history.Commit) {
	if c.Usage == nil {
		return
	}
	sum := *c.Usage
	if s.usage != nil {
		sum = sum.Add(*s.usage)
	}
	s.usage = &sum
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
	pairs := []pair{{"iteration", s.turn}, {"duration_ms", took(begin, e)}, {"text_chars", characters(s.said)}, tools}
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

func took(begin, record history.Event) int64 {
	return max(0, record.Time.Sub(begin.Time).Milliseconds())
}

func (s *sessionLog) call(e history.Event, c history.ToolCall) error {
	s.called = true
	args, err := c.Arguments(s.get)
	if err != nil {
		return err
	}
	pairs := []pair{{"iteration", s.turn}, {"tool", c.Tool}, {"args", args}}
	if c.Refused != "" {
		s.rejected = append(s.rejected, rejectedCall(c.Tool, args, c.Refused))
		s.event("tool_rejected", e.Time, append(pairs, pair{"reason", c.Refused})...)
		return nil
	}
	if s.said != "" {
		pairs = append(pairs, pair{"model_reasoning", s.said})
	}
	s.event("tool_start", e.Time, pairs...)
	return nil
}

func rejectedCall(name, args, reason string) map[string]any {
	return map[string]any{"name": name, "args": object(args), "reason": reason}
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
	if got.Refused {
		s.rejected = append(s.rejected, rejectedCall(c.Tool, args, "refused"))
	} else {
		s.calls = append(s.calls, map[string]any{"name": c.Tool, "args": object(args), "ok": !got.Failed, "output_preview": preview})
	}
	pairs := []pair{{"iteration", s.turn}, {"tool", c.Tool}, {"ok", !got.Failed}}
	if got.Failed {
		pairs = append(pairs, pair{"error", short(strings.TrimPrefix(got.Text, "Error: "), 500)})
	}
	s.event("tool_end", e.Time, append(pairs, pair{"duration_ms", took(begin, e)}, pair{"output_chars", characters(got.Text)}, pair{"output_preview", preview})...)
	return nil
}

func (s *sessionLog) end(e history.Event, facts LoopSummary) {
	s.endTurn(e.Time)
	s.ended = stopReason(facts.Ended)
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

// maxLog limits the size of a log from before a run, in bytes.
const maxLog = 256 << 20

// eventLog is a file of events. Users follow it with "tail -f", so that a process appends to it wherever that is enough.
type eventLog struct {
	text    []byte // not written yet
	start   string // of the run's first session in it
	opened  bool   // by this process
	replace bool   // the file gets only the text
}

func (g *eventLog) begin(id string) {
	if g.start == "" {
		g.start = "[[event]]\nevent = \"run_start\"\nrun_id = " + quote(id) + "\n"
	}
}

// An earlier process of the run may have written some of the text, and died in the middle of an event.
func (g *eventLog) write(dir, name string) error {
	text, replace := g.text, g.replace
	if !g.opened && !replace {
		old, err := artifact.Read(dir, name, maxLog)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if i := bytes.Index(old, []byte(g.start)); i >= 0 {
			replace, text = true, append(old[:i:i], text...)
		} else if len(old) > 0 && old[len(old)-1] != '\n' {
			text = append([]byte("\n"), text...)
		}
	}
	g.text, g.opened, g.replace = nil, true, false
	if replace {
		return artifact.Write(dir, name, bytes.NewReader(text))
	}
	f, err := artifact.OpenAppend(dir, name)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
