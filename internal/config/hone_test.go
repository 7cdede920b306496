package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// project is a directory with one file.
func project(t *testing.T, file, text string) string {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

const everything = `# a comment
[model]
model = "openai/gpt-5"
base-url = "http://localhost:8080/v1"
reasoning = "high"
wire = "chat"
tools = "text"
context = 200_000
max-output = 32000
idle-timeout = "90s"
attempts = 3
total-timeout = "1h"

[limits]
rounds = 5
max-tokens = 5000000
max-cost = 2
max-time = "4h"

[check]
command = "go test ./..."
env = ["DATABASE_URL", "OPENAI_API_KEY"]
timeout = "10m"

[guard]
send = ["testdata/**", ".env.ci"]

[sandbox]
wall = "bwrap"
net = true
write = ["~/.cache/x", "out"]
read = ["/opt/data"]
hide = ["private"]
env = ["DATABASE_URL"]
memory = "4GB"
processes = 512

[prices."openai/gpt-5"]
input = 1.25
output = 10
cache-read = 0

[prices]
"ollama/qwen3:8b" = { input = 0, output = 0 }

[reconcile]
rounds = 3
approve = "none"

[implement]
rounds = 4
max-output = 1000
build-timeout = "90s"

[task]
rounds = 6
turns = 20
max-tool-calls = 50
approve = "all"
`

func TestLoad(t *testing.T) {
	got, err := Load(project(t, HonePath, everything))
	if err != nil {
		t.Fatal(err)
	}
	want := File{
		Model: Model{Model: "openai/gpt-5", BaseURL: "http://localhost:8080/v1", Reasoning: "high", Wire: "chat", Tools: "text", Context: 200_000,
			MaxOutput: 32_000, IdleTimeout: 90 * time.Second, TotalTimeout: time.Hour, Attempts: 3},
		Limits: Limits{Rounds: 5, MaxTokens: 5_000_000, MaxCost: 2, MaxTime: 4 * time.Hour},
		Check:  Check{Command: "go test ./...", Env: []string{"DATABASE_URL", "OPENAI_API_KEY"}, Timeout: 10 * time.Minute},
		Guard:  Guard{Send: []string{"testdata/**", ".env.ci"}},
		Sandbox: Sandbox{Wall: "bwrap", Net: true, Write: []string{"~/.cache/x", "out"}, Read: []string{"/opt/data"}, Hide: []string{"private"},
			Env: []string{"DATABASE_URL"}, Memory: 4 << 30, Processes: 512},
		Prices:    map[string]Price{"openai/gpt-5": {Input: 1.25, Output: 10, CacheWrite: 1.25}, "ollama/qwen3:8b": {}},
		Reconcile: Reconcile{Rounds: 3, Approve: "none"},
		Implement: Implement{Rounds: 4, MaxOutput: 1000, BuildTimeout: 90 * time.Second},
		Task:      Task{Rounds: 6, Turns: 20, MaxToolCalls: 50, Approve: "all"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLoadNothing(t *testing.T) {
	for name, root := range map[string]string{
		"no file":        t.TempDir(),
		"an empty file":  project(t, HonePath, ""),
		"a comment":      project(t, HonePath, "# nothing\n"),
		"empty sections": project(t, HonePath, "[model]\n[limits]\n[prices]\n[reconcile]\n"),
	} {
		got, err := Load(root)
		if diff := cmp.Diff(File{}, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	const at = ".config/hone.toml:"
	for _, c := range []struct{ text, want string }{
		{"[modle]\nmodel = 'a/b'\n", at + "1: modle: there is no such section; did you mean model?"},
		{"[nonsense]\n", at + "1: nonsense: there is no such section; remove it, or write one of: check, guard, implement, limits, model, prices, reconcile, sandbox, task"},
		{"rounds = 5\n", at + "1: rounds: there is no such section; remove it, or write one of: check, guard, implement, limits, model, prices, reconcile, sandbox, task"},
		{"\n[limits]\nround = 5\n", at + "3: limits.round: there is no such key; did you mean rounds?"},
		{"[limits]\nmax_tokens = 5\n", at + "2: limits.max_tokens: there is no such key; did you mean max-tokens?"},
		{"[limits]\nROUNDS = 5\n", at + "2: limits.ROUNDS: there is no such key; did you mean rounds?"},
		{"[limits]\nspeed = 5\n", at + "2: limits.speed: there is no such key; remove it, or write one of: max-cost, max-time, max-tokens, rounds"},
		{"[limits.rounds]\nx = 5\n", at + "2: limits.rounds.x: there is no such key; did you mean rounds?"},
		{"model = 'openai/gpt-5'\n", at + "1: model: it is a section; write [model], and its keys below"},
		{"[[model]]\nmodel = 'a/b'\n", at + "1: model: it is a section; write [model], and its keys below"},
		{"'model.model' = 1\n", at + "1: \"model.model\": there is no such section; remove it, or write one of: check, guard, implement, limits, model, prices, reconcile, sandbox, task"},
		{"limits = { rounds = 1,\n  # x\n  max-time = 3 }\n", at + "3: limits.max-time: it is not a string; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\""},
		{"limits.rounds = '5'\n", at + "1: limits.rounds: it is not a whole number; write a number from 1, such as rounds = 5"},
		{"[limits]\nrounds = 0\n", at + "2: limits.rounds: 0 is not a number from 1; write one, such as rounds = 5"},
		{"[limits]\nmax-tokens = -1\n", at + "2: limits.max-tokens: -1 is not a number from 1; write one, such as max-tokens = 5000000"},
		{"[limits]\nmax-tokens = 1.5\n", at + "2: limits.max-tokens: it is not a whole number; write a number from 1, such as max-tokens = 5000000"},
		{"[limits]\nmax-cost = 0\n", at + "2: limits.max-cost: 0 is no amount of money; write US dollars, such as max-cost = 2.50"},
		{"[limits]\nmax-cost = nan\n", at + "2: limits.max-cost: NaN is no amount of money; write US dollars, such as max-cost = 2.50"},
		{"[limits]\nmax-cost = '2 USD'\n", at + "2: limits.max-cost: it is not a number; write US dollars without a sign, such as max-cost = 2.50"},
		{"[limits]\nmax-time = '4'\n", at + "2: limits.max-time: \"4\" is not a time; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\""},
		{"[limits]\nmax-time = '-4h'\n", at + "2: limits.max-time: \"-4h\" is not longer than nothing; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\""},
		{"[model]\nmodel = 'gpt-5'\n", at + "2: model.model: \"gpt-5\" names no model; write \"provider/name\", such as \"openai/gpt-5\""},
		{"[model]\nmodel = 5\n", at + "2: model.model: it is not a string; write it in double quotes"},
		{"[model]\nreasoning = 'hihg'\n", at + "2: model.reasoning: there is no \"hihg\"; write \"low\", \"medium\" or \"high\""},
		{"[model]\nreasoning = 3\n", at + "2: model.reasoning: it is not a string; write \"low\", \"medium\" or \"high\""},
		{"[model]\nwire = 'x'\n", at + "2: model.wire: there is no \"x\"; write \"responses\" or \"chat\""},
		{"[model]\nbase-url = 'localhost:8080'\n", at + "2: model.base-url: it is not an http address; write one, such as \"http://localhost:11434/v1\""},
		{"[model]\nbase-url = 'http://me:secret@host/'\n", at + "2: model.base-url: there is a user or a password in the address; take it out, and set the provider's key variable"},
		{"[check]\ncommand = ' '\n", at + "2: check.command: it is empty; write a command, such as \"go test ./...\", or remove the line"},
		{"[check]\nenv = 'A'\n", at + "2: check.env: it is not a list; write a list of strings, such as env = [\"DATABASE_URL\"]"},
		{"[check]\nenv = ['A=secret']\n", at + "2: check.env: \"A\" is not the name of a variable alone; write names without values, such as \"DATABASE_URL\""},
		{"[guard]\nsend = [1]\n", at + "2: guard.send: there is something else than a string in the list; write a list of strings, such as send = [\"testdata/**\"]"},
		{"[guard]\nsend = ['a[']\n", at + "2: guard.send: \"a[\" is not a glob; close its brackets and braces, or write \\[ and \\{ for the letters themselves"},
		{"[guard]\nsend = ['/etc/*']\n", at + "2: guard.send: \"/etc/*\" is absolute; write it relative to the root, such as \"docs/**\""},
		{"[prices]\ngpt-5 = 3\n", at + "2: prices.gpt-5: it is not a section of one model's prices; write [prices.\"provider/name\"], and below it input and output in USD for a million tokens"},
		{"[prices.gpt-5]\ninput = 3\n", at + "2: prices.gpt-5.input: \"gpt-5\" names no model; write [prices.\"provider/name\"], and below it input and output in USD for a million tokens"},
		{"[prices.'a/b']\ninput = -3\n", at + "2: prices.\"a/b\".input: -3 is no amount of money; write US dollars, such as input = 1.25"},
		{"[prices.'a/b']\ninput = 3\n", at + "2: prices.\"a/b\": the price \"output\" is missing; write output = 0 if it costs nothing"},
		{"[prices.'a/b']\n", at + "1: prices.\"a/b\": the price \"input\" is missing; write input = 0 if it costs nothing"},
		{"[prices.'a/b']\ninputs = 3\n", at + "2: prices.\"a/b\".inputs: there is no such key; did you mean input?"},
		{"[reconcile]\napprove = true\n", at + "2: reconcile.approve: it is not a string; write \"ask\", \"none\" or \"all\""},
		{"[sandbox]\nwall = 'bubblewrap'\n", at + "2: sandbox.wall: there is no \"bubblewrap\"; write \"auto\", \"hidden\", \"bwrap\", \"landlock\", \"firejail\" or \"none\""},
		{"[sandbox]\nnet = 'yes'\n", at + "2: sandbox.net: it is neither true nor false; write true or false, without quotes"},
		{"[sandbox]\nread = '/opt'\n", at + "2: sandbox.read: it is not a list; write a list of strings, such as read = [\"/opt/data\"]"},
		{"[sandbox]\nwrite = ['']\n", at + "2: sandbox.write: there is an empty path in the list; remove it"},
		{"[sandbox]\nhide = [\"a\\u0000b\"]\n", at + "2: sandbox.hide: there is a NUL in a path; remove it"},
		{"[sandbox]\nread = ['~bob/x']\n", at + "2: sandbox.read: \"~bob/x\": only ~ and ~/ mean a home; write the path whole, or ./ before it"},
		{"[sandbox]\nenv = ['A=b']\n", at + "2: sandbox.env: \"A\" is not the name of a variable alone; write names without values, such as \"DATABASE_URL\""},
		{"[sandbox]\nmemory = '4 elephants'\n", at + "2: sandbox.memory: \"4 elephants\" is no size; write bytes, or a number with its unit, such as \"4GB\""},
		{"[sandbox]\nmemory = 0\n", at + "2: sandbox.memory: 0 is no size; write bytes, or a number with its unit, such as \"4GB\""},
		{"[sandbox]\nmemory = 1.5\n", at + "2: sandbox.memory: it is no size; write bytes, or a number with its unit, such as \"4GB\""},
		{"[sandbox]\nprocesses = 0\n", at + "2: sandbox.processes: 0 is not a number from 1; write one, such as processes = 512"},
		{"\n[sandbox]\nwal = 'auto'\n", at + "3: sandbox.wal: there is no such key; did you mean wall?"},
		{"[limits]\nrounds = 5\nrounds = 6\n", at + "3: rounds: key rounds is already defined; write TOML: sections in brackets, and lines such as rounds = 5"},
		{"[limits\n", at + "1: "},
		{"[limits]\nrounds =\n", at + "2: "},
		{"[model]\nmodel = 'a\xff/b'\n", at + "2: it is not UTF-8; save it as UTF-8"},
		{"\xef\xbb\xbf[model]\n", at + "1: it begins with a byte order mark; save it as UTF-8 without one"},
	} {
		_, err := Load(project(t, HonePath, c.text))
		checkError(t, c.text, err, c.want)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "4GB": 4 << 30, "4 GiB": 4 << 30, "4g": 4 << 30, "64k": 64 << 10, "2Tb": 2 << 40, " 7 MB ": 7 << 20, "12b": 12, "8388607T": 8388607 << 40,
		"": 0, "0": 0, "-1": 0, "1.5GB": 0, "GB": 0, "4XB": 0, "4 G B": 0, "8388608T": 0, "9223372036854775808": 0, "4i": 0,
	} {
		got, err := ParseSize(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
