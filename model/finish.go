package model

import (
	"encoding/json"
	"strings"
)

// ends is the words that say that a reply is not complete, in lower case; one that begins
// with "_" is the beginning of a word of the provider's term. Gateways pass on the terms of
// other wires, so that all are read on each. Any other reason, and none, is that of a
// complete reply (ruling G23).
var ends = []struct {
	finish Finish
	words  string // separated by bars
	source string
}{
	{Length, "length|token|limit|_max|_trunc|_cut|context_window|exceed|exhaust",
		"OpenAI, Anthropic, Gemini (MAX_TOKENS), Mistral (model_length), Zhipu (model_context_window_exceeded): can1357/oh-my-pi#683; truncated and the like: gateways"},
	{Filtered, "filter|safety|refus|recitation|blocklist|prohibited|spii|sensitive|guardrail|moderation|blocked",
		"Azure (content_filter), Gemini, Anthropic (refusal), Zhipu (sensitive), Bedrock (guardrail_intervened)"},
	{Other, "error|insufficient|abort|cancel|interrupt|_time|timeout|deadline|_lost|preempt|disconnect|malformed|unexpected_tool|too_many_tool|pause_turn|language|no_image|fail|incomplete|partial",
		"OpenRouter (error): damianvtran/local-operator#223; Zhipu (network_error); DeepSeek (insufficient_system_resource); vLLM (abort); Gemini; Anthropic (pause_turn)"},
}

// endOf returns why a reply is not complete, in lower case; empty if the reason does not say so.
func endOf(reason string) Finish {
	switch reason {
	case "eos_token", "stop_token": // TGI
		return ""
	}
	reason = "_" + notLetters.Replace(reason)
	for _, e := range ends {
		for word := range strings.SplitSeq(e.words, "|") {
			if strings.Contains(reason, word) {
				return e.finish
			}
		}
	}
	return ""
}

var notLetters = strings.NewReplacer(" ", "_", "-", "_", ".", "_", ":", "_", "/", "_")

// LaterReason returns which of two reasons counts that a response gives one after the other;
// both may be empty. One that says that the reply is not complete stays, because gateways end
// every stream with a reason of their own.
func LaterReason(before, reason string) string {
	if reason == "" || endOf(strings.ToLower(before)) != "" {
		return before
	}
	return reason
}

// FinishOf returns why a model stopped, from the provider's term, which may be that of
// another wire or empty, and from the reply's parts. An unusual term counts as the end of
// a reply only if that has a text, or calls whose arguments are complete.
func FinishOf(reason string, r Reply) Finish {
	reason = strings.ToLower(reason)
	if end := endOf(reason); end != "" {
		return end
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
