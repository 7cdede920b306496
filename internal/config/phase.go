package config

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Phase is the [phase] section: a builder walled into src/ and a verifier
// walled into tests/. The hooks are those of abl.config.sh; they and the
// server run walled, and HookRead, HookEnv and HookNet open more to them
// (ruling A9).
type Phase struct {
	BuilderModel   string        // "provider/name", or a name alone; empty where nothing is said
	VerifierModel  string        // the same for the verifier
	Rounds         int           // most rounds of building and verifying; 0 where nothing is said
	HealthAttempts int           // failed health checks within a round before it ends (ruling A3); 0 where nothing is said
	Turns          int           // most model calls in one session; 0 where nothing is said
	MaxToolCalls   int           // most tool calls in one session; 0 where nothing is said
	DevURL         string        // "http://HOST:PORT" of the server, on a loopback host; empty where nothing is said
	HookRead       []string      // what else hooks may read, paths as in [Sandbox]; nil for nothing
	HookEnv        []string      // names of variables that hooks have although they may hold keys; nil for none
	HookNet        bool          // hooks may reach the network; false where nothing is said
	HookTimeout    time.Duration // for one hook; 0 where nothing is said
}

func (p *Phase) keys() map[string]setter {
	return map[string]setter{
		"phase.builder-model":   text(&p.BuilderModel, badLine),
		"phase.verifier-model":  text(&p.VerifierModel, badLine),
		"phase.rounds":          whole(&p.Rounds, "rounds = 3"),
		"phase.health-attempts": whole(&p.HealthAttempts, "health-attempts = 1"),
		"phase.turns":           whole(&p.Turns, "turns = 60"),
		"phase.max-tool-calls":  whole(&p.MaxToolCalls, "max-tool-calls = 240"),
		"phase.dev-url":         text(&p.DevURL, BadDevURL),
		"phase.hook_read":       list(&p.HookRead, badPath, `hook_read = ["~/.npmrc"]`),
		"phase.hook_env":        list(&p.HookEnv, badVariable, `hook_env = ["DATABASE_URL"]`),
		"phase.hook_net":        truth(&p.HookNet),
		"phase.hook-timeout":    span(&p.HookTimeout),
	}
}

// BadDevURL is what is wrong with the address of a server, and what to write
// instead; an empty problem says that nothing is. It objects to all but the scheme, a host of this machine and a port:
// the verifier's wall lets exactly these through (ruling A13).
func BadDevURL(s string) (problem, hint string) {
	const example = `write the server's address, such as "http://localhost:3000"`
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" || u.Hostname() == "":
		return "it is not an http address", example
	case u.User != nil:
		return "there is a user or a password in the address", example
	case !strings.EqualFold(s, "http://"+u.Host):
		return "something follows the host and the port", example
	case !loopback(u.Hostname()):
		return "its host is not this machine's loopback", "write localhost, 127.0.0.1 or [::1] for the host"
	case u.Port() == "":
		return "the port is missing", example
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return u.Port() + " is not a port", "write one from 1 to 65535"
	}
	return "", ""
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback() && ip.Zone() == ""
}
