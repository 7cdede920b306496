package paid

import (
	"strings"
	"testing"

	"hone/model"
)

// TestImplausiblyFewTokens checks that a report of almost nothing for a long request counts in
// full, and that short requests are believed.
func TestImplausiblyFewTokens(t *testing.T) {
	for name, test := range map[string]struct {
		used  model.Usage
		bytes int64
		want  bool
	}{
		"almost nothing for 24 KB":  {model.Usage{Input: 1, Output: 1}, 24 << 10, false},
		"output alone":              {model.Usage{Output: 500}, 24 << 10, false},
		"a few for a short request": {model.Usage{Input: 1, Output: 1}, shortRequest, true},
		"from the cache":            {model.Usage{Input: 1, CacheRead: 6000, Output: 1}, 24 << 10, true},
		"long runs of spaces":       {model.Usage{Input: 1 << 20 / 40, Output: 1}, 1 << 20, true},
		"too few for a megabyte":    {model.Usage{Input: 10_000, Output: 1}, 1 << 20, false},
	} {
		if got := plausibleUsage(&test.used, test.bytes); (got != nil) != test.want {
			t.Errorf("%s: plausible: %t", name, got != nil)
		}
	}
}

// TestOutputOfAText checks that a text tells that a provider ignored its limit, if the
// provider's own count does not.
func TestOutputOfAText(t *testing.T) {
	reply := model.Reply{Parts: []model.Part{{Text: strings.Repeat("word ", 80_000)}}}
	if got := outputOf(reply, nil); got != 20_000 {
		t.Errorf("a text of 400 000 bytes without a usage has %d tokens", got)
	}
	if got := outputOf(reply, &model.Usage{Output: 9000}); got != 9000 {
		t.Errorf("the provider says 9000 tokens, got %d", got)
	}
}
