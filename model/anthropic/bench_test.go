package anthropic_test

import (
	"testing"

	"hone/model"
	"hone/model/modeltest"
)

func BenchmarkGenerate(b *testing.B) {
	modeltest.Benchmark(b, func(url string) model.Model { return newModel(url) })
}
