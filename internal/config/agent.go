package config

import (
	"slices"
	"strings"
)

// Agent is one [commands.NAME] section: a command-line agent that takes a role
// (ruling A8). An agent can have a forwarder, which is an address behind its wall
// where hone answers with the replies of the provider; or the network; or neither,
// if it asks no provider. It cannot have both.
type Agent struct {
	// Argv is the program and its arguments; never empty. A session replaces
	// {model}, {prompt} and {context}. No shell reads it.
	Argv  []string `toml:"argv" valid:"argument" json:"argv"`
	Model string   `toml:"model" valid:"line" json:"model,omitempty"` // model if "command/NAME" names none

	Wire       string `toml:"wire" valid:"gemini|anthropic|openai" json:"wire,omitempty"`                                                                   // protocol of the forwarder; empty without BaseURLEnv
	BaseURLEnv string `toml:"base-url-env" valid:"variable" json:"base_url_env,omitempty"`                                                                  // variable for the address of the forwarder; empty means no forwarder
	BaseURL    string `toml:"base-url" valid:"url" json:"base_url,omitempty" opens:"calls of the agent, with the provider's key, are sent to this address"` // where the forwarder sends calls; empty means the provider
	Hosted     bool   `toml:"hosted" json:"hosted,omitempty"`                                                                                               // the forwarder permits the provider's own tools, such as web search

	KeyEnv string   `toml:"key-env" valid:"variable" json:"key_env,omitempty"`                                                        // variable for a dummy key; empty means none
	Set    []string `toml:"set" valid:"setting" json:"set,omitempty"`                                                                 // more variables, as "NAME=value"
	Env    []string `toml:"env" valid:"variable" json:"env,omitempty" opens:"the agent gets these variables, even if they hold keys"` // variables of the user that are passed on, even if they hold keys

	// Home and HomeWrite are files and directories in the home of the user, as
	// "~/…". They appear at the same place in the home of the agent, which may read
	// Home, and read and write HomeWrite.
	Home      []string `toml:"home" valid:"home" json:"home,omitempty" opens:"the agent can read these files of your home"`
	HomeWrite []string `toml:"home-write" valid:"home" json:"home_write,omitempty" opens:"the agent can change these files of your home"`
	Read      []string `toml:"read" valid:"path" json:"read,omitempty" opens:"the agent can read these paths"`     // more that it may read; paths as in [Sandbox]
	Write     []string `toml:"write" valid:"path" json:"write,omitempty" opens:"the agent can change these paths"` // more that it may change
	Net       bool     `toml:"net" json:"net,omitempty" opens:"the agent can reach the network"`                   // it may reach the whole network

	Timeout string     `toml:"timeout" valid:"duration" json:"timeout,omitempty"` // for one session
	Exits   []int      `toml:"exits" json:"exits,omitempty"`                      // exit statuses of success, 0 to 255; empty means the default
	Answer  string     `toml:"answer" valid:"line" json:"answer,omitempty"`       // where its answer is in its JSON output; empty means that all output is the answer
	Usage   AgentUsage `toml:"usage" json:"usage,omitzero"`                       // zero if its output has no counts
}

// AgentUsage is the table [commands.NAME.usage]: where the JSON output of an
// agent has its counts of tokens. An empty path means that there is no such count.
type AgentUsage struct {
	Input      string `toml:"input" valid:"line" json:"input,omitempty"`
	Output     string `toml:"output" valid:"line" json:"output,omitempty"`
	CacheRead  string `toml:"cache-read" valid:"line" json:"cache_read,omitempty"`
	CacheWrite string `toml:"cache-write" valid:"line" json:"cache_write,omitempty"`
	Reasoning  string `toml:"reasoning" valid:"line" json:"reasoning,omitempty"`

	CachedInInput bool `toml:"cached-in-input" json:"cached_in_input,omitempty"` // the count at Input includes cached tokens
}

// An empty key means the whole section. The types and rules have been checked before.
func (a Agent) valid() (key, problem, hint string) {
	switch {
	case len(a.Argv) == 0 || strings.TrimSpace(a.Argv[0]) == "":
		return "argv", "it names no program", `write the program and its arguments, such as argv = ["gemini", "-p", "{prompt}"]`
	case slices.ContainsFunc(a.Exits, func(status int) bool { return status < 0 || status > 255 }):
		return "exits", "an exit status is from 0 to 255", "write such numbers, as in exits = [0, 1]"
	case a.BaseURLEnv != "" && a.Wire == "":
		return "base-url-env", "it has no effect without wire", `write the protocol of the agent next to it: wire = "gemini", "anthropic" or "openai"`
	case a.BaseURLEnv == "" && a.Wire != "":
		return "wire", "it has no effect without base-url-env", "write the variable that tells the agent the address of its provider, or remove this line"
	case a.BaseURLEnv != "" && a.Net:
		return "net", "an agent with a forwarder cannot have the network", "remove it, or remove base-url-env, wire, base-url and hosted"
	}
	return "", "", ""
}
