package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// valuesOf returns the values of a withheld file.
func valuesOf(path, content string) []string { return NewGuard(nil).Values(path, []byte(content)) }

func TestValues(t *testing.T) {
	random := fixedToken(letters, 32)
	for _, c := range []struct{ path, content, want string }{
		{".env", "DB_PASSWORD=hunter22\n", "hunter22"},
		{".env", "export API_KEY='k3y-of-ours!'\n", "k3y-of-ours!"},
		{".env", "SECRET=\"a\\\"b$c;d#1\" # why\n", `a"b$c;d#1`},
		{".env", "PASSWORD=p@ss,w;rd#9\n", "p@ss,w;rd#9"},
		{".env", "PASSWORD='P4sw\"ordK9z7Qx'\n", "ordK9z7Qx"},
		{".env", "PASSWORD=P4sw\\ordK9z7Qx\n", "ordK9z7Qx"},
		{".env", "PASSWORD=P4sw<ordK9>z7Qx\n", "P4sw<ordK9>z7Qx"},
		{".env", "PASSWORD=\"P4sw{ord}K9z7Qx\"\n", "P4sw{ord}K9z7Qx"},
		{".env", "PASSWORD=\"P4sw\\$ordK9z7Qx\"\n", "P4sw$ordK9z7Qx"},
		{".env", "PASSWORD=$ecretOrdK9z7Qx\n", "$ecretOrdK9z7Qx"},
		{".env", "PASSWORD=/P4swordK9z7Qx\n", "/P4swordK9z7Qx"},
		{".env", "PASSWORD=p@ss,w;rd9 # old\n", "p@ss,w;rd9"},
		{".env", "  password: correct-horse-battery\n", "correct-horse-battery"},
		{".env", "RANDOM_NAME=" + random + "\n", random},
		{".env", "DATABASE_URL=postgres://app:h7Kq%2Fmxyz" + "@localhost:5432/app\n", "h7Kq/mxyz"},
		{".env", "REMOTE=https://" + random + "@git.internal/x\n", random},
		{".env", "H=Authorization: Bearer abc1234-x9z\n", "abc1234-x9z"},
		{".env.json", `{"db": {"password": "hunter22", "port": 5432}}`, "hunter22"},
		{".env.toml", "[a]\nauth_token = \"hunter22\"\n", "hunter22"},
		{".netrc", "machine x login y password hunter22\n", "hunter22"},
		{".pgpass", "db.internal:5432:app:app:hunter22\n", "hunter22"},
		{".vault-token", "word4word4word\n", "word4word4word"},
		{".npmrc", "//registry.npmjs.org/:_authToken=hunter-22-x-of-9z9\n", "hunter-22-x-of-9z9"},
		{".docker/config.json", `{"auths": {"r": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("me:hunter22")) + `"}}}`, "hunter22"},
		{"tls/server.pem", pemKey(), "MHcCAQEEIDk2Zq8vTn4wXh1sLr0bYc7JmPfQe5uKgAo3iVdRtW9xoAoGCCqGSM49"},
		{"src/a.go", "x := \"ghp_" + random + fixedToken(letters, 4) + "\"\npassword = hunter22\n", "ghp_" + random + fixedToken(letters, 4)},
	} {
		if got := valuesOf(c.path, c.content); !slices.Contains(got, c.want) {
			t.Errorf("%s with %q: %q lack %q", c.path, c.content, got, c.want)
		}
	}
	if got := valuesOf("src/a.go", "x := \"ghp_"+random+fixedToken(letters, 4)+"\"\npassword = hunter22\n"); len(got) != 1 {
		t.Errorf("source code has the values %q", got)
	}
	if got := strings.Join(valuesOf(".env", "KEY="+strings.Repeat("a1b2-", 500)+"\n"), ""); len(got) < 2400 {
		t.Errorf("only %d bytes of a long value", len(got))
	}
}

// Ordinary values would make every output unreadable.
func TestValuesLetsPass(t *testing.T) {
	for _, value := range []string{
		"localhost", "production", "development", "true", "5432", "20240101", "12345678", "password", "changeme", "changeme123", "postgresql",
		"/etc/ssl/private", "./config/master.key", "~/.ssh/id_ed25519", "config/credentials", "https://api.internal/v1", "http://localhost:8080",
		"db1.internal.acme.com", "db.acme.com:5432", "ops@acme.com", "in-memory", "bearer-token", "hmac-sha256", "us-east-1", "x-api-key-2", "AES-256-GCM",
		"result_object", "promptTokenCount", "candidatesTokenCountDetails", "${DB_PASSWORD}", "$password_of_db", "%(password)s", "{{ password }}", "<your key>", "2.31.0", "v1.22.3", "1.5e10,2.5e10", "true,false,null",
	} {
		for _, name := range []string{"PASSWORD", "API_KEY", "secret", "SOMETHING"} {
			for _, form := range []string{"%s=%s\n", "%s: %s\n", `{"%s": "%s"}`} {
				if got := valuesOf(".env", fmt.Sprintf(form, name, value)); len(got) > 0 {
					t.Errorf("%s with %s is secret: %q", name, value, got)
				}
			}
		}
	}
	for _, line := range []string{
		"APP_NAME=hunter22", "IMAGE=registry.internal/app:2024.11.3-bookworm", "BUCKET=my-app-uploads-2024", "TZ=America/New_York", "KEY_TYPE=secp256k1",
		"NODE_OPTIONS=--max-old-space-size=4096", "MAIL_FROM=\"My App 2 <no-reply@acme.com>\"", "TOKEN_FILE=hunter-of-22", "MAX_TOKENS=4096000000",
		"AT=2024-11-22T10:51:49.123456Z", "ARCH=x86_64-unknown-linux-gnu", "A=getUserNameFromTokenString2",
	} {
		if got := valuesOf(".env", line+"\n"); len(got) > 0 {
			t.Errorf("%s is secret: %q", line, got)
		}
	}
}

func TestCredentials(t *testing.T) {
	token := fixedToken(letters, 24)
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
	for _, c := range []struct{ name, value, want string }{
		{"remote.origin.url", "https://me:" + "hunter22@host/x.git", "hunter22"},
		{"remote.origin.url", "https://" + token + "@host/x.git", token},
		{"url.https://me:" + "hunter22@host/.insteadof", "git@host:", "hunter22"},
		{"http.https://github.com/.extraheader", "AUTHORIZATION: basic " + basic, token},
		{"http.extraheader", "X-Gate: hunter22", "hunter22"},
		{"http.proxy", "http://me:" + "hunter22@proxy:3128", "hunter22"},
		{"sendemail.smtppass", "hunter22", ""},
		{"credential.password", "hunter22", "hunter22"},
		{"credential.helper", "!f() { echo username=me; echo password=hunter22; }; f", "hunter22"},
		{"remote.origin.url", "git@github.com:a/b.git", ""},
		{"remote.origin.url", "ssh://git@github.com/a/b.git", ""},
		{"branch.feature/a1b2c3d4e5f6g7h8.merge", "refs/heads/feature/a1b2c3d4e5f6g7h8", ""},
		{"credential.helper", "store --file=/home/me/x", ""},
		{"user.email", "me@acme.com", ""},
	} {
		got := Credentials(c.name, c.value)
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.Contains(got, c.want) {
			t.Errorf("%s = %s: got %q, want %q", c.name, c.value, got, c.want)
		}
	}
}

// Known values are found in all spellings, and JSON stays valid.
func TestRedactKnown(t *testing.T) {
	const value = `sk-"a/b+c é`
	const env = "hunter22-of-env"
	g := &Guard{Known: []string{value, "sk-plain-key", "sk-plain-key-longer"}, Secrets: []string{env, "nimport9"}}
	for _, test := range []struct{ text, want string }{
		{"nothing in it", "nothing in it"},
		{`{"key": "sk-\"a/b+c é"}`, `{"key": "[key]"}`},
		{"?key=sk-%22a%2Fb%2Bc+%C3%A9&x", "?key=[key]&x"},
		{"/sk-%22a%2Fb+c%20%C3%A9/x", "/[key]/x"},
		{"sk-plain-keysk-plain-key", "[key][key]"},
		{"sk-plain-key-longer", "[key]"},
		{"sk-plain-ke", "sk-plain-ke"},
		{"a " + env + " b", "a [key] b"},
		{"hunter22\x1b[1m-of\x1b[0m-env.", "[key]."},
		{`{"a": "hunter22\u001b[31;1m-of-env"}`, `{"a": "[key]"}`},
		{`{"a": "x\nimport9 y"}`, `{"a": "x\n[key] y"}`},
		{"hunter22\u200b-of-env", "[key]"},
		{`C:\nimport9`, `C:\n[key]`},
		{`{"a": "\naHVudGVyMjItb2YtZW52\n"}`, `{"a": "\n[key]\n"}`},
		{hex.EncodeToString([]byte(env)), "[key]"},
	} {
		got := g.RedactKnown(test.text)
		if got != test.want {
			t.Errorf("%q became %q, want %q", test.text, got, test.want)
		}
		if again := g.RedactKnown(got); again != got {
			t.Errorf("%q redacted twice is %q", got, again)
		}
		if json.Valid([]byte(test.text)) && !json.Valid([]byte(got)) {
			t.Errorf("%s is not JSON", got)
		}
	}
	for i := range 4 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", i) + env + "-more"))
		got := g.RedactKnown(encoded)
		// All characters with bits of the value, and no others.
		if want := encoded[:i*8/6] + "[key]" + encoded[((i+len(env))*8+5)/6:]; got != want {
			t.Errorf("base64 %s became %s, want %s", encoded, got, want)
		}
	}
	if (&Guard{Known: []string{"short"}}).Knows() || (*Guard)(nil).Knows() || !g.Knows() {
		t.Error("Knows is wrong")
	}
}

// Control sequences between the characters of a token do not hide it.
func TestRedactUnseen(t *testing.T) {
	g := NewGuard(nil)
	token := "ghp_" + fixedToken(letters, 36)
	for _, split := range []string{"\x1b[31m", "\x1b[0;38;5;12m", "\x1b[K", "\x1b]0;title\a", "\u200b", `\u001b[1m`,
		"\x00", "\x0e\x0f", "\a", "\x7f", "\x1bPq\x1b\\", "\x1b_x\x1b\\", "\x1b^x\x1b\\", "\u009b1m", "x\b", `\u0000`, `\x0e`, `\u009b0m`} {
		text := "token " + token[:9] + split + token[9:20] + split + token[20:] + " end"
		if got := g.Redact(text); got != "token [withheld] end" {
			t.Errorf("%q became %q", text, got)
		}
		if _, ok := g.Withheld("a.txt", []byte(text)); !ok {
			t.Errorf("%q is not withheld", text)
		}
	}
	if text := "\x1b]0;" + token + "\a"; strings.Contains(g.Redact(text), token) {
		t.Error("a token in a title is not redacted")
	}
}

// A file that contains the value of another is withheld, unless it is sent. A
// file whose path contains a secret is withheld.
func TestWithheldValues(t *testing.T) {
	token := "ghp_" + fixedToken(letters, 36)
	g := NewGuard([]string{"sent/**"})
	g.Known, g.Secrets = []string{"the-own-key-1"}, []string{"hunter22-of-env"}
	for path, want := range map[string]string{"a.yml": ValueReason, "sent/a.yml": ""} {
		if got, _ := g.Withheld(path, []byte("pw: hunter22-of-env\n")); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got, _ := g.Withheld("sent/a.yml", []byte("hunter22-of-env the-own-key-1")); got != OwnKeyReason {
		t.Errorf("a sent file with a key: %q", got)
	}
	if got, _ := g.Withheld("a.yml", []byte("hunter22-of-env "+token)); !strings.Contains(got, "GitHub") {
		t.Errorf("a file with a token: %q", got)
	}
	if !g.HoldsKey([]byte("the-own-key-1")) || g.HoldsKey([]byte("hunter22-of-env")) {
		t.Error("HoldsKey is wrong")
	}
	for _, path := range []string{"dir/" + token + ".txt", token + "/a.txt", "hunter22-of-env"} {
		if got, ok := g.WithheldName(path); !ok || got != nameReason {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func BenchmarkRedactKnown(b *testing.B) {
	g := &Guard{}
	for i := range 1000 {
		g.Secrets = append(g.Secrets, fmt.Sprintf("%s-%d", fixedToken(letters, 20+i%20), i))
	}
	text := strings.Repeat("func (g *Guard) Redact(text string) string { return text }\n", 1<<14)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		g.RedactKnown(text)
	}
}
