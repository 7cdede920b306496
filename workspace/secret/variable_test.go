package secret

import (
	"slices"
	"strings"
	"testing"
)

func TestVariable(t *testing.T) {
	random := fixedToken(letters, 32)
	for _, c := range []struct{ name, value, want string }{
		{"DEPLOY_SECRET", "hunter22", "hunter22"},
		{"DEPLOY_SECRET", "correct-horse-battery", "correct-horse-battery"},
		{"CANARY", "canary-value-4711-abcdef", "canary-value-4711-abcdef"},
		{"TEST_DATABASE", "postgres://app:h7Kq%2Fmxyz" + "@localhost:5432/app", "h7Kq/mxyz"},
		{"HOOK_URL", "https://hooks.internal/services/" + random, random},
		{"LOGIN", `odd"value-of-77y3\x9z8w7v6`, "value-of-77y3"},
		{"DOCKER_AUTH_CONFIG", `{"auths": {"r": {"auth": "bWU6aHVudGVyMjI="}}}`, "hunter22"},
		{"TLS", pemKey(), "MHcCAQEEIDk2Zq8vTn4wXh1sLr0bYc7JmPfQe5uKgAo3iVdRtW9xoAoGCCqGSM49"},
		{"TOOL_OPTS", "--retries=3 --token=abc1234-x9z", "abc1234-x9z"},
	} {
		if got := Variable(c.name, c.value); !slices.Contains(got, c.want) {
			t.Errorf("%s=%s: %q lack %q", c.name, c.value, got, c.want)
		}
	}
	for _, c := range []struct{ name, value string }{
		{"CI", "true"}, {"NODE_ENV", "test"}, {"NODE_ENV", "production"}, {"N", "1"}, {"PGHOST", "localhost"}, {"PGPASSWORD", "postgres"}, {"PGPASSWORD", "password"},
		{"USER", "jane.smith"}, {"LOGIN_USER", "janesmith2"}, {"AWS_REGION", "ap-southeast-2"}, {"DEPLOY_ENV", "production-eu-1"}, {"TAG", "v1.22.3"},
		{"PATH", "/usr/local/bin:/usr/bin:/nix/store/4b1c9x2k7h8j3l5m6n0p-go-1.24/bin"}, {"JAVA_HOME", "/usr/lib/jvm/java-17-openjdk-amd64"}, {"Path", `C:\Go\bin;C:\Windows`},
		{"GOFLAGS", "-mod=vendor -count=1"}, {"NODE_OPTIONS", "--max-old-space-size=4096"}, {"EMPTY", ""}, {"API_KEY", ""}, {"SSH_AUTH_SOCK", "/tmp/ssh-x/agent.17"},
		{"DATABASE_URL", "postgres://postgres:postgres@localhost:5432/test"}, {"API_URL", "http://127.0.0.1:8080/v1"}, {"TZ", "Europe/Berlin"},
	} {
		if got := Variable(c.name, c.value); len(got) > 0 {
			t.Errorf("%s=%s: has the values %q", c.name, c.value, got)
		}
	}
	g := NewGuard(nil).WithSecrets(Variable("TLS", pemKey()))
	if marks := "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"; strings.Contains(g.Redact(marks), redacted) {
		t.Error("the lines around a certificate are a secret")
	}
}
