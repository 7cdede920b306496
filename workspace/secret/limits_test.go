package secret

import (
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// A tunnel to a production database looks like a database of this machine.
func TestLocalURL(t *testing.T) {
	for _, c := range []struct {
		login, host string
		want        bool
	}{
		{"root:pw-of-tunnel-7h3k", "127.0.0.1:3306", true}, {"app:h7Kq2mxyz", "localhost:5432", true}, {"app:h7Kq2mxyz", "[::1]:5432", true}, {"app:h7Kq2mxyz", "db.localhost", true},
		{"postgres:postgres", "localhost:5432", false}, {"root:password123", "127.0.0.1", false}, {"app:test1234", "localhost", false}, {"ci:ci-secret-1", "localhost", false},
		{"dev:changeme1", "127.0.0.1", false}, {"root:toor", "127.0.0.1", false}, {"user:h7Kq2mxyz", "example.com", false}, {"user:h7Kq2mxyz", "hostname", false}, {"user:h7Kq2mxyz", "db.test", false},
	} {
		text := fmt.Sprintf("mysql://%s@%s/x", c.login, c.host)
		if got := strings.Contains((&Guard{}).Redact(text), redacted); got != c.want {
			t.Errorf("%s is redacted: %v, want %v", text, got, c.want)
		}
	}
}

// TestEncodingsNotFound shows the limit that docs/trust.md states.
func TestEncodingsNotFound(t *testing.T) {
	const value = "deploy-4f8a91-of-us-7h3k"
	g := NewGuard(nil).WithSecrets([]string{value})
	for _, text := range []string{hex.Dump([]byte(value)), base32.StdEncoding.EncodeToString([]byte(value)), fmt.Sprintf("% x", value)} {
		if g.Redact(text) != text {
			t.Errorf("%q is found: say so in docs/trust.md", text)
		}
	}
	if text := fmt.Sprintf("%x", value); g.Redact(text) != redacted {
		t.Errorf("%q stays", text)
	}
}
