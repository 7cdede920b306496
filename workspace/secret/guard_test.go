package secret

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pemKey returns a private key that was never used. It is in parts, so that walls do
// not hide this file.
func pemKey() string {
	return "-----" + "BEGIN EC PRIVATE KEY-----\n" +
		"MHcCAQEEIDk2Zq8vTn4wXh1sLr0bYc7JmPfQe5uKgAo3iVdRtW9xoAoGCCqGSM49\n" +
		"AwEHoUQDQgAEq7Lw2Zf9Kp1XyVbN3mRtHs8GjUc0aEoDi5TlQx6W4vPkYrBn2CzM\n" +
		"-----END EC " + "PRIVATE KEY-----\n"
}

// fixedToken returns n bytes of an alphabet, the same in every run. Generating
// them keeps this file free of strings that secret scanners recognize.
func fixedToken(alphabet string, n int) string {
	random := rand.New(rand.NewPCG(uint64(n), uint64(len(alphabet))))
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(b)
}

const (
	hexDigits = "0123456789abcdef"
	capitals  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters   = "abcdefghijklmnopqrstuvwxyz" + capitals + "0123456789"
)

// jwt returns a token with that payload.
func jwt(payload string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc([]byte(payload)) + "." + fixedToken(letters, 43)
}

// secrets returns texts that contain a secret, each with the part that must not
// remain visible.
func secrets() map[string][2]string {
	key := pemKey()
	aws := "AKIA" + fixedToken(capitals+"234567", 16)
	plain := func(token string) [2]string { return [2]string{"token = \"" + token + "\"\n", token} }
	in := func(format, secret string) [2]string { return [2]string{fmt.Sprintf(format, secret), secret} }
	return map[string][2]string{
		"aws key id":         plain(aws),
		"aws temporary":      plain("ASIA" + fixedToken(capitals+"234567", 16)),
		"aws secret":         in("aws_secret_access_key = %s\n", fixedToken(letters+"/+", 40)),
		"aws secret json":    in(`{"SecretAccessKey": "%s"}`, fixedToken(letters+"/+", 40)),
		"github personal":    plain("ghp_" + fixedToken(letters, 36)),
		"github oauth":       plain("gho_" + fixedToken(letters, 36)),
		"github server":      in("https://x-access-token:%s@github.com/a/b", "ghs_"+fixedToken(letters, 36)),
		"github fine":        plain("github_pat_" + fixedToken(letters, 22) + "_" + fixedToken(letters, 59)),
		"github escaped":     in(`"line\n%s\n"`, "ghp_"+fixedToken(letters, 36)),
		"github in a URL":    in(`https://host/?t=%%22%s`, "ghp_"+fixedToken(letters, 36)),
		"gitlab":             plain("glpat-" + fixedToken(letters+"_-", 20)),
		"slack bot":          plain("xoxb-" + fixedToken("0123456789", 12) + "-" + fixedToken("0123456789", 13) + "-" + fixedToken(letters, 24)),
		"slack user":         plain("xoxp-" + fixedToken("0123456789", 12) + "-" + fixedToken(letters, 32)),
		"slack webhook":      in("url: https://%s\n", "hooks.slack.com/services/T"+fixedToken(letters, 8)+"/B"+fixedToken(letters, 9)+"/"+fixedToken(letters, 24)),
		"stripe":             plain("sk_" + "live_" + fixedToken(letters, 24)),
		"stripe restricted":  plain("rk_" + "live_" + fixedToken(letters, 99)),
		"google":             plain("AIza" + fixedToken(letters+"_-", 35)),
		"google client":      plain("GOCSPX-" + fixedToken(letters+"_-", 28)),
		"openai":             plain("sk-" + fixedToken(letters, 20) + "T3BlbkFJ" + fixedToken(letters, 20)),
		"openai project":     plain("sk-proj-" + fixedToken(letters+"_-", 120)),
		"anthropic":          plain("sk-ant-api03-" + fixedToken(letters+"_-", 93) + "AA"),
		"openrouter":         plain("sk-or-v1-" + fixedToken(hexDigits, 64)),
		"npm":                in("//registry.npmjs.org/:_authToken=%s", "npm_"+fixedToken(letters, 36)),
		"pypi":               plain("pypi-AgEIcHlwaS5vcmc" + fixedToken(letters+"_-", 80)),
		"rubygems":           plain("rubygems_" + fixedToken(hexDigits, 48)),
		"sendgrid":           plain("SG." + fixedToken(letters+"_-", 22) + "." + fixedToken(letters+"_-", 43)),
		"twilio key":         plain("SK" + fixedToken(hexDigits, 32)),
		"twilio token":       in("TWILIO_AUTH_TOKEN=%s", fixedToken(hexDigits, 32)),
		"hugging face":       plain("hf_" + fixedToken(letters, 34)),
		"digitalocean":       plain("dop_v1_" + fixedToken(hexDigits, 64)),
		"shopify":            plain("shpat_" + fixedToken(hexDigits, 32)),
		"databricks":         plain("dapi" + fixedToken(hexDigits, 32)),
		"vault":              plain("hvs." + fixedToken(letters+"_-", 90)),
		"telegram":           in("https://api.telegram.org/bot%s/getMe", fixedToken("123456789", 10)+":AA"+fixedToken(letters+"_-", 33)),
		"telegram alone":     plain(fixedToken("123456789", 9) + ":AA" + fixedToken(letters+"_-", 33)),
		"azure storage":      in("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=%s;EndpointSuffix=core", fixedToken(letters+"/+", 86)+"=="),
		"azure service bus":  in("Endpoint=sb://a/;SharedAccessKeyName=x;SharedAccessKey=%s", fixedToken(letters+"/+", 43)+"="),
		"postgres":           in("DATABASE_URL=postgres://app:%s@db.internal:5432/app", "h7Kq2mZx9w"),
		"mongo":              in(`"mongodb+srv://admin:%s@cluster0.abc.mongodb.net/?x=y"`, "Zq8vTn4wXh1s"),
		"redis, no user":     in("redis://:%s@cache:6379/0", "b7d1e9f3a5c2"),
		"private key":        {"key:\n" + key, key[:len(key)-1]},
		"private key, JSON":  {`{"private_key": "` + strings.ReplaceAll(key, "\n", `\n`) + `"}`, key[40:90]},
		"private key, diff":  {"+" + strings.ReplaceAll(key, "\n", "\n+"), key[40:90]},
		"private key, cut":   {key[:120], key[40:120]},
		"private key, PGP":   {"-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n" + fixedToken(letters, 64) + "\n-----END PGP " + "PRIVATE KEY BLOCK-----", fixedToken(letters, 64)},
		"private key, PuTTY": {"Private-Lines: 1\n" + fixedToken(letters, 64) + "\n", fixedToken(letters, 64)},
		"age":                plain("AGE-SECRET-KEY-" + "1" + fixedToken("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
		"JSON web token":     in("Authorization: Bearer %s\n", jwt(`{"sub":"u-81723","role":"admin"}`)),
		"linear":             plain("lin_api_" + fixedToken(letters, 40)),
		"groq":               plain("gsk_" + fixedToken(letters, 52)),
	}
}

func TestGuardFindsSecrets(t *testing.T) {
	guard := NewGuard(nil)
	table := secrets()
	if len(table) < 40 {
		t.Fatalf("only %d secrets", len(table))
	}
	for name, c := range table {
		text := "first line\n" + c[0] + "\nlast line\n"
		reason, ok := guard.Withheld("src/a.txt", []byte(text))
		if !ok || !strings.Contains(reason, "looks like") {
			t.Errorf("%s: not withheld (%q): %q", name, reason, text)
		}
		if strings.Contains(reason, c[1]) {
			t.Errorf("%s: the reason reveals it: %s", name, reason)
		}
		got := guard.Redact(text)
		if strings.Contains(got, c[1]) || !strings.Contains(got, redacted) {
			t.Errorf("%s: redacted to %q", name, got)
		}
		if !strings.HasPrefix(got, "first line\n") || !strings.HasSuffix(got, "last line\n") && name != "private key, cut" {
			t.Errorf("%s: more is redacted than the secret: %q", name, got)
		}
		if again := guard.Redact(got); again != got {
			t.Errorf("%s: redacted again to %q", name, again)
		}
	}
}

func TestGuardLetsPass(t *testing.T) {
	guard := NewGuard(nil)
	innocents := []string{
		"aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
		"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"aws_secret_access_key = ${AWS_SECRET}",
		"secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY,",
		"token: ghp_" + strings.Repeat("x", 36),
		"token: ghp_" + strings.Repeat("a", 36),
		"token: ghp_<your token>",
		"token: ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
		"prefixes := []string{\"ghp_\", \"gho_\", \"github_pat_\"}",
		"GITHUB_TOKEN=${{ secrets.GITHUB_TOKEN }}",
		"export OPENAI_API_KEY=sk-...",
		"export OPENAI_API_KEY=sk-your-key-here-and-nothing-else-at-all-please",
		"ANTHROPIC_API_KEY=sk-ant-api03-" + strings.Repeat("your-key-", 8),
		"class=\"task-" + fixedToken(letters, 48) + "\"",
		"risk-" + fixedToken(letters, 40),
		"url: postgres://user:password@localhost/db",
		"url: postgres://postgres:postgres@db:5432/app",
		"url: postgres://app:test-of-app1@localhost:5432/app",
		"url: mysql://root:changeme123@db/app",
		"url: postgres://${USER}:${PASS12345}@db/app",
		"url: postgres://user:%s@db/app",
		"url: https://user:pass@example.com/x",
		"url: https://example.com:8080/a@b",
		"see http://[::1]:3000/@vite/client",
		"git@github.com:owner/repository.git",
		"https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
		"xoxb-your-token",
		"if strings.Contains(s, \"-----BEGIN RSA " + "PRIVATE KEY-----\") { return isKey }",
		"-----BEGIN RSA " + "PRIVATE KEY-----\n...\n-----END RSA " + "PRIVATE KEY-----",
		"-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA...\n-----END RSA " + "PRIVATE KEY-----",
		"-----BEGIN CERTIFICATE-----\n" + fixedToken(letters, 64) + "\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\n" + fixedToken(letters, 64) + "\n-----END PUBLIC KEY-----",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + fixedToken(letters, 43) + " me@host",
		jwt(`{"sub":"1234567890","name":"John Doe","iat":1516239022}`),
		"eyJ" + fixedToken(letters, 200),
		"const header = 'eyJhbGciOiJIUzI1NiJ9'",
		"integrity sha512-" + fixedToken(letters+"/+", 86) + "==",
		"commit " + fixedToken(hexDigits, 40),
		"digest sha256:" + fixedToken(hexDigits, 64),
		"uuid 6f1c2b1e-8a5d-4f7e-9a51-3b8f5d2c7e90",
		"DISK" + fixedToken(hexDigits, 32),
		"SG.example.com is a host",
		"time 12:AA:BB:CC:DD:EE",
		"hf_hub_download(repo_id, filename)",
		"npm_config_registry=https://registry.npmjs.org/",
		"AIzaSy is how Google's keys begin",
		"AccountKey=<account key>;EndpointSuffix=core.windows.net",
		"stripe: sk_test_ keys are for tests",
		"dapiVersion: v1",
		"password = hunter2",
	}
	if len(innocents) < 40 {
		t.Fatalf("only %d innocents", len(innocents))
	}
	for _, text := range innocents {
		if reason, ok := guard.Withheld("docs/a.md", []byte(text)); ok {
			t.Errorf("withheld: %s: %s", reason, text)
		}
		if got := guard.Redact(text); got != text {
			t.Errorf("redacted: %q to %q", text, got)
		}
	}
}

func TestGuardNames(t *testing.T) {
	guard := NewGuard(nil)
	for path, want := range map[string]bool{
		".env": true, "a/.env": true, ".env.local": true, ".ENV": true, ".envrc": true,
		".env.example": false, ".env.sample": false, "x/.env.template": false, ".env.local.example": false,
		"env": false, "x.env.go": false, "src/environment.ts": false,
		"id_rsa": true, "keys/id_ed25519": true, "ID_RSA": true, "id_rsa.pub": false, "grid_rsa.go": false,
		"a.p12": true, "a.PFX": true, "release.keystore": true, "a.jks": true, "a.ppk": true,
		"a.pem": false, "a.crt": false, "a.key.md": false, "keystore.go": false,
		"prod.env": false, "prod.env.example": false, ".dev.vars": true, ".vault_pass": true, "rclone.conf": true, "terraform.tfstate": true,
		".netrc": true, "_netrc": true, ".pypirc": true, ".git-credentials": true, ".pgpass": true,
		".aws/credentials": true, "home/.aws/credentials": true, ".aws/config": false, "credentials": false,
		".npmrc": false, ".docker/config.json": false, "docs/netrc.md": false,
	} {
		reason, ok := guard.WithheldName(path)
		if ok != want || ok != (reason != "") {
			t.Errorf("WithheldName(%q) = %q, %v; want %v", path, reason, ok, want)
		}
	}
}

func TestGuardSettings(t *testing.T) {
	guard := NewGuard(nil)
	for _, c := range []struct {
		path, content string
		want          bool
	}{
		{".npmrc", "//r/:_authToken=0f8e2c71\n", true},
		{".npmrc", "//r/:_authToken=${NPM_TOKEN}\n", false},
		{".npmrc", "save-exact=true\n", false},
		{".yarnrc.yml", "npmAuthToken: \"0f8e2c71\"\n", true},
		{".docker/config.json", `{"auths": {"r": {"auth": "dTpwYXNz"}}}`, true},
		{".docker/config.json", `{"auths": {"r": {}}, "credsStore": "x"}`, false},
		{"config.json", `{"auth": "dTpwYXNz"}`, false},
		{".kube/config", "    client-key-data: LS0tLS1C\n", true},
		{".kube/config", "clusters:\n- name: a\n", false},
		{"prod.env", "DB_HOST=db\nDB_PASSWORD=abc\n", true},
		{"PROD.ENV", "export API_KEY='x y'\n", true},
		{"docker/db.env", "DATABASE_URL=postgres://app:h7Kq%2Fmxyz" + "@localhost:5432/app\n", true},
		{"docker/db.env", "DB_PASSWORD=${DB_PASSWORD}\n", false},
		{"testdata/basic.env", "S=bar\nI=99\n", false},
		{"tls/server.pem", pemKey(), true},
		{"tls/server.pem", "-----BEGIN CERTIFICATE-----\n", false},
	} {
		if reason, ok := guard.Withheld(c.path, []byte(c.content)); ok != c.want {
			t.Errorf("%s with %q: %v %q, want %v", c.path, c.content, ok, reason, c.want)
		}
	}
}

func TestGuardSendAndKnown(t *testing.T) {
	guard := NewGuard([]string{"testdata/**", ".env.ci", "[bad"})
	guard.Known = []string{"k-0123", "correct-horse", "correct-horse-battery"}
	for path, want := range map[string]bool{"testdata/key.pem": false, ".env.ci": false, ".env": true, "key.pem": true} {
		if _, ok := guard.Withheld(path, []byte(pemKey())); ok != want {
			t.Errorf("%s: withheld %v, want %v", path, ok, want)
		}
	}
	if reason, ok := guard.Withheld("testdata/x", []byte("a correct-horse-battery b")); !ok || strings.Contains(reason, "horse") {
		t.Errorf("a known value passes or is shown: %q", reason)
	}
	if got := guard.Redact("k-0123 <correct-horse-battery> correct-horse-battery"); got != "k-0123 <[withheld]> [withheld]" {
		t.Errorf("Redact = %q", got)
	}
	var none *Guard
	if _, ok := none.Withheld(".env", []byte(pemKey())); ok || none.Redact(pemKey()) != pemKey() {
		t.Error("a nil guard withholds")
	}
	if _, ok := (&Guard{}).Withheld("a", []byte(pemKey())); !ok {
		t.Error("the zero guard does not withhold")
	}
}

func TestGuardRedactsEvery(t *testing.T) {
	guard := NewGuard(nil)
	one, two := "ghp_"+fixedToken(letters, 36), "npm_"+fixedToken(letters, 36)
	if got := guard.Redact(one + " " + two + "\n" + pemKey() + one); got != "[withheld] [withheld]\n[withheld]\n[withheld]" {
		t.Errorf("Redact = %q", got)
	}
	if reason, _ := guard.Withheld("a", []byte("1\n2\n"+one)); reason != "line 3 looks like a GitHub token" {
		t.Errorf("reason %q", reason)
	}
}

func FuzzRedact(f *testing.F) {
	for _, c := range secrets() {
		f.Add(c[0])
	}
	f.Add("-----BEGIN ")
	f.Add("eyJ..eyJ://:@SG.AKIA")
	guard := NewGuard(nil)
	f.Fuzz(func(t *testing.T, text string) {
		got := guard.Redact(text)
		_, withheld := guard.Withheld("a", []byte(text))
		if withheld != (got != text) {
			t.Fatalf("withheld %v, and redacted to %q: %q", withheld, got, text)
		}
	})
}

// sourceText returns ordinary source code of that size.
func sourceText(size int) []byte {
	line := []byte("	if err := s.task(ctx, \"disk-usage\", opts.Token); err != nil { // see https://example.com/x:y\n")
	return bytes.Repeat(line, 1+size/len(line))[:size]
}

func BenchmarkGuardSource(b *testing.B) {
	text := sourceText(5 << 20)
	guard := NewGuard(nil)
	guard.Known = []string{"correct-horse-battery"}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, ok := guard.Withheld("a.go", text); ok {
			b.Fatal("withheld")
		}
	}
}

func BenchmarkGuardDashes(b *testing.B) {
	text := bytes.Repeat([]byte("-----BEGIN PRIVATE KEY-----eyJ.://a:b"), 1<<16)
	guard := NewGuard(nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, ok := guard.Withheld("a.go", text); ok {
			b.Fatal("withheld")
		}
	}
}

// BenchmarkGuardStart measures the first use of a guard, which every short run
// pays for.
func BenchmarkGuardStart(b *testing.B) {
	for b.Loop() {
		NewGuard(nil).Redact("a small text with nothing to be found")
	}
}

// BenchmarkGuardText scans hone's own documentation and source, with their mix of words.
func BenchmarkGuardText(b *testing.B) {
	text := ownText(b)
	guard := NewGuard(nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		guard.Redact(text)
	}
}

// ownText returns hone's documentation and the source of its root, in one text.
func ownText(t testing.TB) string {
	var all strings.Builder
	for _, pattern := range []string{"../../*.go", "../../docs/*.md", "../../*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}
