package anthropic

import (
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"hone/model"
)

// abilities are the properties of a model that requests depend on, from
// Anthropic's model overview.
type abilities struct {
	prefix    string // of the model's name
	maxOutput int64  // tokens, thinking included; 0 if unknown
	thinking  thinking
}

type thinking int

const (
	adaptive thinking = iota // the request sends an effort, and the model decides
	budgeted                 // the request sends a token budget
	none
)

// The zero value serves later models: all since 4.6 think adaptively.
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

// A model rejects a limit above its maximum.
func (a abilities) outputLimit(name string, requested int64) int64 {
	switch {
	case a.maxOutput > 0 && requested > 0:
		return min(requested, a.maxOutput)
	case requested > 0:
		return requested
	case a.maxOutput > 0:
		return a.maxOutput
	case strings.HasPrefix(name, "claude"):
		return unknownClaude
	}
	return unknownOther
}

// Thinking budgets in tokens; the API rejects one below budgetMin.
const (
	budgetLow    = 4096
	budgetMedium = 16000
	budgetHigh   = 32000
	budgetMin    = 1024
)

// A budget leaves half of the output to the answer; one that is then too small is omitted.
func (a abilities) setThinking(p *sdk.MessageNewParams, level model.Reasoning) {
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
		if budget = min(budget, p.MaxTokens/2); budget >= budgetMin {
			p.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
		}
	}
}
