package openai_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"hone/model/modeltest"
	"hone/model/openai"
)

// BenchmarkGenerate puts one call over loopback beside a bare client that
// sends the same bytes and reads the same answer without looking at it.
func BenchmarkGenerate(b *testing.B) {
	s := modeltest.NewServer(b, modeltest.Turn{Text: strings.Repeat("sixteen bytes.. ", 64)})
	for _, wire := range []openai.Wire{openai.Chat, openai.Responses} {
		m := openai.New(openai.Config{Name: "m", Key: "k", BaseURL: s.URL + "/v1", Wire: wire})
		b.Run(string(wire), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Generate(b.Context(), hello()); err != nil {
					b.Fatal(err)
				}
			}
		})
		received := s.Received()
		sent := received[len(received)-1]
		s.Script(modeltest.Turn{Text: strings.Repeat("sixteen bytes.. ", 64)})
		b.Run(string(wire)+"-bare", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				res, err := http.Post(s.URL+sent.Path, "application/json", bytes.NewReader(sent.Body))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil {
					b.Fatal(err)
				}
				_ = res.Body.Close()
			}
		})
	}
}
