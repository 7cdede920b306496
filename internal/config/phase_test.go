package config

import "testing"

func TestPhaseErrors(t *testing.T) {
	const at = ".config/hone.toml:2: phase."
	const example = `; write the server's address, such as "http://localhost:3000"`
	const host = "; write localhost, 127.0.0.1 or [::1] for the host"
	for line, want := range map[string]string{
		"round = 3":                 "round: there is no such key; did you mean rounds?",
		"hook_raed = []":            "hook_raed: there is no such key; did you mean hook_read?",
		"approve = 'all'":           "approve: there is no such key; remove it, or write one of: builder-model, dev-url, health-attempts, hook-timeout, hook_env, hook_net, hook_read, max-tool-calls, rounds, turns, verifier-model",
		"builder-model = ' '":       "builder-model: it is empty; write it in one line, or remove it",
		"builder-model = \"a\\nb\"": "builder-model: there is something in it that cannot be printed; write it in one line of plain text",
		"verifier-model = 5":        "verifier-model: it is not a string; write it in double quotes",
		"rounds = 0":                "rounds: 0 is not a number from 1; write one, such as rounds = 3",
		"health-attempts = 0":       "health-attempts: 0 is not a number from 1; write one, such as health-attempts = 1",
		"turns = '9'":               "turns: it is not a whole number; write a number from 1, such as turns = 60",
		"max-tool-calls = -1":       "max-tool-calls: -1 is not a number from 1; write one, such as max-tool-calls = 240",
		"hook_read = ['']":          "hook_read: there is an empty path in the list; remove it",
		"hook_env = ['A=secret']":   "hook_env: \"A\" is not the name of a variable alone; write names without values, such as \"DATABASE_URL\"",
		"hook_net = 'yes'":          "hook_net: it is neither true nor false; write true or false, without quotes",
		"hook-timeout = 5":          "hook-timeout: it is not a string; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\"",

		"dev-url = 'localhost:3000'":                 "dev-url: it is not an http address" + example,
		"dev-url = 'https://localhost:3000'":         "dev-url: it is not an http address" + example,
		"dev-url = 'http://:3000'":                   "dev-url: it is not an http address" + example,
		"dev-url = 'http://localhost:x'":             "dev-url: it is not an http address" + example,
		"dev-url = 'http://me:secret@localhost:300'": "dev-url: there is a user or a password in the address" + example,
		"dev-url = 'http://localhost:3000/'":         "dev-url: something follows the host and the port" + example,
		"dev-url = 'http://localhost:3000?'":         "dev-url: something follows the host and the port" + example,
		"dev-url = 'http://localhost:3000#a'":        "dev-url: something follows the host and the port" + example,
		"dev-url = 'http://[::1%25lo]:3000'":         "dev-url: something follows the host and the port" + example,
		"dev-url = 'http://example.org:3000'":        "dev-url: its host is not this machine's loopback" + host,
		"dev-url = 'http://localhost.evil:3000'":     "dev-url: its host is not this machine's loopback" + host,
		"dev-url = 'http://0.0.0.0:3000'":            "dev-url: its host is not this machine's loopback" + host,
		"dev-url = 'http://192.168.0.1:3000'":        "dev-url: its host is not this machine's loopback" + host,
		"dev-url = 'http://localhost'":               "dev-url: the port is missing" + example,
		"dev-url = 'http://localhost:'":              "dev-url: the port is missing" + example,
		"dev-url = 'http://localhost:0'":             "dev-url: 0 is not a port; write one from 1 to 65535",
		"dev-url = 'http://localhost:65536'":         "dev-url: 65536 is not a port; write one from 1 to 65535",
	} {
		_, err := Load(project(t, HonePath, "[phase]\n"+line+"\n"))
		checkError(t, line, err, at+want)
	}
}

func TestDevURL(t *testing.T) {
	for _, url := range []string{"http://localhost:3000", "http://LocalHost:1", "http://127.0.0.1:65535", "http://127.1.2.3:80", "http://[::1]:3000"} {
		got, err := Load(project(t, HonePath, "[phase]\ndev-url = '"+url+"'\n"))
		if err != nil || got.Phase.DevURL != url {
			t.Errorf("%s: %q, %v", url, got.Phase.DevURL, err)
		}
	}
}
