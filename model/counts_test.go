package model

import (
	"encoding/json"
	"testing"
)

func TestParseCount(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "12": 12, "12.0": 12, "1.2e1": 12, "1099511627776": MaxTokens,
	} {
		if got, ok := ParseCount(text); got != want || !ok {
			t.Errorf("ParseCount(%q) = %d, %v; want %d, true", text, got, ok, want)
		}
	}
	for _, text := range []string{"", `"12"`, "true", "[1]", "-1", "-0.5", "1.5", "1e400", "-1e400", "1e13", "1099511627777",
		"9223372036854775808", "18446744073709551617", "NaN", "Inf", "x"} {
		if _, ok := ParseCount(text); ok {
			t.Errorf("ParseCount(%q) is a count", text)
		}
	}
}

func TestCounts(t *testing.T) {
	read := func(raw string) *Usage {
		c := ReadCounts(json.RawMessage(raw))
		u := Usage{Input: c.Required("in"), CacheRead: c.Optional("details", "cached"), Output: c.Required("out")}
		return c.Usage(u, 2)
	}
	for raw, want := range map[string]Usage{
		`{"in":1,"out":2}`:                             {Input: 1, Output: 2},
		`{"in":0,"out":2}`:                             {Output: 2},
		`{"in":1,"out":2.0,"details":null}`:            {Input: 1, Output: 2},
		`{"in":1,"out":2,"details":{"cached":null}}`:   {Input: 1, Output: 2},
		` { "in": 1 , "out":2,"details":{"cached":3}}`: {Input: 1, Output: 2, CacheRead: 3},
		`{"in":1,"out":2,"cost":0.3,"tier":"x"}`:       {Input: 1, Output: 2},
	} {
		if got := read(raw); got == nil || *got != want {
			t.Errorf("%s is read as %+v, want %+v", raw, got, want)
		}
	}
	for _, raw := range []string{``, `null`, `{`, `{}`, `[]`, `5`, `{"in":1}`, `{"in":1,"out":0}`, `{"in":1,"out":null}`, `{"in":null,"out":2}`,
		`{"in":1,"out":2,"details":5}`, `{"in":1,"out":2,"details":[]}`, `{"in":1,"out":2,"details":{"cached":"3"}}`} {
		if got := read(raw); got != nil {
			t.Errorf("%s is read as %+v, want nil", raw, *got)
		}
	}
	c := ReadCounts(json.RawMessage(`{"in":1,"out":0}`))
	if got := c.Usage(Usage{Input: c.Required("in"), Output: c.Required("out")}, 0); got == nil {
		t.Error("an empty response may have no output")
	}
}

// What is charged is never less than the provider's own total, whatever it calls the tokens
// beside the output: reasoning (xAI), or nothing (Gemini).
func TestTotalIsNeverMoreThanIsCounted(t *testing.T) {
	for raw, want := range map[string]Usage{
		`{"in":10,"out":5,"total_tokens":15}`:                       {Input: 10, Output: 5},
		`{"in":10,"out":5,"total_tokens":12}`:                       {Input: 10, Output: 5},
		`{"in":10,"out":5,"total_tokens":null}`:                     {Input: 10, Output: 5},
		`{"in":10,"out":5,"totalTokenCount":40}`:                    {Input: 10, Output: 30, Reasoning: 25},
		`{"in":10,"out":5,"total_tokens":19,"d":{"r":4}}`:           {Input: 10, Output: 9, Reasoning: 4},
		`{"in":10,"out":9,"total_tokens":19,"d":{"r":4}}`:           {Input: 10, Output: 9, Reasoning: 4},
		`{"in":10,"out":5,"total_tokens":18,"d":{"r":6,"cache":3}}`: {Input: 7, CacheRead: 3, Output: 11, Reasoning: 6},
		`{"in":10,"out":5,"d":{"r":600}}`:                           {Input: 10, Output: 605, Reasoning: 600},
	} {
		c := ReadCounts(json.RawMessage(raw))
		cached := c.Optional("d", "cache")
		got := c.Usage(Usage{Input: c.Required("in") - cached, CacheRead: cached, Output: c.Required("out"), Reasoning: c.Optional("d", "r")}, 2)
		if got == nil || *got != want {
			t.Errorf("%s is read as %+v, want %+v", raw, got, want)
		}
	}
	for _, raw := range []string{`{"total_tokens":"15"}`, `{"totalTokenCount":-1}`} {
		c := ReadCounts(json.RawMessage(raw))
		if got := c.Usage(Usage{Input: 1, Output: 1}, 2); got != nil {
			t.Errorf("%s is read as %+v, want nil", raw, *got)
		}
	}
}

// An output that is too small for the text would make a budget endless.
func TestOutputIsPlausible(t *testing.T) {
	for _, test := range []struct {
		output, size int64
		want         bool
	}{
		{0, 0, true}, {0, 1, false}, {1, 1, true}, {1, shortReply, true}, {1, 400_000, false},
		{6186, 400_000, true}, // long runs of spaces
		{6185, 400_000, false},
	} {
		c := ReadCounts(nil)
		if got := c.Usage(Usage{Input: 9, Output: test.output}, test.size); (got != nil) != test.want {
			t.Errorf("%d tokens for %d bytes: plausible: %t", test.output, test.size, got != nil)
		}
	}
}

// A later object replaces what an earlier one reports, but null and a smaller count do not.
func TestMergeCounts(t *testing.T) {
	c := ReadCounts(json.RawMessage(`{"in":1,"cached":"x","out":3}`))
	c.Remove("out")
	c.Merge(json.RawMessage(`{"in":null,"cached":4,"out":5}`))
	c.Merge(json.RawMessage(`{"in":0,"cached":2}`))
	c.Merge(nil)
	got := c.Usage(Usage{Input: c.Required("in"), CacheRead: c.Optional("cached"), Output: c.Required("out")}, 2)
	if want := (Usage{Input: 1, CacheRead: 4, Output: 5}); got == nil || *got != want {
		t.Errorf("merged to %+v, want %+v", got, want)
	}
}
