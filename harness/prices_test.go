package harness

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hone"
	"hone/internal/config"
	"hone/loop"
)

// TestListPrices: every row names a model once, says where its price is from and when it was
// read, and has numbers of the right units: USD per million tokens, and tokens.
func TestListPrices(t *testing.T) {
	seen := map[string]bool{}
	providers := map[string]bool{}
	for _, p := range ListPrices() {
		id := p.Provider + " " + p.Model
		if _, _, err := splitModel(p.Provider + "/x"); err != nil && !strings.Contains(p.Provider, ".") || seen[id] {
			t.Errorf("%s: %v, seen before: %t", id, err, seen[id])
		}
		seen[id], providers[p.Provider] = true, true
		if p.Input < 0.01 || p.Input > 100 || p.Output < p.Input || p.Output > 10*p.Input || p.CacheRead < p.Input/100 || p.CacheRead > p.Input ||
			p.CacheWrite < p.Input || p.CacheWrite > 2*p.Input {
			t.Errorf("%s: %+v", id, p.Price)
		}
		if p.Above != 0 && (p.Above < 50_000 || p.LongInput < p.Input || p.LongInput > 6*p.Input || p.LongOutput < p.Output || p.LongOutput > 6*p.Output || p.LongCacheRead < p.CacheRead) {
			t.Errorf("%s: longer prompts: %+v", id, p.Price)
		}
		if p.Context != 0 && (p.Context < 30_000 || p.Context > 2_100_000 || p.MaxOutput > p.Context) || p.MaxOutput != 0 && p.MaxOutput < 4000 {
			t.Errorf("%s: context %d, output %d", id, p.Context, p.MaxOutput)
		}
		if read, err := time.Parse(time.DateOnly, p.Read); err != nil || read.Year() < 2026 || !strings.HasPrefix(p.Source, "https://") {
			t.Errorf("%s: from %q, read on %s", id, p.Source, p.Read)
		}
	}
	if len(providers) < 10 {
		t.Errorf("%d providers", len(providers))
	}
}

// TestNamedModelsHavePrices: every model that the README, the documentation, the settings and
// the providers' defaults name has a list price.
func TestNamedModelsHavePrices(t *testing.T) {
	text := config.Help()
	for _, p := range Providers() {
		text += p.Name + "/" + p.Standard + "\n"
	}
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "../README.md") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	named := regexp.MustCompile(`\b(gemini/gemini-\d[\w.-]*\w|openai/gpt-\d[\w.-]*\w|anthropic/claude-\w[\w.-]*\w)`).FindAllString(text, -1)
	if len(named) < 20 {
		t.Errorf("only %q are named", named)
	}
	h := Host{Getenv: func(string) string { return "" }}
	for _, name := range named {
		m := loop.Model{Name: name}
		if h.setPrice(&m, nil); m.Price == nil || m.Context == 0 {
			t.Errorf("%s: no price, or no context", name)
		}
	}
}

// TestSetPrice: the configuration comes first, then the list of the endpoint. Models of the
// large providers count at their list price everywhere.
func TestSetPrice(t *testing.T) {
	const sonnet = "anthropic/claude-sonnet-5"
	listed := hone.Price{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5}
	tiers := hone.Price{Input: 1.25, Output: 10, CacheRead: 0.125, CacheWrite: 1.25, Above: 200_000, LongInput: 2.5, LongOutput: 15, LongCacheRead: 0.25}
	oss := hone.Price{Input: 0.15, Output: 0.6, CacheRead: 0.075, CacheWrite: 0.15}
	free := hone.Price{}
	configured := map[string]config.Price{"a/b": {Input: 7}, "openai/gpt-5-mini": {Output: 3}}
	agent := func(baseURL string) *loop.Agent {
		return &loop.Agent{Agent: config.Agent{Wire: "anthropic", BaseURL: baseURL}, Asked: "claude-sonnet-5"}
	}
	for name, tt := range map[string]struct {
		model loop.Model
		env   string // a variable that is set
		want  *hone.Price
	}{
		"listed":                  {loop.Model{Name: sonnet}, "", &listed},
		"tiers":                   {loop.Model{Name: "gemini/gemini-2.5-pro"}, "", &tiers},
		"a snapshot":              {loop.Model{Name: sonnet + "-20990101"}, "", &listed},
		"configured":              {loop.Model{Name: "a/b"}, "", &hone.Price{Input: 7, Configured: true}},
		"configured, listed":      {loop.Model{Name: "openai/gpt-5-mini"}, "", &hone.Price{Output: 3, Configured: true}},
		"configured, a proxy":     {loop.Model{Name: "a/b", BaseURL: "http://proxy"}, "", &hone.Price{Input: 7, Configured: true}},
		"unlisted":                {loop.Model{Name: "anthropic/claude-x"}, "", nil},
		"another provider":        {loop.Model{Name: "openai/claude-sonnet-5"}, "", nil},
		"a proxy":                 {loop.Model{Name: sonnet, BaseURL: "http://proxy"}, "", &listed},
		"a proxy's variable":      {loop.Model{Name: "openai/claude-sonnet-5"}, "OPENAI_BASE_URL", &listed},
		"OpenRouter":              {loop.Model{Name: "openai/google/gemini-2.5-pro", BaseURL: "https://openrouter.ai/api/v1"}, "", &tiers},
		"Bedrock":                 {loop.Model{Name: "openai/us.anthropic.claude-sonnet-5-20260630-v1:0", BaseURL: "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1"}, "", &listed},
		"Groq":                    {loop.Model{Name: "openai/openai/gpt-oss-120b", BaseURL: "https://api.groq.com/openai/v1"}, "", &oss},
		"Groq's elsewhere":        {loop.Model{Name: "openai/openai/gpt-oss-120b", BaseURL: "https://example.org/v1"}, "", nil},
		"this machine":            {loop.Model{Name: "openai/qwen3-coder", BaseURL: "http://127.0.0.1:8080/v1"}, "", &free},
		"a gateway here":          {loop.Model{Name: "openai/claude-sonnet-5", BaseURL: "http://localhost:4000"}, "", &listed},
		"Ollama":                  {loop.Model{Name: "ollama/qwen3-coder"}, "", &free},
		"Ollama's cloud":          {loop.Model{Name: "ollama/qwen3-coder:480b-cloud"}, "", nil},
		"agent":                   {loop.Model{Name: "command/c", Agent: agent("")}, "", &listed},
		"agent, a proxy":          {loop.Model{Name: "command/c", Agent: agent("http://proxy")}, "", &listed},
		"agent without forwarder": {loop.Model{Name: "command/c", Agent: &loop.Agent{}}, "", nil},
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

// TestRenewListPrice: a run that is resumed keeps its price, unless it was that of another
// endpoint.
func TestRenewListPrice(t *testing.T) {
	old := hone.Price{Input: 1}
	own := hone.Price{Input: 1, Configured: true}
	const source = "openai gpt-5.4: https://page, 2026-01-01"
	for name, tt := range map[string]struct {
		model loop.Model
		keeps bool
	}{
		"same endpoint":    {loop.Model{Name: "openai/gpt-5.4", Price: &old, PriceSource: source}, true},
		"a proxy":          {loop.Model{Name: "openai/gpt-5.4", Price: &old, PriceSource: source, BaseURL: "http://proxy"}, true},
		"another's models": {loop.Model{Name: "openai/gpt-oss-120b", Price: &old, PriceSource: "api.groq.com openai/gpt-oss-120b: https://page, 2026-01-01", BaseURL: "http://proxy"}, false},
		"configured":       {loop.Model{Name: "openai/x", Price: &own, BaseURL: "http://proxy"}, true},
	} {
		m := tt.model
		Host{Getenv: func(string) string { return "" }}.renewListPrice(&m)
		if (m.Price == tt.model.Price) != tt.keeps {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestLimitsOfSimilar: a model that is newer than the list has the limits of its family.
func TestLimitsOfSimilar(t *testing.T) {
	for name, want := range map[string][2]int64{
		"openai/gpt-5.9":         {400_000, 128_000},
		"openai/gpt-4o-new":      {128_000, 4096}, // the smallest of those that begin like it
		"gemini/gemini-2.5-next": {1_048_576, 65_536},
		"openai/gpt-oss-120b":    {},
		"openai/other":           {},
		"ollama/gpt-5.9":         {},
	} {
		if context, output := limitsOfSimilar(name); [2]int64{context, output} != want {
			t.Errorf("%s: %d and %d instead of %v", name, context, output, want)
		}
	}
}
