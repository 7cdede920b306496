package anthropic

import (
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"hone/model"
)

// abilities are what requests must know of a model, from Anthropic's
// overview of its models.
type abilities struct {
	prefix   string // of the names of those that have them
	most     int64  // output tokens, thinking included
	thinking thinking
}

type thinking int

const (
	adaptive thinking = iota // the model decides; it is told an effort
	budgeted                 // it is given a budget of tokens
	none
)

// abilitiesOf is the first that fits. A later Claude can be expected to think
// adaptively, as all since 4.6 do.
func abilitiesOf(name string) abilities {
	for _, a := range []abilities{
		{"claude-3-7", 64000, budgeted},
		{"claude-3-5", 8192, none},
		{"claude-3-", 4096, none},
		{"claude-opus-4-0", 32000, budgeted},
		{"claude-opus-4-1", 32000, budgeted},
		{"claude-opus-4-2025", 32000, budgeted},
		{"claude-opus-4-5", 64000, budgeted},
		{"claude-opus-4-", 128000, adaptive},
		{"claude-sonnet-4-0", 64000, budgeted},
		{"claude-sonnet-4-2025", 64000, budgeted},
		{"claude-sonnet-4-5", 64000, budgeted},
		{"claude-sonnet-4-", 128000, adaptive},
		{"claude-haiku-4-", 64000, budgeted},
	} {
		if strings.HasPrefix(name, a.prefix) {
			return a
		}
	}
	return abilities{}
}

const (
	unknownClaude = 64000
	unknownOther  = 32000
)

// output is the limit to send for what the request asks; a model refuses one
// above its own.
func (a abilities) output(name string, asked int64) int64 {
	switch {
	case a.most > 0 && asked > 0:
		return min(asked, a.most)
	case asked > 0:
		return asked
	case a.most > 0:
		return a.most
	case strings.HasPrefix(name, "claude"):
		return unknownClaude
	}
	return unknownOther
}

// The budgets for the levels, and the least that the API takes.
const (
	budgetLow    = 4096
	budgetMedium = 16000
	budgetHigh   = 32000
	budgetLeast  = 1024
)

// think asks for thinking as the model knows it. A budget leaves half of the
// output to the answer; one that would be too small is left out.
func (a abilities) think(p *sdk.MessageNewParams, level model.Reasoning) {
	if level == "" {
		return
	}
	switch a.thinking {
	case adaptive:
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
		p.OutputConfig.Effort = sdk.OutputConfigEffort(level)
	case budgeted:
		budget := map[model.Reasoning]int64{
			model.Low: budgetLow, model.Medium: budgetMedium, model.High: budgetHigh,
		}[level]
		if budget = min(budget, p.MaxTokens/2); budget >= budgetLeast {
			p.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
		}
	}
}
