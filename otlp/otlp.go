// Package otlp writes a run as a trace: an ExportTraceServiceRequest in the JSON form of OTLP, which OpenTelemetry's collector
// reads and takes by POST at /v1/traces. Its attributes follow the semantic conventions for generative AI; those that begin
// with "hone." are hone's own.
//
// The run is the root span. Its children are the rounds, and theirs the calls of models and tools, the checks and commands,
// and the waits between attempts. Ids are derived from the run's, so a run that is written again has the same ones.
//
// It is plain JSON and not the generated code of the protocol: that writes ids in base64, where OTLP wants hexadecimal digits.
package otlp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"hone/check"
	"hone/history"
	"hone/model"
	"hone/story"
	"hone/tool"
)

// Run is what is written of a run.
type Run struct {
	ID      string
	Start   history.Start
	Past    *history.Past
	Working bool                   // a process works on it
	Get     history.Get            // reads an object of the run
	Own     func(path string) bool // a file that the loop writes for the user; nil: there are none
}

// conventions are those that the attributes follow.
const conventions = "https://opentelemetry.io/schemas/1.41.0"

// Write writes the trace of a run as one JSON object. A span that has not ended ends with the
// last event that is known.
func Write(w io.Writer, r Run) error {
	t := trace{Run: r, id: digest(r.ID, "")[:32]}
	root := t.root()
	t.spans = append(t.spans, root)
	for _, round := range story.RoundsOf(r.Past.Events(), r.Get, r.Own, r.Working) {
		if err := t.addRound(root.ID, round); err != nil {
			return err
		}
	}
	type message map[string]any
	return json.NewEncoder(w).Encode(message{"resourceSpans": []message{{
		"resource": message{"attributes": attributes{}.text("service.name", "hone").text("service.version", r.Start.Version)},
		"scopeSpans": []message{{
			"scope": message{"name": "hone", "version": r.Start.Version}, "spans": t.spans, "schemaUrl": conventions,
		}},
	}}})
}

type trace struct {
	Run
	id    string
	spans []span
}

// digest returns hexadecimal digits that are the same for the same part of a run.
func digest(run, part string) string {
	sum := sha256.Sum256([]byte("hone trace\x00" + run + "\x00" + part))
	return hex.EncodeToString(sum[:])
}

func (t *trace) span(part, parent, name string, kind int, from, to time.Time) span {
	return span{Trace: t.id, ID: digest(t.Run.ID, part)[:16], Parent: parent, Name: name, Kind: kind, From: nanos(from), To: nanos(to)}
}

func nanos(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

func (t *trace) root() span {
	now := t.Past.Facts()
	standing := story.StandingOf(t.Past, t.Working)
	first, _, _ := strings.Cut(story.ModelName(t.Start.Model), ",")
	numbers := story.NumbersOf(t.Past, now.Ledger, 0)
	s := t.span("run", "", "invoke_agent hone "+t.Start.Loop, internal, t.Past.First().Time, t.Past.Last().Time)
	s.Attributes = s.Attributes.text("gen_ai.operation.name", "invoke_agent").text("gen_ai.agent.name", "hone "+t.Start.Loop).
		text("gen_ai.conversation.id", t.Run.ID).model(first).usage(now.Ledger.Known).
		text("hone.result", standing.Result).number("hone.rounds", int64(numbers.Rounds)).
		number("hone.usage.unconfirmed_tokens", numbers.Unconfirmed).cost(numbers.Cost)
	if numbers.Findings != nil {
		s.Attributes = s.Attributes.number("hone.findings", int64(*numbers.Findings))
	}
	if now.Ended && now.End.Kind != history.KindDone {
		s.fail(string(now.End.Kind))
	}
	return s
}

func (t *trace) addRound(root string, r story.Round) error {
	if len(r.Spans) == 0 {
		return nil
	}
	from, to := r.Spans[0].Began.Time, r.Spans[0].Began.Time
	for _, s := range r.Spans {
		if end := endOf(s); end.After(to) {
			to = end
		}
	}
	round := t.span(fmt.Sprintf("round %d", r.Number), root, r.Name(), internal, from, to)
	round.Attributes = round.Attributes.number("hone.round", int64(r.Number)).number("hone.changed_files", int64(len(r.Changes()))).cost(r.Cost)
	if r.Decided() {
		round.Attributes = round.Attributes.number("hone.findings", int64(r.Left()))
	}
	t.spans = append(t.spans, round)
	for _, s := range r.Spans {
		one, err := t.part(round.ID, s)
		if err != nil {
			return err
		}
		t.spans = append(t.spans, one)
	}
	return nil
}

// The active time of a span that has not ended is known, and so is that of a wait.
func endOf(s story.Span) time.Time {
	if s.Ended.Payload != nil {
		return s.Ended.Time
	}
	return s.Began.Time.Add(s.To - s.From)
}

func (t *trace) part(round string, p story.Span) (s span, err error) {
	s = t.span(fmt.Sprintf("event %d", p.Began.Seq), round, p.Kind, internal, p.Began.Time, endOf(p))
	switch b := p.Began.Payload.(type) {
	case history.Asked:
		t.asked(&s, b, p.Ended)
	case history.ToolCall:
		err = t.called(&s, b, p.Ended)
	case history.CheckBegun:
		s.Name = p.Name
		if c, ok := p.Ended.Payload.(history.Checked); ok {
			s.Attributes = s.Attributes.number("hone.findings", int64(check.Count(check.BlockingOf(c.Findings))))
		}
	case history.CommandBegun:
		s.Name = p.Name
	case history.Retried:
		s.Attributes = s.Attributes.number("hone.attempt", int64(b.Attempt))
		return s, nil
	}
	if p.Ended.Payload == nil {
		s.fail("unfinished")
	}
	return s, err
}

func (t *trace) asked(s *span, b history.Asked, ended history.Event) {
	operation := "chat"
	s.Kind = client
	if b.Command {
		operation, s.Kind = "invoke_agent", internal
	}
	reply, ok := ended.Payload.(history.Replied)
	name := b.Model
	if ok {
		name = cmp.Or(reply.Model, b.Model)
	}
	name = story.ModelName(name)
	s.Name = operation + " " + name[strings.Index(name, "/")+1:]
	s.Attributes = s.Attributes.text("gen_ai.operation.name", operation).text("gen_ai.agent.name", b.Role).model(name)
	if !ok {
		return
	}
	s.Attributes = s.Attributes.list("gen_ai.response.finish_reasons", string(reply.Finish))
	if reply.Usage != nil {
		s.Attributes = s.Attributes.usage(*reply.Usage)
	}
}

func (t *trace) called(s *span, b history.ToolCall, ended history.Event) error {
	s.Name = "execute_tool " + b.Tool
	s.Attributes = s.Attributes.text("gen_ai.operation.name", "execute_tool").text("gen_ai.tool.name", b.Tool).
		text("gen_ai.tool.type", "function").text("gen_ai.agent.name", b.Role)
	if ended.Payload == nil {
		return nil
	}
	result, err := history.ReadResult[tool.Result](ended.Event, t.Get)
	switch {
	case result.Refused:
		s.fail("refused")
	case result.Failed:
		s.fail("failed")
	}
	return err
}

// The messages of OTLP that a trace of hone has many of. Integers of 64 bits are texts.
type (
	span struct {
		Trace      string     `json:"traceId"`
		ID         string     `json:"spanId"`
		Parent     string     `json:"parentSpanId,omitempty"`
		Name       string     `json:"name"`
		Kind       int        `json:"kind"`
		From       string     `json:"startTimeUnixNano"`
		To         string     `json:"endTimeUnixNano"`
		Attributes attributes `json:"attributes"`
		Status     status     `json:"status"`
	}
	status struct {
		Code int `json:"code,omitempty"`
	}
	attributes []attribute
	attribute  struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"` // of one field, which is named after its type
	}
)

// The kinds of spans, and the status of one that failed.
const (
	internal = 1
	client   = 3
	failed   = 2
)

func (s *span) fail(why string) {
	s.Status.Code = failed
	s.Attributes = s.Attributes.text("error.type", why)
}

func (a attributes) text(key, value string) attributes {
	if value == "" {
		return a
	}
	return append(a, attribute{key, map[string]any{"stringValue": value}})
}

func (a attributes) number(key string, n int64) attributes {
	return append(a, attribute{key, map[string]any{"intValue": strconv.FormatInt(n, 10)}})
}

// cost adds dollars; nil, for an unknown cost, adds nothing.
func (a attributes) cost(usd *float64) attributes {
	if usd == nil {
		return a
	}
	return append(a, attribute{"hone.cost_usd", map[string]any{"doubleValue": *usd}})
}

func (a attributes) list(key string, values ...string) attributes {
	list := []map[string]any{}
	for _, v := range values {
		list = append(list, map[string]any{"stringValue": v})
	}
	return append(a, attribute{key, map[string]any{"arrayValue": map[string]any{"values": list}}})
}

func (a attributes) model(name string) attributes {
	provider, short, _ := strings.Cut(name, "/")
	if provider == "gemini" {
		provider = "gcp.gemini"
	}
	return a.text("gen_ai.provider.name", provider).text("gen_ai.request.model", short)
}

// usage adds tokens. By the conventions, the input includes what was cached.
func (a attributes) usage(u model.Usage) attributes {
	a = a.number("gen_ai.usage.input_tokens", u.Input+u.CacheRead+u.CacheWrite).number("gen_ai.usage.output_tokens", u.Output)
	if u.CacheRead+u.CacheWrite > 0 {
		a = a.number("gen_ai.usage.cache_read.input_tokens", u.CacheRead).number("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite)
	}
	if u.Reasoning > 0 {
		a = a.number("gen_ai.usage.reasoning.output_tokens", u.Reasoning)
	}
	return a
}
