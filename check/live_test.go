package check

import (
	"strings"
	"testing"
)

// A secret in a line without an end is not divided, wherever it is.
func TestLiveLongLine(t *testing.T) {
	const secret = "Zq8vK2mN7xW4tRb9Yp3L"
	redact := func(s string) string { return strings.ReplaceAll(s, secret, "-") }
	for shift := range len(secret) {
		var shown strings.Builder
		l := newLive(&shown, redact)
		text := strings.Repeat("x", shift) + strings.Repeat(secret, 20_000)
		for len(text) > 0 {
			n := min(len(text), 30_000)
			_, _ = l.Write([]byte(text[:n]))
			text = text[n:]
		}
		l.close()
		if got := strings.Trim(shown.String(), "x-"); got != "" {
			t.Fatalf("%d: %.60q", shift, got)
		}
	}
}
