package anthropic_test

import (
	"testing"

	"hone/model"
	"hone/model/anthropic"
	"hone/model/modeltest"
)

func TestConformance(t *testing.T) {
	modeltest.Conformance(t, modeltest.Provider{
		New: func(url, key string, timeouts model.Timeouts) model.Model {
			return anthropic.New(anthropic.Config{Name: "claude-opus-4-8", Key: key, BaseURL: url, Timeouts: timeouts})
		},
		Opaque:      anthropic.Wire,
		KeyVariable: "ANTHROPIC_API_KEY",
		System:      "system.0.text",
		Messages:    "messages",
		MaxOutput:   "max_tokens",
		Reasoning:   "output_config.effort",
		CacheWrite:  true,
	})
}
