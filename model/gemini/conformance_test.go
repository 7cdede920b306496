package gemini_test

import (
	"testing"

	"hone/model"
	"hone/model/gemini"
	"hone/model/modeltest"
)

func TestConformance(t *testing.T) {
	modeltest.Conformance(t, modeltest.Provider{
		New: func(url, key string, timeouts model.Timeouts) model.Model {
			return gemini.New(gemini.Config{Name: "gemini-3.5-flash", Key: key, BaseURL: url, Timeouts: timeouts})
		},
		Opaque:      gemini.Wire,
		KeyVariable: "GEMINI_API_KEY",
		System:      "systemInstruction.parts.0.text",
		Messages:    "contents",
		MaxOutput:   "generationConfig.maxOutputTokens",
		Reasoning:   "generationConfig.thinkingConfig",
		ObjectArgs:  true,
	})
}
