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
	"github.com/google/go-cmp/cmp/cmpopts"
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

func load(root string) (File, error) {
	f, err := Load(root)
	f.Opens = nil // TestOpens is about them
	return f, err
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
advice = "none"
attempts = 3
total-timeout = "1h"

[limits]
rounds = 5
max-tokens = 5000000
max-cost = 2
max-time = "4h"
patience = 2
unreadable = 4
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
usage = { input = "stats.in", output = "stats.out", cache-read = "stats.read", cache-write = "stats.write", reasoning = "stats.thoughts", cached-in-input = true }

[commands.Own_agent-2]
argv = ["./agent"]
net = true
hosted = false
key-env = "KEY"

[commands.Own_agent-2.usage]
input = "in"
`

func TestLoad(t *testing.T) {
	got, err := load(project(t, HonePath, everything))
	if err != nil {
		t.Fatal(err)
	}
	want := File{
		Prices: map[string]Price{"openai/gpt-5": {Input: 1.25, Output: 10, CacheWrite: 1.25}, "ollama/qwen3:8b": {}},
		Commands: map[string]Agent{
			"gemini": {
				Argv: []string{"gemini", "-m", "{model}", "-p", "{prompt}"}, Model: "gemini-2.5-pro",
				Wire: "gemini", BaseURLEnv: "GOOGLE_GEMINI_BASE_URL", KeyEnv: "GEMINI_API_KEY", BaseURL: "https://proxy.example/v1", Hosted: true,
				Set: []string{"NO_COLOR=1", "EMPTY="}, Env: []string{"LANG"}, Home: []string{"~/.gemini/settings.json"}, HomeWrite: []string{"~/.gemini/tmp"},
				Read: []string{"/opt/node"}, Write: []string{"out"}, Timeout: "30m", Exits: []int{0, 53}, Answer: "response",
				Usage: AgentUsage{Input: "stats.in", Output: "stats.out", CacheRead: "stats.read", CacheWrite: "stats.write", Reasoning: "stats.thoughts", CachedInInput: true},
			},
			"Own_agent-2": {Argv: []string{"./agent"}, Net: true, KeyEnv: "KEY", Usage: AgentUsage{Input: "in"}},
		},
		keys: map[string]any{
			"model.model": "openai/gpt-5", "model.base-url": "http://localhost:8080/v1", "model.reasoning": "high", "model.wire": "chat", "model.tools": "text", "model.context": int64(200_000),
			"model.max-output": int64(32_000), "model.idle-timeout": 90 * time.Second, "model.total-timeout": time.Hour, "model.attempts": 3, "model.advice": "none",
			"limits.rounds": 5, "limits.max-tokens": int64(5_000_000), "limits.max-cost": 2.0, "limits.max-time": 4 * time.Hour, "limits.patience": 2, "limits.unreadable": 4, "limits.keep": "best",
			"check.command": "go test ./...", "check.env": []string{"DATABASE_URL", "OPENAI_API_KEY"}, "check.timeout": 10 * time.Minute,
			"check.protect": []string{"tests/**", "Makefile"}, "check.flaky": 3, "check.prove": "strict",
			"guard.send":   []string{"testdata/**", ".env.ci"},
			"sandbox.wall": "bwrap", "sandbox.net": true, "sandbox.write": []string{"~/.cache/x", "out"}, "sandbox.read": []string{"/opt/data"}, "sandbox.hide": []string{"private"},
			"sandbox.env": []string{"DATABASE_URL"}, "sandbox.memory": int64(4 << 30), "sandbox.processes": 512,
			"undo.include": []string{".env.local", "data/*.db"}, "undo.max-file": int64(64 << 20),
			"reconcile.rounds": 3, "reconcile.approve": "none", "implement.rounds": 4, "implement.max-output": 1000, "implement.build-timeout": 90 * time.Second,
			"task.rounds": 6, "task.turns": 20, "task.max-tool-calls": 50, "task.approve": "all", "task.reviewer-model": "gemini/gemini-2.5-flash",
			"phase.builder-model": "command/gemini/gemini-2.5-pro", "phase.verifier-model": "gpt-5", "phase.rounds": 4, "phase.health-attempts": 2, "phase.turns": 60, "phase.max-tool-calls": 200,
			"phase.dev-url": "http://localhost:3000", "phase.hook-read": []string{"~/.npmrc"}, "phase.hook-env": []string{"DATABASE_URL"}, "phase.hook-net": true, "phase.hook-timeout": 5 * time.Minute,
		},
	}
	if diff := cmp.Diff(want, got, inside); diff != "" {
		t.Error(diff)
	}
}

// inside compares all of a file.
var inside = cmp.Options{cmp.AllowUnexported(File{}), cmpopts.IgnoreFields(File{}, "lines")}

// TestAgentJSON checks that an agent survives the start event of a run, from which a
// resumed run reads it, and that its keys are spelled like those of other events.
func TestAgentJSON(t *testing.T) {
	file, err := load(project(t, HonePath, everything))
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
		t.Errorf("an unset field is written: %s", text)
	}
}

func TestLoadNothing(t *testing.T) {
	for name, root := range map[string]string{
		"no file":        t.TempDir(),
		"an empty file":  project(t, HonePath, ""),
		"a comment":      project(t, HonePath, "# nothing\n"),
		"empty sections": project(t, HonePath, "[model]\n[limits]\n[prices]\n[reconcile]\n[phase]\n[commands]\n"),
	} {
		got, err := load(root)
		if err != nil || len(got.keys) > 0 || len(got.Prices) > 0 || len(got.Commands) > 0 {
			diff := cmp.Diff(File{}, got, inside)
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	const at, sections = ".config/hone.toml:", "check, commands, fix, guard, implement, improve, limits, model, notify, phase, prices, reconcile, sandbox, task, undo"
	for _, c := range []struct{ text, want string }{
		{"[modle]\nmodel = 'a/b'\n", at + "1: modle: unknown key; did you mean model?"},
		{"[nonsense]\n", at + "1: nonsense: unknown key; remove it, or use one of: " + sections},
		{"[improve]\ntarget = 'soon'\n", at + "2: improve.target: \"soon\" is not a number; write a number, such as \"100\""},
		{"[improve]\nmin-gain = '100%'\n", at + "2: improve.min-gain: \"100%\" is not a percentage; write a percentage below 100, such as \"1%\""},
		{"rounds = 5\n", at + "1: rounds: unknown key; remove it, or use one of: " + sections},
		{"max-cost = 5\n", at + "1: max-cost: unknown key; remove it, or use one of: " + sections},
		{"\n[limits]\nround = 5\n", at + "3: limits.round: unknown key; did you mean rounds?"},
		{"[limits]\nmax_token = 5\n", at + "2: limits.max_token: unknown key; did you mean max-tokens?"},
		{"[limits]\nROUNDS = 5\n", at + "2: limits.ROUNDS: unknown key; did you mean rounds?"},
		{"[limits]\nspeed = 5\n", at + "2: limits.speed: unknown key; remove it, or use one of: keep, max-cost, max-diff, max-time, max-tokens, min-free, patience, rounds, unreadable"},
		{"[limits.rounds]\nx = 5\n", at + "1: limits.rounds: it is not a whole number; write a whole number greater than 0"},
		{"model = 'openai/gpt-5'\n", at + "1: model: it is not a table; write [model], and its keys below it"},
		{"[[model]]\nmodel = 'a/b'\n", at + "1: model: it is not a table; write [model], and its keys below it"},
		{"'model.model' = 1\n", at + "1: \"model.model\": unknown key; remove it, or use one of: " + sections},
		{"limits = { rounds = 1,\n  # x\n  max-time = 3 }\n", at + "3: limits.max-time: it is not a string; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\""},
		{"limits.rounds = '5'\n", at + "1: limits.rounds: it is not a whole number; write a whole number greater than 0"},
		{"[limits]\nrounds = 0\n", at + "2: limits.rounds: 0 is too small; write a whole number greater than 0"},
		{"[limits]\nmax-tokens = -1\n", at + "2: limits.max-tokens: -1 is too small; write a whole number greater than 0"},
		{"[limits]\nmax-tokens = 1.5\n", at + "2: limits.max-tokens: it is not a whole number; write a whole number greater than 0"},
		{"[limits]\nmax-cost = 0\n", at + "2: limits.max-cost: 0 is too small; write US dollars as a number, such as 2.50"},
		{"[limits]\nmax-cost = nan\n", at + "2: limits.max-cost: NaN is not a finite number; write US dollars as a number, such as 2.50"},
		{"[limits]\nmax-cost = '2 USD'\n", at + "2: limits.max-cost: it is not a number; write US dollars as a number, such as 2.50"},
		{"[limits]\nmax-time = '4'\n", at + "2: limits.max-time: \"4\" is not a duration; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\""},
		{"[limits]\nmax-time = '-4h'\n", at + "2: limits.max-time: \"-4h\" is not greater than 0; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\""},
		{"[model]\nmodel = 'openai/'\n", at + "2: model.model: \"openai/\" is not the name of a model; write \"provider/name\", such as \"openai/gpt-5\""},
		{"[model]\nmodel = 5\n", at + "2: model.model: it is not a string; write it in double quotes"},
		{"[model]\nreasoning = 'hihg'\n", at + "2: model.reasoning: \"hihg\" is not one of the choices; write \"low\", \"medium\" or \"high\""},
		{"[model]\nreasoning = 3\n", at + "2: model.reasoning: it is not a string; write \"low\", \"medium\" or \"high\""},
		{"[model]\nwire = 'x'\n", at + "2: model.wire: \"x\" is not one of the choices; write \"responses\" or \"chat\""},
		{"[model]\nbase-url = 'localhost:8080'\n", at + "2: model.base-url: it is not an http or https URL; write one, such as \"http://localhost:11434/v1\""},
		{"[model]\nbase-url = 'http://me:secret@host/'\n", at + "2: model.base-url: the URL contains a user name, a password or a query; remove it, and set the key variable of the provider, or the variable of its address"},
		{"[model]\nbase-url = 'http://host/?key=secret'\n", at + "2: model.base-url: the URL contains a user name, a password or a query; remove it, and set the key variable of the provider, or the variable of its address"},
		{"[check]\ncommand = ' '\n", at + "2: check.command: an empty string is not allowed; write some text, or remove it"},
		{"[check]\nenv = 'A'\n", at + "2: check.env: it is not a list of strings; write a list, such as env = [\"DATABASE_URL\"]"},
		{"[check]\nenv = ['A=secret']\n", at + "2: check.env: it is not only the name of a variable; write names without values, such as \"DATABASE_URL\""},
		{"[limits]\npatience = 0\n", at + "2: limits.patience: 0 is too small; write a whole number greater than 0"},
		{"[limits]\npatience = 'long'\n", at + "2: limits.patience: it is not a whole number; write a whole number greater than 0"},
		{"[limits]\nkeep = 'first'\n", at + "2: limits.keep: \"first\" is not one of the choices; write \"best\" or \"last\""},
		{"[check]\nprotect = 'tests/**'\n", at + "2: check.protect: it is not a list of strings; write a list, such as protect = [\"docs/**\"]"},
		{"[check]\nprotect = ['../tests']\n", at + "2: check.protect: \"../tests\" contains \"..\"; write it relative to the root, such as \"docs/**\""},
		{"[check]\nprotect = ['a{b']\n", at + "2: check.protect: \"a{b\" is not a valid glob; close its brackets and braces, or write \\[ and \\{ for the characters themselves"},
		{"[check]\nprotect = ['a',\n'!src/*']\n", at + "2: check.protect: \"!src/*\" would match nothing: globs have no ! before them, no blank at an end, no [:class:] and no ***; write it without; \\! and [ ] stand for the characters themselves"},
		{"[check]\nprotect = [' src/*']\n", at + "2: check.protect: \" src/*\" would match nothing: "},
		{"[check]\nprotect = ['[[:alpha:]]x']\n", at + "2: check.protect: \"[[:alpha:]]x\" would match nothing: "},
		{"[guard]\nonly = ['src/***']\n", at + "2: guard.only: \"src/***\" would match nothing: "},
		{"[check]\nflaky = 1.5\n", at + "2: check.flaky: it is not a whole number; write 0 or a greater whole number"},
		{"[check]\nflaky = -2\n", at + "2: check.flaky: -2 is too small; write 0 or a greater whole number"},
		{"[check]\nprove = true\n", at + "2: check.prove: it is not a string; write \"on\", \"off\" or \"strict\""},
		{"[check]\nprove = 'yes'\n", at + "2: check.prove: \"yes\" is not one of the choices; write \"on\", \"off\" or \"strict\""},
		{"[undo]\ninclude = true\n", at + "2: undo.include: it is not a list of strings; write a list, such as include = [\"docs/**\"]"},
		{"[undo]\ninclude = ['/etc/*']\n", at + "2: undo.include: \"/etc/*\" is an absolute path; write it relative to the root, such as \"docs/**\""},
		{"[undo]\nmax-file = -1\n", at + "2: undo.max-file: it is not a size; write a number of bytes, or a number with its unit, such as \"4GB\""},
		{"[undo]\nmax-files = 1\n", at + "2: undo.max-files: unknown key; did you mean max-file?"},
		{"[guard]\nsend = [1]\n", at + "2: guard.send: it is not a list of strings; write a list, such as send = [\"docs/**\"]"},
		{"[guard]\nsend = ['a[']\n", at + "2: guard.send: \"a[\" is not a valid glob; close its brackets and braces, or write \\[ and \\{ for the characters themselves"},
		{"[guard]\nsend = ['/etc/*']\n", at + "2: guard.send: \"/etc/*\" is an absolute path; write it relative to the root, such as \"docs/**\""},
		{"[prices]\ngpt-5 = 3\n", at + "2: prices.gpt-5: it is not a table; write [prices.gpt-5], and its keys below it"},
		{"[prices.gpt-5]\ninput = 3\n", at + "1: prices.gpt-5: \"gpt-5\" is not the name of a model; write \"provider/name\", such as \"openai/gpt-5\""},
		{"[prices.'a/b']\ninput = -3\n", at + "2: prices.\"a/b\".input: -3 is too small; write US dollars as a number, such as 2.50"},
		{"[prices.'a/b']\ninput = 3\n", at + "1: prices.\"a/b\": the key \"output\" is missing; write output = 0 if it costs nothing"},
		{"[prices.'a/b']\n", at + "1: prices.\"a/b\": the key \"input\" is missing; write input = 0 if it costs nothing"},
		{"[prices.'a/b']\ninputs = 3\n", at + "2: prices.\"a/b\".inputs: unknown key; did you mean input?"},
		{"[reconcile]\napprove = true\n", at + "2: reconcile.approve: it is not a string; write \"ask\", \"none\" or \"all\""},
		{"[sandbox]\nwall = 'bubblewrap'\n", at + "2: sandbox.wall: \"bubblewrap\" is not one of the choices; write \"auto\", \"hidden\", \"bwrap\", \"landlock\", \"firejail\" or \"none\""},
		{"[sandbox]\nnet = 'yes'\n", at + "2: sandbox.net: it is not a boolean; write true or false, without quotes"},
		{"[sandbox]\nread = '/opt'\n", at + "2: sandbox.read: it is not a list of strings; write a list, such as read = [\"/opt/data\"]"},
		{"[sandbox]\nwrite = ['']\n", at + "2: sandbox.write: an empty string is not allowed; write some text, or remove it"},
		{"[sandbox]\nhide = [\"a\\u0000b\"]\n", at + "2: sandbox.hide: it contains a NUL character; remove it"},
		{"[sandbox]\nread = ['~bob/x']\n", at + "2: sandbox.read: \"~bob/x\" is not a path that hone expands; write the absolute path, or ./ before a file name with ~"},
		{"[sandbox]\nenv = ['A=b']\n", at + "2: sandbox.env: it is not only the name of a variable; write names without values, such as \"DATABASE_URL\""},
		{"[sandbox]\nmemory = '4 elephants'\n", at + "2: sandbox.memory: it is not a size; write a number of bytes, or a number with its unit, such as \"4GB\""},
		{"[sandbox]\nmemory = 0\n", at + "2: sandbox.memory: it is not a size; write a number of bytes, or a number with its unit, such as \"4GB\""},
		{"[sandbox]\nmemory = '0'\n", at + "2: sandbox.memory: it is not a size; write a number of bytes, or a number with its unit, such as \"4GB\""},
		{"[sandbox]\nmemory = 1.5\n", at + "2: sandbox.memory: it is not a size; write a number of bytes, or a number with its unit, such as \"4GB\""},
		{"[sandbox]\nprocesses = 0\n", at + "2: sandbox.processes: 0 is too small; write a whole number greater than 0"},
		{"\n[sandbox]\nwal = 'auto'\n", at + "3: sandbox.wal: unknown key; did you mean wall?"},
		{"[limits]\nrounds = 5\nrounds = 6\n", at + "3: rounds: key rounds is already defined; write TOML: sections in brackets, and lines such as rounds = 5"},
		{"[check]\nenv = [{}]\n", at + "2: check.env: it is not a list of strings; write a list, such as env = [\"DATABASE_URL\"]"},
		{"[check]\nenv = [\n'A',\n1]\n", at + "2: check.env: it is not a list of strings; write a list, such as env = [\"DATABASE_URL\"]"},
		{"[check]\nenv.a = 1\n", at + "2: check.env: it is not a list of strings; write a list, such as env = [\"DATABASE_URL\"]"},
		{"[check]\ntimeout = 5\n", at + "2: check.timeout: it is not a string; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\""},
		{"[check]\ntimeout = ''\n", at + "2: check.timeout: \"\" is not a duration; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\""},
		{"[sandbox]\nmemory = true\n", at + "2: sandbox.memory: it is not a size; write a number of bytes, or a number with its unit, such as \"4GB\""},
		{"limits = [{rounds = 5}]\n", at + "1: limits: it is not a table; write [limits], and its keys below it"},
		{"[limits]\nmax-tokens = 99999999999999999999\n", at + "2: "},
		{"[limits\n", at + "1: "},
		{"[limits]\nrounds =\n", at + "2: "},
		{"[model]\nmodel = 'a\xff/b'\n", at + "2: it is not UTF-8; save it as UTF-8"},
		{"\xef\xbb\xbf[model]\n", at + "1: it begins with a byte order mark; save it as UTF-8 without one"},
	} {
		_, err := load(project(t, HonePath, c.text))
		checkError(t, c.text, err, c.want)
	}
}

// TestSpellings checks that keys may have dashes or underscores.
func TestSpellings(t *testing.T) {
	want, err := load(project(t, HonePath, everything))
	if err != nil {
		t.Fatal(err)
	}
	key := regexp.MustCompile(`(?m)^[a-z_-]+ =|[{,] [a-z_-]+ =`)
	for name, swap := range map[string]*strings.Replacer{"underscores": strings.NewReplacer("-", "_"), "dashes": strings.NewReplacer("_", "-")} {
		text := key.ReplaceAllStringFunc(everything, swap.Replace)
		if text == everything {
			t.Fatalf("%s: nothing is spelled otherwise", name)
		}
		got, err := load(project(t, HonePath, text))
		if diff := cmp.Diff(want, got, inside); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestSpelledTwice(t *testing.T) {
	const at = ".config/hone.toml:"
	const toml = "; write TOML: sections in brackets, and lines such as rounds = 5"
	for _, c := range []struct{ text, want string }{
		{"[limits]\nmax-tokens = 5\nmax_tokens = 5\n", at + "2: limits.max_tokens: it is there twice, with a dash and with an underscore; keep one of the two"},
		{"[limits]\nmax_tokens = 5\n\nmax-tokens = 5\n", at + "2: limits.max_tokens: it is there twice, with a dash and with an underscore; keep one of the two"},
		{"[phase]\nhook-net = true\nhook_net = false\n", at + "2: phase.hook_net: it is there twice, with a dash and with an underscore; keep one of the two"},
		{"[phase]\nhook-time_out = '1s'\n", at + "2: phase.hook-time_out: unknown key; did you mean hook-timeout?"},
		{"[prices.'a/b']\ncache-read = 1\ncache_read = 1\n", at + "2: prices.\"a/b\".cache_read: it is there twice, with a dash and with an underscore; keep one of the two"},
		{"[commands.a]\nusage.cache_read = 'a'\n[commands.a.usage]\ncache-read = 'a'\n", at + "3: commands.a.usage: table usage already exists as defined by a dotted key" + toml},
	} {
		_, err := load(project(t, HonePath, c.text))
		checkError(t, c.text, err, c.want)
	}
	got, err := load(project(t, HonePath, "[prices]\n'a/b-c' = { input = 1, output = 2 }\n'a/b_c' = { input = 3, output = 4 }\n[commands]\na-b.argv = ['x']\na_b.argv = ['y']\n"))
	if err != nil || got.Prices["a/b-c"].Input != 1 || got.Prices["a/b_c"].Input != 3 || got.Commands["a-b"].Argv[0] != "x" || got.Commands["a_b"].Argv[0] != "y" {
		t.Errorf("names that differ in a dash: %+v, %v", got, err)
	}
}

// TestNone checks that a file can state that there is no limit.
func TestNone(t *testing.T) {
	got, err := load(project(t, HonePath, "[check]\nflaky = 0\nprotect = []\n[limits]\nmin-free = 0\n[undo]\nmax-file = 0\ninclude = []\n"))
	want := map[string]any{"check.flaky": 0, "check.protect": []string{}, "limits.min-free": int64(0), "undo.max-file": int64(0), "undo.include": []string{}}
	if diff := cmp.Diff(want, got.keys); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for text, want := range map[string]int64{"5000000000": 5_000_000_000, "'1GB'": 1 << 30} {
		got, err := load(project(t, HonePath, "[undo]\nmax_file = "+text+"\n"))
		if err != nil || MaxFile.In(got.Shared()) != want {
			t.Errorf("%s: %v, %v", text, got.keys, err)
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
