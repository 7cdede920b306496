package otlp

import (
	"strconv"
	"strings"

	"hone/model"
)

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
