package main

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshooting checks that each message which docs/troubleshooting.md explains is in
// the source. An ellipsis in a message stands for anything.
func TestTroubleshooting(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	source := sourceText(t)
	for status := 400; status < 600; status++ {
		source += http.StatusText(status) + "\n"
	}
	messages := regexp.MustCompile("(?m)^\\| `([^|]+)` \\|").FindAllStringSubmatch(string(page), -1)
	if len(messages) < 25 {
		t.Errorf("the page explains only %d messages", len(messages))
	}
	for _, m := range messages {
		for message := range strings.SplitSeq(m[1], "` or `") {
			for part := range strings.SplitSeq(message, "…") {
				if !strings.Contains(source, strings.TrimSpace(part)) {
					t.Errorf("%q of the message %q is not in the source", strings.TrimSpace(part), message)
				}
			}
		}
	}
}

// sourceText returns the program's source without its tests.
func sourceText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
