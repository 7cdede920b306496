package anthropic

import (
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"hone/model"
)

// defaultOutput is the limit of the output, in tokens, of a request without one.
const defaultOutput = 32000

// Thinking budgets in tokens; the API rejects one below budgetMin.
const (
	budgetLow    = 4096
	budgetMedium = 16000
	budgetHigh   = 32000
	budgetMin    = 1024
)

// Models since 3.7 and before 4.6 think for a budget of tokens; later ones decide themselves, with an effort (Anthropic's model
// overview).
func isBudgeted(name string) bool {
	return slices.ContainsFunc([]string{"claude-3-7", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2025", "claude-opus-4-5",
		"claude-sonnet-4-0", "claude-sonnet-4-2025", "claude-sonnet-4-5", "claude-haiku-4-",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// A budget leaves half of the output to the answer; one that is then too small is omitted.
func setThinking(p *sdk.MessageNewParams, level model.Reasoning, messages []model.Message) {
	switch name := p.Model; {
	case level == "":
	case isBudgeted(name):
		budget := map[model.Reasoning]int64{model.Low: budgetLow, model.Medium: budgetMedium, model.High: budgetHigh}[level]
		if budget = min(budget, p.MaxTokens/2); budget >= budgetMin && mayThink(messages) {
			p.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
		}
	case !strings.HasPrefix(name, "claude-3-"):
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
		p.OutputConfig.Effort = sdk.OutputConfigEffort(level)
	}
}

// A model with a budget that thought must keep thinking, and must not start after calls that another model made without
// thinking.
func mayThink(messages []model.Message) bool {
	for _, m := range slices.Backward(messages) {
		if reply := (model.Reply{Parts: m.Parts}); m.Role == model.Assistant && len(reply.Calls()) > 0 {
			first := m.Parts[0].Opaque
			return first != nil && first.Wire == Wire
		}
	}
	return true
}
