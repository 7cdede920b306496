package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/check"
	"hone/journal"
	"hone/model"
	"hone/model/anthropic"
	"hone/model/gemini"
	"hone/model/openai"
	"hone/model/script"
	"hone/model/texttools"
)

// provider is one way to reach models, and the variables that its own tools
// take keys and addresses from.
type provider struct {
	name     string
	keys     []string // the first that is set counts; nil: no key is needed
	base     string   // variable with the address; empty: none
	standard string   // the model that is taken where none was named; empty: none
	unlisted bool     // a name for CodeScribe's users, which others are not told
}

// providers are in the order in which a default is looked for.
func providers() []provider {
	return []provider{
		{name: "gemini", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, base: "GOOGLE_GEMINI_BASE_URL", standard: "gemini-2.5-pro"},
		{name: "openai", keys: []string{"OPENAI_API_KEY"}, base: "OPENAI_BASE_URL", standard: "gpt-5.4"},
		{name: "anthropic", keys: []string{"ANTHROPIC_API_KEY"}, base: "ANTHROPIC_BASE_URL", standard: "claude-sonnet-5"},
		{name: "ollama", base: "OLLAMA_HOST"},
		{name: "script"},
		{name: agentProvider, unlisted: true},
		{name: compatible, keys: []string{"OPENAI_COMP_APIKEY"}, base: "OPENAI_COMP_BASEURL", unlisted: true},
	}
}

// key is the provider's key, and the variable that it is in.
func (p provider) key(env func(string) string) (value, variable string) {
	for _, v := range p.keys {
		if value := env(v); value != "" {
			return value, v
		}
	}
	if len(p.keys) == 0 {
		return "", ""
	}
	return "", p.keys[0]
}

// modelSettings are what a run keeps of how it reaches its model.
type modelSettings struct {
	Name      string          `json:"name"`               // provider/name
	BaseURL   string          `json:"base_url,omitempty"` // without its login
	Login     bool            `json:"login,omitempty"`    // BaseURL came with a user or a password
	Wire      string          `json:"wire,omitempty"`
	Tools     string          `json:"tools,omitempty"` // "text": calls are read out of the replies' text
	Reasoning model.Reasoning `json:"reasoning,omitempty"`
	Context   int64           `json:"context,omitempty"` // tokens; 0: not known
	MaxOutput int64           `json:"max_output"`        // tokens
	Idle      time.Duration   `json:"idle_ns,omitempty"`
	Total     time.Duration   `json:"total_ns,omitempty"`
	Attempts  int             `json:"attempts,omitempty"` // 0: the engine's default
	Price     *hone.Price     `json:"price,omitempty"`
	Agent     *agentSettings  `json:"agent,omitempty"` // nil: it is no command-line agent

	login string // of BaseURL; on no record (ruling G6)
}

// reach sets the base URL that a person named.
func (m *modelSettings) reach(url string) {
	m.BaseURL, m.login = cutLogin(url)
	m.Login = m.login != ""
}

// whole is the base URL as it was named; empty where none was.
func (m modelSettings) whole() string {
	if m.login == "" {
		return m.BaseURL
	}
	scheme, rest, ok := strings.Cut(m.BaseURL, "://")
	if !ok {
		return m.login + "@" + m.BaseURL
	}
	return scheme + "://" + m.login + "@" + rest
}

// split takes "provider/name" apart.
func (m modelSettings) split() (provider, string, error) {
	p, name, ok := strings.Cut(m.Name, "/")
	known := providers()
	i := slices.IndexFunc(known, func(k provider) bool { return k.name == p })
	if ok && i >= 0 && name != "" {
		return known[i], name, nil
	}
	var names []string
	for _, k := range known {
		if !k.unlisted {
			names = append(names, k.name+"/NAME")
		}
	}
	return provider{}, "", usage(fmt.Sprintf("model %q is not one of %s", m.Name, strings.Join(names, ", ")),
		"for example: --model gemini/gemini-2.5-pro; an OpenAI-compatible server is openai/NAME with --base-url URL")
}

// who is the provider's name; empty where the model's names none.
func (m modelSettings) who() string {
	p, _, _ := m.split()
	return p.name
}

// anchor checks the name, and makes a script's path one that a resume finds
// again from anywhere.
func (m *modelSettings) anchor() error {
	p, name, err := m.split()
	if err != nil || p.name != "script" {
		return err
	}
	path, err := filepath.Abs(name)
	m.Name = p.name + "/" + path
	return err
}

// errNoModel is why there is no default model.
var errNoModel = usage("no model was named, and no provider's key is set",
	"set GEMINI_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY, or name a model that needs none: --model ollama/NAME")

// defaultModel is the first provider's whose key is set; else the error is
// errNoModel.
func defaultModel(env func(string) string) (string, error) {
	for _, p := range providers() {
		if value, _ := p.key(env); value != "" && p.standard != "" {
			return p.name + "/" + p.standard, nil
		}
	}
	return "", errNoModel
}

// How a model calls tools.
const (
	nativeTools = "native" // by its provider's own means
	textTools   = "text"   // in the text of its replies
)

// open makes the model, with tools by text where the settings say so.
func (m modelSettings) open(env func(string) string) (model.Model, error) {
	opened, err := m.connect(env)
	if err == nil && m.Tools == textTools {
		opened = texttools.Wrap(opened)
	}
	return opened, err
}

// connect makes the model of the provider. The key and the address come from
// the environment of this process, never from a journal.
func (m modelSettings) connect(env func(string) string) (model.Model, error) {
	p, name, err := m.split()
	if err != nil {
		return nil, err
	}
	if m.Agent != nil {
		return nil, m.Agent.ready(env)
	}
	key, variable := p.key(env)
	base, err := m.address(p, env)
	if err != nil {
		return nil, err
	}
	if key == "" && len(p.keys) > 0 && !(p.name == "openai" && base != "") {
		return nil, usage(fmt.Sprintf("%s needs a key, and %s is not set", p.name, strings.Join(p.keys, " or ")),
			fmt.Sprintf("export %s=…", variable))
	}
	t := model.Timeouts{Idle: m.Idle, Total: m.Total}
	switch p.name {
	case "gemini":
		return gemini.New(gemini.Config{Name: name, Key: key, BaseURL: base, KeyVariable: variable, Timeouts: t}), nil
	case "anthropic":
		return anthropic.New(anthropic.Config{Name: name, Key: key, BaseURL: base, KeyVariable: variable, Timeouts: t}), nil
	case "openai":
		return openai.New(openai.Config{Name: name, Key: key, BaseURL: base, KeyVariable: variable, Wire: openai.Wire(m.Wire), Timeouts: t}), nil
	case compatible:
		return openai.New(openai.Config{Name: name, Key: key, BaseURL: base, KeyVariable: variable, Wire: openai.Chat, Timeouts: t}), nil
	case "ollama":
		return openai.New(openai.Config{Name: name, BaseURL: base, Wire: openai.Chat, Timeouts: t}), nil
	}
	s, err := script.New(name)
	if err != nil {
		return nil, usage(err.Error(), "--model script/FILE takes a file of scripted replies")
	}
	return s, nil
}

// address is where the provider is; empty for its own place.
func (m modelSettings) address(p provider, env func(string) string) (string, error) {
	if m.Login && m.login == "" {
		return "", &hone.Stop{Kind: hone.KindUsage, Why: "the run's base URL held a user or a password, which hone does not keep",
			Next: hone.Next{Verb: hone.Resume, Flags: []hone.Flag{{Name: "base-url", Value: "URL"}}}}
	}
	base := cmp.Or(m.whole(), env(p.base))
	if p.name == "ollama" {
		base = cmp.Or(base, "127.0.0.1")
	}
	switch {
	case base == "" && p.name == compatible:
		return "", usage(p.name+" needs an address, and "+p.base+" is not set", "export "+p.base+"=http://…/v1")
	case base == "":
		return "", nil
	}
	return address(p, base)
}

// address reads what a person wrote as the provider's address. Ollama's own
// variable holds a host, often without a scheme and always without a path.
func address(p provider, text string) (string, error) {
	if p.name == "ollama" && !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", usage(fmt.Sprintf("%q is no address of a provider", redactURL(text)), "write it like http://127.0.0.1:8080/v1")
	}
	if p.name == "ollama" {
		if u.Port() == "" {
			u.Host += ":11434"
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1"
		}
	}
	return u.String(), nil
}

// redactURL takes a password out of an address.
func redactURL(text string) string {
	if u, err := url.Parse(text); err == nil {
		return u.Redacted()
	}
	return "that"
}

// abilities are a family's context and the most that a reply may hold, in
// tokens, as its provider publishes them.
type abilities struct {
	prefix          string
	context, output int64
}

// families go from the more special to the more general name.
func families() []abilities {
	return []abilities{
		{"gemini/gemini-2.5-", 1_048_576, 65_536},
		{"gemini/gemini-3", 1_048_576, 65_536},
		{"gemini/", 0, 8_192},
		{"openai/gpt-5", 400_000, 128_000},
		{"openai/gpt-4.1", 1_047_576, 32_768},
		{"openai/gpt-4o", 128_000, 16_384},
		{"openai/o3", 200_000, 100_000},
		{"openai/o4", 200_000, 100_000},
		{"anthropic/claude-opus-4-0", 200_000, 32_000},
		{"anthropic/claude-opus-4-1", 200_000, 32_000},
		{"anthropic/claude-", 200_000, 64_000},
		{"", 0, 16_384},
	}
}

// complete fills in what neither a flag nor the configuration says.
func (m *modelSettings) complete() {
	for _, f := range families() {
		if strings.HasPrefix(m.asked(), f.prefix) {
			m.Context = cmp.Or(m.Context, f.context)
			m.MaxOutput = cmp.Or(m.MaxOutput, f.output)
			return
		}
	}
}

// role is what the engine asks.
func (m modelSettings) role(name, system string, opened model.Model) hone.Role {
	return hone.Role{Name: name, Model: opened, Called: m.Name, System: system, Reasoning: m.Reasoning,
		MaxOutput: m.MaxOutput, Context: m.Context, Price: m.Price}
}

// absent stands for a model that cannot be opened, such as for want of a key.
// That matters when it is asked and not before.
type absent struct{ why error }

// Generate says why there is no model.
func (m absent) Generate(context.Context, model.Request) (model.Reply, error) {
	return model.Reply{}, m.why
}

// present is a round that ends with the reason where it would ask a model that
// is absent. A reply that is on record is used all the same.
func present(models []model.Model, round hone.Round) hone.Round {
	i := slices.IndexFunc(models, func(m model.Model) bool { _, missing := m.(absent); return missing })
	if i < 0 {
		return round
	}
	missing := models[i].(absent)
	return func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if !answered(r.Journal.Events()) {
			return nil, missing.why
		}
		return round(ctx, r, prior)
	}
}

// answered reports whether the reply of the round under way is on record.
func answered(events []journal.Event) bool {
	is := false
	for _, e := range events {
		is = e.Type == "reply" || is && e.Type != "round"
	}
	return is
}
