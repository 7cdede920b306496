package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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
patience = 2
keep = "best"

[check]
command = "go test ./..."
env = ["DATABASE_URL", "OPENAI_API_KEY"]
timeout = "10m"
protect = ["tests/**", "Makefile"]
flaky = 3
prove = "strict"

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

[undo]
include = [".env.local", "data/*.db"]
max-file = "64MB"

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
reviewer-model = "gemini/gemini-2.5-flash"

[phase]
builder-model = "command/gemini/gemini-2.5-pro"
verifier-model = "gpt-5"
rounds = 4
health-attempts = 2
turns = 60
max-tool-calls = 200
dev-url = "http://localhost:3000"
hook_read = ["~/.npmrc"]
hook_env = ["DATABASE_URL"]
hook_net = true
hook-timeout = "5m"

[commands.gemini]
argv = ["gemini", "-m", "{model}", "-p", "{prompt}"]
model = "gemini-2.5-pro"
stdin = "context"
wire = "gemini"
base-url-env = "GOOGLE_GEMINI_BASE_URL"
key-env = "GEMINI_API_KEY"
base-url = "https://proxy.example/v1"
set = ["NO_COLOR=1", "EMPTY="]
env = ["LANG"]
home = ["~/.gemini/settings.json"]
home-write = ["~/.gemini/tmp"]
read = ["/opt/node"]
write = ["out"]
net = false
hosted = true
timeout = "30m"
exits = [0, 53]
answer = "response"
usage = { input = "stats.in", output = "stats.out", cache-read = "stats.read", cache-write = "stats.write", reasoning = "stats.thoughts", cached-in-input = true, each = true }

[commands.Own_agent-2]
argv = ["./agent"]
net = true
hosted = false
key-env = "KEY"

[commands.Own_agent-2.usage]
input = "in"
`

func TestLoad(t *testing.T) {
	got, err := Load(project(t, HonePath, everything))
	if err != nil {
		t.Fatal(err)
	}
	want := File{
		Model: Model{Model: "openai/gpt-5", BaseURL: "http://localhost:8080/v1", Reasoning: "high", Wire: "chat", Tools: "text", Context: 200_000,
			MaxOutput: 32_000, IdleTimeout: 90 * time.Second, TotalTimeout: time.Hour, Attempts: 3},
		Limits: Limits{Rounds: 5, MaxTokens: 5_000_000, MaxCost: 2, MaxTime: 4 * time.Hour, Patience: 2, Keep: "best"},
		Check: Check{Command: "go test ./...", Env: []string{"DATABASE_URL", "OPENAI_API_KEY"}, Timeout: 10 * time.Minute,
			Protect: []string{"tests/**", "Makefile"}, Flaky: 3, Prove: "strict"},
		Guard: Guard{Send: []string{"testdata/**", ".env.ci"}},
		Sandbox: Sandbox{Wall: "bwrap", Net: true, Write: []string{"~/.cache/x", "out"}, Read: []string{"/opt/data"}, Hide: []string{"private"},
			Env: []string{"DATABASE_URL"}, Memory: 4 << 30, Processes: 512},
		Undo:      Undo{Include: []string{".env.local", "data/*.db"}, MaxFile: 64 << 20},
		Prices:    map[string]Price{"openai/gpt-5": {Input: 1.25, Output: 10, CacheWrite: 1.25}, "ollama/qwen3:8b": {}},
		Reconcile: Reconcile{Rounds: 3, Approve: "none"},
		Implement: Implement{Rounds: 4, MaxOutput: 1000, BuildTimeout: 90 * time.Second},
		Task:      Task{Rounds: 6, Turns: 20, MaxToolCalls: 50, Approve: "all", ReviewerModel: "gemini/gemini-2.5-flash"},
		Phase: Phase{BuilderModel: "command/gemini/gemini-2.5-pro", VerifierModel: "gpt-5", Rounds: 4, HealthAttempts: 2, Turns: 60, MaxToolCalls: 200,
			DevURL: "http://localhost:3000", HookRead: []string{"~/.npmrc"}, HookEnv: []string{"DATABASE_URL"}, HookNet: true, HookTimeout: 5 * time.Minute},
		Commands: map[string]Agent{
			"gemini": {
				Argv: []string{"gemini", "-m", "{model}", "-p", "{prompt}"}, Model: "gemini-2.5-pro", Stdin: "context",
				Wire: "gemini", BaseURLEnv: "GOOGLE_GEMINI_BASE_URL", KeyEnv: "GEMINI_API_KEY", BaseURL: "https://proxy.example/v1", Hosted: true,
				Set: []string{"NO_COLOR=1", "EMPTY="}, Env: []string{"LANG"}, Home: []string{"~/.gemini/settings.json"}, HomeWrite: []string{"~/.gemini/tmp"},
				Read: []string{"/opt/node"}, Write: []string{"out"}, Timeout: 30 * time.Minute, Exits: []int{0, 53}, Answer: "response",
				Usage: AgentUsage{Input: "stats.in", Output: "stats.out", CacheRead: "stats.read", CacheWrite: "stats.write", Reasoning: "stats.thoughts", CachedInInput: true, Each: true},
			},
			"Own_agent-2": {Argv: []string{"./agent"}, Net: true, KeyEnv: "KEY", Usage: AgentUsage{Input: "in"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAgentJSON: an agent stands in a run's start event, from which a resumed
// run takes it, and is spelled there as all the rest is.
func TestAgentJSON(t *testing.T) {
	file, err := Load(project(t, HonePath, everything))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range file.Commands {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if key := regexp.MustCompile(`"[^"]*[A-Z][^"]*":|""`).Find(text); key != nil {
			t.Errorf("%s: %s in %s", name, key, text)
		}
		var got Agent
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if text, _ := json.Marshal(Agent{Argv: []string{"a"}}); string(text) != `{"argv":["a"]}` {
		t.Errorf("what is not said is written: %s", text)
	}
}

func TestLoadNothing(t *testing.T) {
	for name, root := range map[string]string{
		"no file":        t.TempDir(),
		"an empty file":  project(t, HonePath, ""),
		"a comment":      project(t, HonePath, "# nothing\n"),
		"empty sections": project(t, HonePath, "[model]\n[limits]\n[prices]\n[reconcile]\n[phase]\n[commands]\n"),
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
		{"[nonsense]\n", at + "1: nonsense: there is no such section; remove it, or write one of: check, commands, guard, implement, limits, model, phase, prices, reconcile, sandbox, task, undo"},
		{"rounds = 5\n", at + "1: rounds: there is no such section; remove it, or write one of: check, commands, guard, implement, limits, model, phase, prices, reconcile, sandbox, task, undo"},
		{"\n[limits]\nround = 5\n", at + "3: limits.round: there is no such key; did you mean rounds?"},
		{"[limits]\nmax_token = 5\n", at + "2: limits.max_token: there is no such key; did you mean max-tokens?"},
		{"[limits]\nROUNDS = 5\n", at + "2: limits.ROUNDS: there is no such key; did you mean rounds?"},
		{"[limits]\nspeed = 5\n", at + "2: limits.speed: there is no such key; remove it, or write one of: keep, max-cost, max-time, max-tokens, patience, rounds"},
		{"[limits.rounds]\nx = 5\n", at + "2: limits.rounds.x: there is no such key; did you mean rounds?"},
		{"model = 'openai/gpt-5'\n", at + "1: model: it is a section; write [model], and its keys below"},
		{"[[model]]\nmodel = 'a/b'\n", at + "1: model: it is a section; write [model], and its keys below"},
		{"'model.model' = 1\n", at + "1: \"model.model\": there is no such section; remove it, or write one of: check, commands, guard, implement, limits, model, phase, prices, reconcile, sandbox, task, undo"},
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
		{"[limits]\npatience = -1\n", at + "2: limits.patience: -1 is not a number from 0; write one, such as patience = 2"},
		{"[limits]\npatience = 'long'\n", at + "2: limits.patience: it is not a whole number; write a number from 0, such as patience = 2"},
		{"[limits]\nkeep = 'first'\n", at + "2: limits.keep: there is no \"first\"; write \"best\" or \"last\""},
		{"[check]\nprotect = 'tests/**'\n", at + "2: check.protect: it is not a list; write a list of strings, such as protect = [\"tests/**\"]"},
		{"[check]\nprotect = ['../tests']\n", at + "2: check.protect: \"../tests\" has a \"..\" in it; write it relative to the root, such as \"docs/**\""},
		{"[check]\nprotect = ['a{b']\n", at + "2: check.protect: \"a{b\" is not a glob; close its brackets and braces, or write \\[ and \\{ for the letters themselves"},
		{"[check]\nflaky = 1.5\n", at + "2: check.flaky: it is not a whole number; write a number from 0, such as flaky = 2"},
		{"[check]\nflaky = -2\n", at + "2: check.flaky: -2 is not a number from 0; write one, such as flaky = 2"},
		{"[check]\nprove = true\n", at + "2: check.prove: it is not a string; write \"off\", \"on\" or \"strict\""},
		{"[check]\nprove = 'yes'\n", at + "2: check.prove: there is no \"yes\"; write \"off\", \"on\" or \"strict\""},
		{"[undo]\ninclude = true\n", at + "2: undo.include: it is not a list; write a list of strings, such as include = [\".env.local\"]"},
		{"[undo]\ninclude = ['/etc/*']\n", at + "2: undo.include: \"/etc/*\" is absolute; write it relative to the root, such as \"docs/**\""},
		{"[undo]\nmax-file = -1\n", at + "2: undo.max-file: -1 is no size; write bytes, or a number with its unit, such as \"4GB\""},
		{"[undo]\nmax-files = 1\n", at + "2: undo.max-files: there is no such key; did you mean max-file?"},
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

// TestSpellings holds that a file reads the same whichever of dash and
// underscore its keys have.
func TestSpellings(t *testing.T) {
	want, err := Load(project(t, HonePath, everything))
	if err != nil {
		t.Fatal(err)
	}
	key := regexp.MustCompile(`(?m)^[a-z_-]+ =|[{,] [a-z_-]+ =`)
	for name, swap := range map[string]*strings.Replacer{"underscores": strings.NewReplacer("-", "_"), "dashes": strings.NewReplacer("_", "-")} {
		text := key.ReplaceAllStringFunc(everything, swap.Replace)
		if text == everything {
			t.Fatalf("%s: nothing is spelled otherwise", name)
		}
		got, err := Load(project(t, HonePath, text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestSpelledTwice(t *testing.T) {
	const at = ".config/hone.toml:"
	const one = "; keep one of the two"
	for _, c := range []struct{ text, want string }{
		{"[limits]\nmax-tokens = 5\nmax_tokens = 5\n", at + "3: limits.max_tokens: it stands in line 2 as max-tokens already" + one},
		{"[limits]\nmax_tokens = 5\n\nmax-tokens = 5\n", at + "4: limits.max-tokens: it stands in line 2 as max_tokens already" + one},
		{"[phase]\nhook-net = true\nhook_net = false\n", at + "3: phase.hook_net: it stands in line 2 as hook-net already" + one},
		{"[phase]\nhook-time_out = '1s'\n", at + "2: phase.hook-time_out: there is no such key; did you mean hook-timeout?"},
		{"[prices.'a/b']\ncache-read = 1\ncache_read = 1\n", at + "3: prices.\"a/b\".cache_read: it stands in line 2 as cache-read already" + one},
		{"[commands.a]\nkey_env = 'A'\nkey-env = 'A'\n", at + "3: commands.a.key-env: it stands in line 2 as key_env already" + one},
		{"[commands.a]\nusage.cache_read = 'a'\n[commands.a.usage]\ncache-read = 'a'\n", at + "3: "},
		{"[commands.a]\n[commands.a.usage]\ncache_read = 'a'\ncache-read = 'a'\n", at + "4: commands.a.usage.cache-read: it stands in line 3 as cache_read already" + one},
	} {
		_, err := Load(project(t, HonePath, c.text))
		checkError(t, c.text, err, c.want)
	}
	got, err := Load(project(t, HonePath, "[prices]\n'a/b-c' = { input = 1, output = 2 }\n'a/b_c' = { input = 3, output = 4 }\n[commands]\na-b.argv = ['x']\na_b.argv = ['y']\n"))
	if err != nil || got.Prices["a/b-c"].Input != 1 || got.Prices["a/b_c"].Input != 3 || got.Commands["a-b"].Argv[0] != "x" || got.Commands["a_b"].Argv[0] != "y" {
		t.Errorf("names that differ in a dash: %+v, %v", got, err)
	}
}

// TestNone: where a limit can be none, that can be written down.
func TestNone(t *testing.T) {
	got, err := Load(project(t, HonePath, "[limits]\npatience = 0\n[check]\nflaky = 0\nprotect = []\n[undo]\nmax-file = 0\ninclude = []\n"))
	want := File{Check: Check{Protect: []string{}}, Undo: Undo{Include: []string{}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for text, want := range map[string]int64{"5000000000": 5_000_000_000, "'1GB'": 1 << 30} {
		got, err := Load(project(t, HonePath, "[undo]\nmax_file = "+text+"\n"))
		if err != nil || got.Undo.MaxFile != want {
			t.Errorf("%s: %d, %v", text, got.Undo.MaxFile, err)
		}
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
