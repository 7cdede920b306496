package openai_test

import (
	"testing"

	"hone/model"
	"hone/model/modeltest"
	"hone/model/openai"
)

func BenchmarkGenerate(b *testing.B) {
	for _, wire := range []string{openai.Chat, openai.Responses} {
		b.Run(string(wire), func(b *testing.B) {
			modeltest.Benchmark(b, func(url string) model.Model {
				return openai.New(openai.Config{Name: "m", Key: "k", BaseURL: url + "/v1", Wire: wire})
			})
		})
	}
}
