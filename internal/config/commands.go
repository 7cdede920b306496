package config

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Agent is one [commands.NAME] section: a command-line agent that takes a role
// (ruling A8). It either has a forwarder, an address inside its wall that hone
// answers with the provider's replies, or the network, or neither where it
// asks nobody; never both.
type Agent struct {
	// Argv is the program and its arguments, never empty. {model}, {prompt} and
	// {context} stand for what a session gives it; no shell reads it.
	Argv []string `json:"argv"`
	// Model is the model where "command/NAME" names none; empty where nothing is said.
	Model string `json:"model,omitempty"`
	// Stdin is what its standard input has: "context", "all" or "none"; empty
	// where nothing is said.
	Stdin string `json:"stdin,omitempty"`

	// Wire is the forwarder's protocol: "gemini", "anthropic" or "openai". It is
	// empty exactly where BaseURLEnv is: there is no forwarder then.
	Wire string `json:"wire,omitempty"`
	// BaseURLEnv is the variable that has the forwarder's address.
	BaseURLEnv string `json:"base_url_env,omitempty"`
	// BaseURL is where the forwarder sends calls, http or https; empty for the
	// provider's own endpoint.
	BaseURL string `json:"base_url,omitempty"`
	// Hosted lets the provider's own tools, such as web search, pass the forwarder.
	Hosted bool `json:"hosted,omitempty"`

	KeyEnv string   `json:"key_env,omitempty"` // the variable that has a dummy key; empty for none
	Set    []string `json:"set,omitempty"`     // more variables, "NAME=value"; nil for none
	// Env are names of variables passed on from the person's environment, be
	// they keys; nil for none.
	Env []string `json:"env,omitempty"`

	// Home and HomeWrite are files and folders of the person's home, each
	// beginning with "~/", that stand at the same place below the agent's own
	// home: to be read, and to be written too. Nil means none.
	Home      []string `json:"home,omitempty"`
	HomeWrite []string `json:"home_write,omitempty"`
	// Read and Write are what else it may read, and change; paths as in
	// [Sandbox]. Nil means nothing.
	Read  []string `json:"read,omitempty"`
	Write []string `json:"write,omitempty"`
	// Net gives it the whole network.
	Net bool `json:"net,omitempty"`

	Timeout time.Duration `json:"timeout_ns,omitempty"` // for one session; 0 where nothing is said
	Exits   []int         `json:"exits,omitempty"`      // exit statuses of a normal end, 0 to 255; nil where nothing is said
	Answer  string        `json:"answer,omitempty"`     // where in its JSON output its answer stands; empty where all output is the answer
	Usage   AgentUsage    `json:"usage,omitzero"`       // zero where its output does not tell
}

// AgentUsage is the table [commands.NAME.usage]: where in an agent's JSON output
// its counts of tokens stand. An empty path means that there is no such count.
type AgentUsage struct {
	Input      string `json:"input,omitempty"`
	Output     string `json:"output,omitempty"`
	CacheRead  string `json:"cache_read,omitempty"`
	CacheWrite string `json:"cache_write,omitempty"`
	Reasoning  string `json:"reasoning,omitempty"`

	CachedInInput bool `json:"cached_in_input,omitempty"` // the count at Input has the cached tokens in it
	Each          bool `json:"each,omitempty"`            // every document that the agent prints has counts of its own, to be added up
}

// commandList is what was read of the agents.
type commandList map[string]*draft

// draft is one agent, and which of its settings stand where.
type draft struct {
	Agent
	section leaf
	at      map[string]leaf
}

func (d *draft) keys() map[string]setter {
	return map[string]setter{
		"argv":         argv(&d.Argv),
		"model":        text(&d.Model, badLine),
		"stdin":        choice(&d.Stdin, "context", "all", "none"),
		"wire":         choice(&d.Wire, "gemini", "anthropic", "openai"),
		"base-url-env": text(&d.BaseURLEnv, badVariable),
		"key-env":      text(&d.KeyEnv, badVariable),
		"base-url":     text(&d.BaseURL, badURL),
		"set":          list(&d.Set, badSetting, `set = ["NO_COLOR=1"]`),
		"env":          list(&d.Env, badVariable, `env = ["DATABASE_URL"]`),
		"home":         list(&d.Home, badHome, `home = ["~/.gemini/settings.json"]`),
		"home-write":   list(&d.HomeWrite, badHome, `home-write = ["~/.gemini/tmp"]`),
		"read":         list(&d.Read, badPath, `read = ["/opt/node"]`),
		"write":        list(&d.Write, badPath, `write = ["/var/tmp/agent"]`),
		"net":          truth(&d.Net),
		"hosted":       truth(&d.Hosted),
		"timeout":      span(&d.Timeout),
		"exits":        statuses(&d.Exits),
		"answer":       text(&d.Answer, badLine),

		"usage.input":           text(&d.Usage.Input, badLine),
		"usage.output":          text(&d.Usage.Output, badLine),
		"usage.cache-read":      text(&d.Usage.CacheRead, badLine),
		"usage.cache-write":     text(&d.Usage.CacheWrite, badLine),
		"usage.reasoning":       text(&d.Usage.Reasoning, badLine),
		"usage.cached-in-input": truth(&d.Usage.CachedInInput),
		"usage.each":            truth(&d.Usage.Each),
	}
}

// take takes in one leaf below commands.
func (cs commandList) take(l leaf) error {
	if len(l.path) == 1 && l.empty() {
		return nil
	}
	if len(l.path) == 1 || len(l.path) == 2 && !l.empty() {
		return l.wrong("it is not a section of one command-line agent", `write [commands.NAME], and below it argv, such as argv = ["gemini", "-p", "{prompt}"]`)
	}
	name := l.path[1]
	if !bare.MatchString(name) {
		return l.upTo(2).wrong(fmt.Sprintf("%q is no name for an agent", name), "write letters, digits, - and _, as in [commands.gemini]")
	}
	d := cs[name]
	if d == nil {
		d = &draft{section: l.upTo(2), at: map[string]leaf{}}
		cs[name] = d
	}
	if len(l.path) == 2 {
		return nil
	}
	return d.take(l)
}

// take takes in one leaf of an agent.
func (d *draft) take(l leaf) error {
	keys := d.keys()
	if key, set, ok := find(keys, l.path[2:]); ok {
		d.at[key] = l
		return set(l)
	}
	top, usage := map[string]bool{}, map[string]bool{}
	for key := range keys {
		first, rest, nested := strings.Cut(key, ".")
		top[first] = true
		if nested {
			usage[rest] = true
		}
	}
	switch {
	case l.path[2] != "usage":
		return l.wrong("there is no such key", unknownHint(l.path[2], sorted(top)))
	case len(l.path) > 3:
		return l.wrong("there is no such key", unknownHint(l.path[3], sorted(usage)))
	case !l.empty():
		return l.wrong("it is not a table", `write one, such as usage = { input = "usage.input_tokens" }`)
	}
	return nil
}

// complete is the finished list, nil where there is none.
func (cs commandList) complete() (map[string]Agent, error) {
	if len(cs) == 0 {
		return nil, nil
	}
	agents := make(map[string]Agent, len(cs))
	for _, name := range sorted(cs) {
		if err := cs[name].check(); err != nil {
			return nil, err
		}
		agents[name] = cs[name].Agent
	}
	return agents, nil
}

// check holds an agent's settings against each other.
func (d *draft) check() error {
	if len(d.Argv) == 0 {
		return d.section.wrong(`the key "argv" is missing`, `write the program and its arguments, such as argv = ["gemini", "-p", "{prompt}"]`)
	}
	const forwarder = "write the variable that tells the agent where its provider is, or remove this line"
	for _, c := range []struct{ key, needs, hint string }{
		{"base-url-env", "wire", `write beside it which protocol the agent speaks: wire = "gemini", "anthropic" or "openai"`},
		{"wire", "base-url-env", forwarder},
		{"base-url", "base-url-env", forwarder},
		{"hosted", "base-url-env", forwarder},
	} {
		at, stands := d.at[c.key]
		if _, met := d.at[c.needs]; stands && at.value != false && !met {
			return at.wrong("it means nothing without "+c.needs, c.hint)
		}
	}
	if d.Net && d.BaseURLEnv != "" {
		return d.at["net"].wrong("an agent with a forwarder has no other network", "remove it, or remove base-url-env and what belongs to it")
	}
	return d.checkVariables()
}

// checkVariables refuses a variable that would have two values.
func (d *draft) checkVariables() error {
	set := make([]string, len(d.Set))
	for i, s := range d.Set {
		set[i], _, _ = strings.Cut(s, "=")
	}
	first := map[string]string{}
	for _, c := range []struct {
		key   string
		names []string
	}{{"base-url-env", []string{d.BaseURLEnv}}, {"key-env", []string{d.KeyEnv}}, {"set", set}, {"env", d.Env}} {
		for _, name := range c.names {
			if name == "" {
				continue
			}
			if key, twice := first[name]; twice {
				return d.at[c.key].wrong(fmt.Sprintf("%q stands in %s already", name, key), "keep one of the two")
			}
			first[name] = c.key
		}
	}
	return nil
}

// argv takes a program and its arguments.
func argv(into *[]string) setter {
	return func(l leaf) error {
		const example = `argv = ["gemini", "-p", "{prompt}"]`
		if err := list(into, badArgument, example)(l); err != nil {
			return err
		}
		if len(*into) == 0 || strings.TrimSpace((*into)[0]) == "" {
			return l.wrong("it names no program", "write one, and its arguments, such as "+example)
		}
		return nil
	}
}

// statuses takes exit statuses, at least one.
func statuses(into *[]int) setter {
	return func(l leaf) error {
		const hint = "write numbers from 0 to 255, such as exits = [0, 1]"
		items, ok := l.value.([]any)
		switch {
		case !ok:
			return l.wrong("it is not a list", hint)
		case len(items) == 0:
			return l.wrong("there is no exit status in it", hint+", or remove the line")
		}
		taken := make([]int, len(items))
		for i, item := range items {
			n, ok := item.(int64)
			if !ok {
				return l.wrong("there is something else than a whole number in the list", hint)
			}
			if n < 0 || n > 255 {
				return l.wrong(fmt.Sprintf("%d is not an exit status", n), hint)
			}
			taken[i] = int(n)
		}
		*into = taken
		return nil
	}
}

// badArgument objects to what no program can be given, and to what was likely
// left empty.
func badArgument(s string) (problem, hint string) {
	switch {
	case s == "":
		return "there is an empty text in the list", "remove it"
	case strings.ContainsRune(s, 0):
		return "there is a NUL in the list", "remove it"
	}
	return "", ""
}

// badSetting objects to what is not a variable with its value, which it does
// not repeat.
func badSetting(s string) (problem, hint string) {
	const example = `write NAME=value, such as "NO_COLOR=1"`
	name, _, valued := strings.Cut(s, "=")
	switch {
	case !valued:
		return `there is a text without "=" in the list`, example
	case !variable.MatchString(name):
		return fmt.Sprintf("%q is not the name of a variable", name), example
	case strings.ContainsRune(s, 0):
		return fmt.Sprintf("there is a NUL in the value of %q", name), "remove it"
	}
	return "", ""
}

// badHome objects to what is no file or folder below the person's home.
func badHome(s string) (problem, hint string) {
	const example = `write it with ~/ before it, such as "~/.gemini/settings.json"`
	if problem, hint := badPath(s); problem != "" {
		return problem, hint
	}
	below, ok := strings.CutPrefix(s, "~/")
	below = path.Clean(below)
	switch {
	case !ok:
		return fmt.Sprintf("%q is not below the home", s), example
	case below == ".":
		return fmt.Sprintf("%q is the whole home", s), "name the files and folders in it that the agent needs"
	case !filepath.IsLocal(filepath.FromSlash(below)):
		return fmt.Sprintf("%q leads out of the home", s), example
	}
	return "", ""
}
