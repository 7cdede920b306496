package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandErrors(t *testing.T) {
	const at = ".config/hone.toml:"
	const name = "; use at most 60 letters, digits, - and _"
	const missing = `: it names no program; write the program and its arguments, such as argv = ["gemini", "-p", "{prompt}"]`
	for _, c := range []struct{ text, want string }{
		{"commands = 1\n", at + "1: commands: it is not a table; write [commands.NAME], and its keys below it"},
		{"[commands]\nargv = ['a']\n", at + "2: commands.argv: it is not a table; write [commands.argv], and its keys below it"},
		{"[[commands.a]]\nargv = ['a']\n", at + "1: commands.a: it is not a table; write [commands.a], and its keys below it"},
		{"[comands.a]\nargv = ['a']\n", at + "1: comands: unknown key; did you mean commands?"},
		{"\n[commands.'a b']\nargv = ['a']\n", at + "2: commands.\"a b\": \"a b\" is not a valid name" + name},
		{"[commands.'a/b']\n", at + "1: commands.\"a/b\": \"a/b\" is not a valid name" + name},
		{"[commands.'']\n", at + "1: commands.\"\": an empty string is not allowed; write some text, or remove it"},
		{"[commands.\"a\\u0000\"]\n", at + "1: commands.\"a\\x00\": it contains a NUL character; remove it"},
		{"[commands]\n[commands.a]\n", at + "2: commands.a" + missing},
		{"\n[commands.a]\n\nmodel = 'b'\n", at + "2: commands.a" + missing},
		{"[commands.b]\nargv = ['b']\n[commands.a.usage]\n", at + "3: commands.a" + missing},
	} {
		_, err := load(project(t, HonePath, c.text))
		checkError(t, c.text, err, c.want)
	}
}

// TestAgentErrors adds one or more lines below the argv of an agent.
func TestAgentErrors(t *testing.T) {
	const statuses = "; write such numbers, as in exits = [0, 1]"
	const setting = `; write NAME=value, such as "NO_COLOR=1"`
	const home = `; write a path that begins with ~/, such as "~/.gemini/settings.json"`
	const names = `; write names without values, such as "DATABASE_URL"`
	for lines, want := range map[string]string{
		"agrv = []":            "3: commands.a.agrv: unknown key; did you mean argv?",
		"wires = 'gemini'":     "3: commands.a.wires: unknown key; did you mean wire?",
		"nonsense = 1":         "3: commands.a.nonsense: unknown key; remove it, or use one of: answer, argv, base-url, base-url-env, env, exits, home, home-write, hosted, key-env, model, net, read, set, timeout, usage, wire, write",
		"'usage.input' = 'a'":  "3: commands.a.\"usage.input\": unknown key; remove it, or use one of: answer, argv, base-url, base-url-env, env, exits, home, home-write, hosted, key-env, model, net, read, set, timeout, usage, wire, write",
		"model = ''":           "3: commands.a.model: an empty string is not allowed; write some text, or remove it",
		"wire = 'responses'":   "3: commands.a.wire: \"responses\" is not one of the choices; write \"gemini\", \"anthropic\" or \"openai\"",
		"base-url-env = 'A=b'": "3: commands.a.base-url-env: it is not only the name of a variable" + names,
		"key-env = ['A']":      "3: commands.a.key-env: it is not a string; write it in double quotes",
		"base-url = 'ftp://a'": "3: commands.a.base-url: it is not an http or https URL; write one, such as \"http://localhost:11434/v1\"",
		"env = ['A B']":        "3: commands.a.env: it is not only the name of a variable" + names,
		"net = 1":              "3: commands.a.net: it is not a boolean; write true or false, without quotes",
		"hosted = 'yes'":       "3: commands.a.hosted: it is not a boolean; write true or false, without quotes",
		"timeout = '0s'":       "3: commands.a.timeout: \"0s\" is not greater than 0; write a number with its unit, such as \"90s\", \"10m\" or \"1h30m\"",
		"answer = ''":          "3: commands.a.answer: an empty string is not allowed; write some text, or remove it",
		"read = ['~bob']":      "3: commands.a.read: \"~bob\" is not a path that hone expands; write the absolute path, or ./ before a file name with ~",
		"write = '/tmp'":       "3: commands.a.write: it is not a list of strings; write a list, such as write = [\"/opt/data\"]",

		"set = ['secret']":     "3: commands.a.set: it is not the name of a variable, = and a value" + setting,
		"set = ['A B=secret']": "3: commands.a.set: it is not the name of a variable, = and a value" + setting,
		"set = ['=secret']":    "3: commands.a.set: it is not the name of a variable, = and a value" + setting,
		`set = ["A=b\u0000"]`:  "3: commands.a.set: it contains a NUL character; remove it",

		"home = ['/etc']":          "3: commands.a.home: \"/etc\" is not in the home directory" + home,
		"home = ['.gemini']":       "3: commands.a.home: \".gemini\" is not in the home directory" + home,
		"home-write = ['~']":       "3: commands.a.home-write: \"~\" is not in the home directory" + home,
		"home = ['~/']":            "3: commands.a.home: \"~/\" is not in the home directory" + home,
		"home = ['~/a/..']":        "3: commands.a.home: \"~/a/..\" is not in the home directory" + home,
		"home-write = ['~/../b']":  "3: commands.a.home-write: \"~/../b\" is not in the home directory" + home,
		"home = ['~//etc/passwd']": "3: commands.a.home: \"~//etc/passwd\" is not in the home directory" + home,

		"exits = 0":      "3: commands.a.exits: it is not a list of whole numbers; write a list, such as exits = [0, 1]",
		"exits = ['0']":  "3: commands.a.exits: it is not a list of whole numbers; write a list, such as exits = [0, 1]",
		"exits = [256]":  "3: commands.a.exits: an exit status is from 0 to 255" + statuses,
		"exits = [0,-1]": "3: commands.a.exits: an exit status is from 0 to 255" + statuses,

		"usage = 'a'":                               "3: commands.a.usage: it is not a table; write [commands.a.usage], and its keys below it",
		"usage = { inputs = 'a' }":                  "3: commands.a.usage.inputs: unknown key; did you mean input?",
		"usage = { nonsense = 'a' }":                "3: commands.a.usage.nonsense: unknown key; remove it, or use one of: cache-read, cache-write, cached-in-input, input, output, reasoning",
		"usage = {\n  input = 'a',\n  output = 1 }": "5: commands.a.usage.output: it is not a string; write it in double quotes",
		"[commands.a.usage.input]\nb = 1":           "3: commands.a.usage.input: it is not a string; write it in double quotes",

		"\nbase-url-env = 'A'":                            "4: commands.a.base-url-env: it has no effect without wire; write the protocol of the agent next to it: wire = \"gemini\", \"anthropic\" or \"openai\"",
		"\nwire = 'openai'":                               "4: commands.a.wire: it has no effect without base-url-env; write the variable that tells the agent the address of its provider, or remove this line",
		"net = true\nwire = 'openai'\nbase_url_env = 'A'": "3: commands.a.net: an agent with a forwarder cannot have the network; remove it, or remove base-url-env, wire, base-url and hosted",
	} {
		_, err := load(project(t, HonePath, "[commands.a]\nargv = ['a']\n"+lines+"\n"))
		checkError(t, lines, err, ".config/hone.toml:"+want)
	}
}

func TestArgv(t *testing.T) {
	const example = `argv = ["gemini", "-p", "{prompt}"]`
	for value, want := range map[string]string{
		"'a b'":           "it is not a list of strings; write a list, such as argv = [\"gemini\"]",
		"['a', 1]":        "it is not a list of strings; write a list, such as argv = [\"gemini\"]",
		"[]":              "it names no program; write the program and its arguments, such as " + example,
		"[' ', 'a']":      "it names no program; write the program and its arguments, such as " + example,
		"['a', '']":       "an empty string is not allowed; write some text, or remove it",
		`["a", "\u0000"]`: "it contains a NUL character; remove it",
	} {
		_, err := load(project(t, HonePath, "[commands.a]\nargv = "+value+"\n"))
		checkError(t, value, err, ".config/hone.toml:2: commands.a.argv: "+want)
	}
}

// TestAgents leaves out the keys that an agent does not need.
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
		got, err := load(project(t, HonePath, "[commands.a]\nargv = ['a', '{model}', ' ', \"b\\nc\"]\n"+lines+"\n"))
		if diff := cmp.Diff(map[string]Agent{"a": want}, got.Commands); err != nil || diff != "" {
			t.Errorf("%q: %v %s", lines, err, diff)
		}
	}
}
