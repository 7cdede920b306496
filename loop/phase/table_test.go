package phase

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"hone/internal/config"
)

// load reads a .config/hone.toml that holds the text.
func load(t *testing.T, text string) (config.Values, error) {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, filepath.FromSlash(config.HonePath))
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	file, err := config.Load(root)
	return file.For("phase", nil, nil), err
}

func TestPhaseErrors(t *testing.T) {
	const at = ".config/hone.toml:2: phase."
	const server = `it is not the http URL of a port of this machine; write it without a path, such as "http://localhost:3000"`
	for line, want := range map[string]string{
		"round = 3":                 "round: unknown key; did you mean rounds?",
		"hook_raed = []":            "hook_raed: unknown key; did you mean hook-read?",
		"approve = 'all'":           "approve: unknown key; remove it, or use one of: builder-model, dev-url, health-attempts, hook-env, hook-net, hook-read, hook-timeout, max-tool-calls, rounds, turns, verifier-commands, verifier-model",
		"builder-model = ' '":       "builder-model: an empty string is not allowed; write some text, or remove it",
		"builder-model = \"a\\nb\"": "builder-model: \"a\\nb\" is not one line of plain text; remove what cannot be printed",
		"verifier-model = 5":        "verifier-model: it is not a string; write it in double quotes",
		"rounds = 0":                "rounds: 0 is too small; write a whole number greater than 0",
		"health-attempts = 0":       "health-attempts: 0 is too small; write a whole number greater than 0",
		"turns = '9'":               "turns: it is not a whole number; write a whole number greater than 0",
		"max-tool-calls = -1":       "max-tool-calls: -1 is too small; write a whole number greater than 0",
		"hook_read = ['']":          "hook_read: an empty string is not allowed; write some text, or remove it",
		"hook_env = ['A=secret']":   "hook_env: it is not only the name of a variable; write names without values, such as \"DATABASE_URL\"",
		"hook_net = 'yes'":          "hook_net: it is not a boolean; write true or false, without quotes",
		"hook-timeout = 5":          "hook-timeout: it is not a string; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\"",

		"dev-url = 'localhost:3000'":                 "dev-url: " + server,
		"dev-url = 'https://localhost:3000'":         "dev-url: " + server,
		"dev-url = 'http://:3000'":                   "dev-url: " + server,
		"dev-url = 'http://localhost:x'":             "dev-url: " + server,
		"dev-url = 'http://me:secret@localhost:300'": "dev-url: " + server,
		"dev-url = 'http://localhost:3000/'":         "dev-url: " + server,
		"dev-url = 'http://localhost:3000?'":         "dev-url: " + server,
		"dev-url = 'http://localhost:3000#a'":        "dev-url: " + server,
		"dev-url = 'http://[::1%25lo]:3000'":         "dev-url: " + server,
		"dev-url = 'http://example.org:3000'":        "dev-url: " + server,
		"dev-url = 'http://localhost.evil:3000'":     "dev-url: " + server,
		"dev-url = 'http://0.0.0.0:3000'":            "dev-url: " + server,
		"dev-url = 'http://192.168.0.1:3000'":        "dev-url: " + server,
		"dev-url = 'http://localhost'":               "dev-url: " + server,
		"dev-url = 'http://localhost:'":              "dev-url: " + server,
		"dev-url = 'http://localhost:0'":             "dev-url: " + server,
		"dev-url = 'http://localhost:65536'":         "dev-url: " + server,
	} {
		_, err := load(t, "[phase]\n"+line+"\n")
		if err == nil || err.Error() != at+want {
			t.Errorf("%q:\n got %v\nwant %s", line, err, at+want)
		}
	}
}

func TestDevURL(t *testing.T) {
	for _, url := range []string{"http://localhost:3000", "http://LocalHost:1", "http://127.0.0.1:65535", "http://127.1.2.3:80", "http://[::1]:3000"} {
		got, err := load(t, "[phase]\ndev-url = '"+url+"'\n")
		if err != nil || config.DevURL.In(got) != url {
			t.Errorf("%s: %q, %v", url, config.DevURL.In(got), err)
		}
	}
}
