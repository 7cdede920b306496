package openai_test

import (
	"testing"

	"hone/model"
	"hone/model/modeltest"
	"hone/model/openai"
)

func TestConformance(t *testing.T) {
	t.Run("responses", func(t *testing.T) {
		modeltest.Conformance(t, modeltest.Provider{
			New: func(url, key string, timeouts model.Timeouts) model.Model {
				return openai.New(openai.Config{Name: "gpt-test", Key: key, BaseURL: url + "/v1", Wire: openai.Responses, Timeouts: timeouts})
			},
			Opaque:      "openai-responses",
			KeyVariable: "OPENAI_API_KEY",
			System:      "instructions",
			Messages:    "input",
			MaxOutput:   "max_output_tokens",
			Reasoning:   "reasoning.effort",
		})
	})
	t.Run("chat", func(t *testing.T) {
		modeltest.Conformance(t, modeltest.Provider{
			New: func(url, key string, timeouts model.Timeouts) model.Model {
				return openai.New(openai.Config{Name: "gpt-test", Key: key, BaseURL: url + "/v1", KeyVariable: "LOCAL_KEY", Timeouts: timeouts})
			},
			Opaque:      "openai-chat",
			KeyVariable: "LOCAL_KEY",
			System:      "messages.0.content",
			Messages:    "messages",
			MaxOutput:   "max_tokens",
			Reasoning:   "reasoning_effort",
		})
	})
}
