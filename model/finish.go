package model

import (
	"encoding/json"
	"strings"
)

// ends is the reasons for which a reply is not complete, in lower case, as part of the
// provider's term. Gateways pass on the terms of other wires, so that all are read on each.
// Any other reason, and none, is that of a complete reply (ruling G23).
var ends = []struct {
	finish Finish
	words  string // separated by bars
	source string
}{
	{Length, "length|max_tokens|max_output_tokens|max_completion_tokens|context_window|token_limit|max_token",
		"OpenAI, Anthropic, Gemini (MAX_TOKENS), Mistral (model_length), Zhipu (model_context_window_exceeded): can1357/oh-my-pi#683"},
	{Filtered, "filter|safety|refus|recitation|blocklist|prohibited|spii|sensitive|guardrail|moderation|blocked",
		"Azure (content_filter), Gemini, Anthropic (refusal), Zhipu (sensitive), Bedrock (guardrail_intervened)"},
	{Other, "error|insufficient_system_resource|abort|cancel|interrupt|timeout|malformed|unexpected_tool|too_many_tool|pause_turn|language|no_image|failed|incomplete",
		"OpenRouter (error): damianvtran/local-operator#223; Zhipu (network_error); DeepSeek (insufficient_system_resource); vLLM (abort); Gemini; Anthropic (pause_turn)"},
}

// FinishOf returns why a model stopped, from the provider's term, which may be that of
// another wire or empty, and from the reply's parts. An unusual term counts as the end of
// a reply only if that has a text, or calls whose arguments are complete.
func FinishOf(reason string, r Reply) Finish {
	reason = strings.ToLower(reason)
	for _, e := range ends {
		for word := range strings.SplitSeq(e.words, "|") {
			if strings.Contains(reason, word) {
				return e.finish
			}
		}
	}
	calls := r.Calls()
	switch reason {
	case "stop", "end_turn", "stop_sequence", "tool_use", "tool_calls", "function_call", "completed":
	default:
		for _, c := range calls {
			if c.Args != "" && !json.Valid([]byte(c.Args)) {
				return Other
			}
		}
		if !r.HasContent() {
			return Other
		}
	}
	if len(calls) > 0 {
		return Calls
	}
	return Stop
}
