package harness

import (
	"strings"
	"testing"

	"hone"
	"hone/internal/config"
	"hone/loop"
)

// TestListPrices: every row names a model of a provider once, has all its prices, and
// says where they are from and when they were read.
func TestListPrices(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range ListPrices() {
		if _, _, err := splitModel(p.Model); err != nil || seen[p.Model] {
			t.Errorf("%s: %v, seen before: %t", p.Model, err, seen[p.Model])
		}
		seen[p.Model] = true
		if p.Input <= 0 || p.Output <= p.Input || p.CacheRead <= 0 || p.CacheRead >= p.Input || p.CacheWrite < p.Input {
			t.Errorf("%s: %+v", p.Model, p.Price)
		}
		if !strings.HasPrefix(p.Source, "https://") || p.Read.Year < 2026 {
			t.Errorf("%s: from %q, read on %s", p.Model, p.Source, p.Read)
		}
	}
	if !seen["anthropic/claude-sonnet-5"] {
		t.Error("the default model of anthropic has no price")
	}
}

// TestSetPrice: the configuration comes first. A list price counts only at the
// provider's own endpoint, for exactly the model that it was published for.
func TestSetPrice(t *testing.T) {
	const sonnet = "anthropic/claude-sonnet-5"
	listed := hone.Price{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5}
	configured := map[string]config.Price{"a/b": {Input: 7}, "openai/gpt-5-mini": {Output: 3}}
	agent := func(baseURL string) *loop.Agent {
		return &loop.Agent{Agent: config.Agent{Wire: "anthropic", BaseURL: baseURL}, Asked: "claude-sonnet-5"}
	}
	for name, tt := range map[string]struct {
		model loop.Model
		env   string // a variable that is set
		want  *hone.Price
	}{
		"listed":              {loop.Model{Name: sonnet}, "", &listed},
		"configured":          {loop.Model{Name: "a/b"}, "", &hone.Price{Input: 7}},
		"configured, listed":  {loop.Model{Name: "openai/gpt-5-mini"}, "", &hone.Price{Output: 3}},
		"configured, a proxy": {loop.Model{Name: "a/b", BaseURL: "http://proxy"}, "", &hone.Price{Input: 7}},
		"unlisted":            {loop.Model{Name: sonnet + "-20990101"}, "", nil},
		"another provider":    {loop.Model{Name: "openai/claude-sonnet-5"}, "", nil},
		"a proxy":             {loop.Model{Name: sonnet, BaseURL: "http://proxy"}, "", nil},
		"a proxy's variable":  {loop.Model{Name: sonnet}, "ANTHROPIC_BASE_URL", nil},
		"another's variable":  {loop.Model{Name: sonnet}, "OPENAI_BASE_URL", &listed},
		"agent":               {loop.Model{Name: "command/c", Agent: agent("")}, "", &listed},
		"agent, a proxy":      {loop.Model{Name: "command/c", Agent: agent("http://proxy")}, "", nil},
		"agent without wire":  {loop.Model{Name: "command/c", Agent: &loop.Agent{}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := Host{Getenv: func(v string) string {
				if v != "" && v == tt.env {
					return "http://proxy"
				}
				return ""
			}}
			m := tt.model
			h.setPrice(&m, configured)
			if (m.Price == nil) != (tt.want == nil) || m.Price != nil && *m.Price != *tt.want {
				t.Errorf("got %+v, want %+v", m.Price, tt.want)
			}
			if _, ok := configured[m.PricedAs()]; (m.PriceSource != "") != (m.Price != nil && !ok) {
				t.Errorf("the price %+v is from %q", m.Price, m.PriceSource)
			}
		})
	}
}

// TestDropListPrice: a run that is resumed at another endpoint loses a list price, and
// only that.
func TestDropListPrice(t *testing.T) {
	price := &hone.Price{Input: 1}
	for name, tt := range map[string]struct {
		model loop.Model
		keeps bool
	}{
		"same endpoint": {loop.Model{Name: "openai/x", Price: price, PriceSource: "https://page"}, true},
		"a proxy":       {loop.Model{Name: "openai/x", Price: price, PriceSource: "https://page", BaseURL: "http://proxy"}, false},
		"configured":    {loop.Model{Name: "openai/x", Price: price, BaseURL: "http://proxy"}, true},
	} {
		m := tt.model
		Host{Getenv: func(string) string { return "" }}.dropListPrice(&m)
		if (m.Price != nil) != tt.keeps {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
