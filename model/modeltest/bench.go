package modeltest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"hone/model"
)

// Benchmark measures one attempt of a provider, and for comparison a bare POST
// of the same bytes to the same server.
func Benchmark(b *testing.B, open func(url string) model.Model) {
	s := NewServer(b, Turn{
		Text: strings.Repeat("All work and no play. ", 200), Chunk: 64,
		Calls: []model.Call{{ID: "c1", Name: "read", Args: `{"path":"main.go"}`}},
	})
	req := model.Request{System: "Be brief.", Messages: []model.Message{
		{Role: model.User, Parts: []model.Part{{Text: strings.Repeat("package main // and so on\n", 2000)}}},
	}}
	m := open(s.URL)
	if _, err := m.Generate(b.Context(), req); err != nil {
		b.Fatal(err)
	}
	sent := s.Received()[0]
	b.Run("Generate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Generate(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			post(b, s.URL+sent.Path+"?"+sent.Query, sent.Body)
		}
	})
}

func post(b *testing.B, url string, body []byte) {
	res, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); err != nil || n == 0 {
		b.Fatal(n, err)
	}
}
