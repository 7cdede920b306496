package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandErrors(t *testing.T) {
	const at = ".config/hone.toml:"
	const section = `; write [commands.NAME], and below it argv, such as argv = ["gemini", "-p", "{prompt}"]`
	const name = "; write letters, digits, - and _, as in [commands.gemini]"
	const missing = `: the key "argv" is missing; write the program and its arguments, such as argv = ["gemini", "-p", "{prompt}"]`
	for _, c := range []struct{ text, want string }{
		{"commands = 1\n", at + "1: commands: it is not a section of one command-line agent" + section},
		{"[commands]\nargv = ['a']\n", at + "2: commands.argv: it is not a section of one command-line agent" + section},
		{"[[commands.a]]\nargv = ['a']\n", at + "1: commands.a: it is not a section of one command-line agent" + section},
		{"[comands.a]\nargv = ['a']\n", at + "1: comands: there is no such section; did you mean commands?"},
		{"\n[commands.'a b']\nargv = ['a']\n", at + "2: commands.\"a b\": \"a b\" is no name for an agent" + name},
		{"[commands.'a/b']\n", at + "1: commands.\"a/b\": \"a/b\" is no name for an agent" + name},
		{"[commands.'']\n", at + "1: commands.\"\": \"\" is no name for an agent" + name},
		{"[commands.\"a\\u0000\"]\n", at + "1: commands.\"a\\x00\": \"a\\x00\" is no name for an agent" + name},
		{"[commands]\n[commands.a]\n", at + "2: commands.a" + missing},
		{"\n[commands.a]\n\nmodel = 'b'\n", at + "2: commands.a" + missing},
		{"[commands.b]\nargv = ['b']\n[commands.a.usage]\n", at + "3: commands.a" + missing},
	} {
		_, err := Load(project(t, HonePath, c.text))
		checkError(t, c.text, err, c.want)
	}
}

// TestAgentErrors has one agent with a line, or more than one, below its argv.
func TestAgentErrors(t *testing.T) {
	const statuses = "; write numbers from 0 to 255, such as exits = [0, 1]"
	const setting = `; write NAME=value, such as "NO_COLOR=1"`
	const home = `; write it with ~/ before it, such as "~/.gemini/settings.json"`
	const names = `; write names without values, such as "DATABASE_URL"`
	for lines, want := range map[string]string{
		"agrv = []":            "3: commands.a.agrv: there is no such key; did you mean argv?",
		"wires = 'gemini'":     "3: commands.a.wires: there is no such key; did you mean wire?",
		"nonsense = 1":         "3: commands.a.nonsense: there is no such key; remove it, or write one of: answer, argv, base-url, base-url-env, env, exits, home, home-write, hosted, key-env, model, net, read, set, stdin, timeout, usage, wire, write",
		"'usage.input' = 'a'":  "3: commands.a.\"usage.input\": there is no such key; remove it, or write one of: answer, argv, base-url, base-url-env, env, exits, home, home-write, hosted, key-env, model, net, read, set, stdin, timeout, usage, wire, write",
		"model = ''":           "3: commands.a.model: it is empty; write it in one line, or remove it",
		"stdin = 'prompt'":     "3: commands.a.stdin: there is no \"prompt\"; write \"context\", \"all\" or \"none\"",
		"wire = 'responses'":   "3: commands.a.wire: there is no \"responses\"; write \"gemini\", \"anthropic\" or \"openai\"",
		"base-url-env = 'A=b'": "3: commands.a.base-url-env: \"A\" is not the name of a variable alone" + names,
		"key-env = ['A']":      "3: commands.a.key-env: it is not a string; write it in double quotes",
		"base-url = 'ftp://a'": "3: commands.a.base-url: it is not an http address; write one, such as \"http://localhost:11434/v1\"",
		"env = ['A B']":        "3: commands.a.env: \"A B\" is not the name of a variable alone" + names,
		"net = 1":              "3: commands.a.net: it is neither true nor false; write true or false, without quotes",
		"hosted = 'yes'":       "3: commands.a.hosted: it is neither true nor false; write true or false, without quotes",
		"timeout = '0s'":       "3: commands.a.timeout: \"0s\" is not longer than nothing; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\"",
		"answer = ''":          "3: commands.a.answer: it is empty; write it in one line, or remove it",
		"read = ['~bob']":      "3: commands.a.read: \"~bob\": only ~ and ~/ mean a home; write the path whole, or ./ before it",
		"write = '/tmp'":       "3: commands.a.write: it is not a list; write a list of strings, such as write = [\"/var/tmp/agent\"]",

		"set = ['secret']":     "3: commands.a.set: there is a text without \"=\" in the list" + setting,
		"set = ['A B=secret']": "3: commands.a.set: \"A B\" is not the name of a variable" + setting,
		"set = ['=secret']":    "3: commands.a.set: \"\" is not the name of a variable" + setting,
		`set = ["A=b\u0000"]`:  "3: commands.a.set: there is a NUL in the value of \"A\"; remove it",

		"home = ['/etc']":          "3: commands.a.home: \"/etc\" is not below the home" + home,
		"home = ['.gemini']":       "3: commands.a.home: \".gemini\" is not below the home" + home,
		"home-write = ['~']":       "3: commands.a.home-write: \"~\" is not below the home" + home,
		"home = ['~/']":            "3: commands.a.home: \"~/\" is the whole home; name the files and folders in it that the agent needs",
		"home = ['~/a/..']":        "3: commands.a.home: \"~/a/..\" is the whole home; name the files and folders in it that the agent needs",
		"home-write = ['~/../b']":  "3: commands.a.home-write: \"~/../b\" leads out of the home" + home,
		"home = ['~//etc/passwd']": "3: commands.a.home: \"~//etc/passwd\" leads out of the home" + home,

		"exits = 0":      "3: commands.a.exits: it is not a list" + statuses,
		"exits = []":     "3: commands.a.exits: there is no exit status in it" + statuses + ", or remove the line",
		"exits = ['0']":  "3: commands.a.exits: there is something else than a whole number in the list" + statuses,
		"exits = [256]":  "3: commands.a.exits: 256 is not an exit status" + statuses,
		"exits = [0,-1]": "3: commands.a.exits: -1 is not an exit status" + statuses,

		"usage = 'a'":                               "3: commands.a.usage: it is not a table; write one, such as usage = { input = \"usage.input_tokens\" }",
		"usage = { inputs = 'a' }":                  "3: commands.a.usage.inputs: there is no such key; did you mean input?",
		"usage = { nonsense = 'a' }":                "3: commands.a.usage.nonsense: there is no such key; remove it, or write one of: cache-read, cache-write, cached-in-input, each, input, output, reasoning",
		"usage = {\n  input = 'a',\n  output = 1 }": "5: commands.a.usage.output: it is not a string; write it in double quotes",
		"[commands.a.usage]\neach = 1":              "4: commands.a.usage.each: it is neither true nor false; write true or false, without quotes",
		"[commands.a.usage.input]\nb = 1":           "4: commands.a.usage.input.b: there is no such key; did you mean input?",

		"\nbase-url-env = 'A'":                            "4: commands.a.base-url-env: it means nothing without wire; write beside it which protocol the agent speaks: wire = \"gemini\", \"anthropic\" or \"openai\"",
		"\nwire = 'openai'":                               "4: commands.a.wire: it means nothing without base-url-env; write the variable that tells the agent where its provider is, or remove this line",
		"base-url = 'http://a'":                           "3: commands.a.base-url: it means nothing without base-url-env; write the variable that tells the agent where its provider is, or remove this line",
		"net = true\nhosted = true":                       "4: commands.a.hosted: it means nothing without base-url-env; write the variable that tells the agent where its provider is, or remove this line",
		"net = true\nwire = 'openai'\nbase_url_env = 'A'": "3: commands.a.net: an agent with a forwarder has no other network; remove it, or remove base-url-env and what belongs to it",

		"key-env = 'A'\nenv = ['B', 'A']":                    "4: commands.a.env: \"A\" stands in key-env already; keep one of the two",
		"env = ['A']\nset = ['A=b']":                         "3: commands.a.env: \"A\" stands in set already; keep one of the two",
		"set = ['A=b', 'A=c']":                               "3: commands.a.set: \"A\" stands in set already; keep one of the two",
		"wire = 'openai'\nbase-url-env = 'A'\nkey-env = 'A'": "5: commands.a.key-env: \"A\" stands in base-url-env already; keep one of the two",
	} {
		_, err := Load(project(t, HonePath, "[commands.a]\nargv = ['a']\n"+lines+"\n"))
		checkError(t, lines, err, ".config/hone.toml:"+want)
	}
}

func TestArgv(t *testing.T) {
	const example = `argv = ["gemini", "-p", "{prompt}"]`
	for value, want := range map[string]string{
		"'a b'":           "it is not a list; write a list of strings, such as " + example,
		"['a', 1]":        "there is something else than a string in the list; write a list of strings, such as " + example,
		"[]":              "it names no program; write one, and its arguments, such as " + example,
		"[' ', 'a']":      "it names no program; write one, and its arguments, such as " + example,
		"['a', '']":       "there is an empty text in the list; remove it",
		`["a", "\u0000"]`: "there is a NUL in the list; remove it",
	} {
		_, err := Load(project(t, HonePath, "[commands.a]\nargv = "+value+"\n"))
		checkError(t, value, err, ".config/hone.toml:2: commands.a.argv: "+want)
	}
}

// TestAgents has agents that lack what an agent may lack.
func TestAgents(t *testing.T) {
	for lines, want := range map[string]Agent{
		"":                              {},
		"usage = {}":                    {},
		"hosted = false\nnet = false":   {},
		"net = true\nenv = ['A']":       {Net: true, Env: []string{"A"}},
		"key-env = 'A'":                 {KeyEnv: "A"},
		"home-write = []":               {HomeWrite: []string{}},
		"home = ['~/a/../.b', '~/..c']": {Home: []string{"~/a/../.b", "~/..c"}},
		"exits = [255, 0]":              {Exits: []int{255, 0}},
		"base-url-env = 'A'\nwire = 'anthropic'\nnet = false": {BaseURLEnv: "A", Wire: "anthropic"},
	} {
		want.Argv = []string{"a", "{model}", " ", "b\nc"}
		got, err := Load(project(t, HonePath, "[commands.a]\nargv = ['a', '{model}', ' ', \"b\\nc\"]\n"+lines+"\n"))
		if diff := cmp.Diff(map[string]Agent{"a": want}, got.Commands); err != nil || diff != "" {
			t.Errorf("%q: %v %s", lines, err, diff)
		}
	}
}
