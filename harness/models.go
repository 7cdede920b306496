package harness

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/internal/config"
	"hone/internal/near"
	"hone/loop"
	"hone/model"
	"hone/model/anthropic"
	"hone/model/gemini"
	"hone/model/openai"
	"hone/model/script"
	"hone/model/texttools"
	"hone/sandbox/wall"
)

// Provider is a way to reach models. An entry in [Providers] is all that hone
// needs to know of it.
type Provider struct {
	Name     string
	Keys     []string // variables of the key, of which the first that is set counts; nil if no key is needed
	Base     string   // variable of the address; empty if there is none
	Address  string   // default address; empty means that of the model's package
	Standard string   // default model; empty if there is none
	Argument string   // what the help has after the slash; empty means NAME
	About    string   // what the help adds to the keys, in lines of up to 80 bytes; empty means nothing
	Unlisted bool     // the help does not list it

	open        func(access) (model.Model, error)
	keyOptional bool // no key is needed at an address that the user gave
	ownAddress  bool // there is no address unless the user gives one
	hostOnly    bool // Base contains a host; what it lacks of an address is that of Address

	// reader returns the reader of a response to an agent; nil if the forwarder does
	// not speak the wire format.
	reader func(path string) model.Reader
}

// access is how a provider reaches a model.
type access struct {
	name     string // the provider's own name of the model
	key      string // empty if there is none
	variable string // of the key
	address  string // empty means the provider's own
	wire     string // empty means the provider's own
	timeouts model.Timeouts
}

// Providers returns all providers, in the order in which a default model is
// chosen.
func Providers() []Provider {
	return []Provider{
		{Name: "gemini", Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Base: "GOOGLE_GEMINI_BASE_URL", Standard: "gemini-2.5-pro",
			open: func(a access) (model.Model, error) {
				return gemini.New(gemini.Config{Name: a.name, Key: a.key, BaseURL: a.address, KeyVariable: a.variable, Timeouts: a.timeouts}), nil
			}, reader: gemini.NewReader},
		{Name: "openai", Keys: []string{"OPENAI_API_KEY"}, Base: "OPENAI_BASE_URL", Standard: "gpt-5.4",
			About: "with a base URL any server that speaks the same\n" +
				"protocol, such as vLLM, llama.cpp, LM Studio or OpenRouter, which may need no key",
			open: openOpenAI, reader: openai.NewReader, keyOptional: true},
		{Name: "anthropic", Keys: []string{"ANTHROPIC_API_KEY"}, Base: "ANTHROPIC_BASE_URL", Standard: "claude-sonnet-5",
			open: func(a access) (model.Model, error) {
				return anthropic.New(anthropic.Config{Name: a.name, Key: a.key, BaseURL: a.address, KeyVariable: a.variable, Timeouts: a.timeouts}), nil
			}, reader: anthropic.NewReader},
		{Name: "ollama", Base: "OLLAMA_HOST", Address: "http://127.0.0.1:11434/v1", open: openChat, hostOnly: true},
		{Name: "script", Argument: "FILE", About: "replies that are written in a file, for tests and demonstrations", open: func(a access) (model.Model, error) {
			s, err := script.New(a.name)
			if err != nil {
				return nil, loop.UsageOf(err, "script/FILE takes a file of scripted replies")
			}
			return s, nil
		}},
		{Name: agentProvider, Unlisted: true, open: func(a access) (model.Model, error) { // an agent is opened with the settings of its own
			return nil, &hone.UsageError{Why: fmt.Sprintf("there is no command-line agent %q", a.name), Next: useModel("gemini/gemini-2.5-pro")}
		}},
		// CodeScribe's name of a server with OpenAI's wire format and variables of its own.
		{Name: "oaic", Keys: []string{"OPENAI_COMP_APIKEY"}, Base: "OPENAI_COMP_BASEURL", Unlisted: true, open: openChat, ownAddress: true},
	}
}

func openOpenAI(a access) (model.Model, error) {
	return openai.New(openai.Config{Name: a.name, Key: a.key, BaseURL: a.address, KeyVariable: a.variable, Wire: a.wire, Timeouts: a.timeouts}), nil
}

// Some servers only know OpenAI's older wire format.
func openChat(a access) (model.Model, error) {
	a.wire = openai.Chat
	return openOpenAI(a)
}

// Key returns the provider's key and its variable. Without a key, value is
// empty and variable is the first one that may hold it; both are empty if no
// key is needed.
func (p Provider) Key(getenv func(string) string) (value, variable string) {
	for _, v := range p.Keys {
		if value := getenv(v); value != "" {
			return value, v
		}
	}
	if len(p.Keys) == 0 {
		return "", ""
	}
	return "", p.Keys[0]
}

// Form returns how the help writes a model of the provider, such as gemini/NAME.
func (p Provider) Form() string { return p.Name + "/" + cmp.Or(p.Argument, "NAME") }

// ListedProviders returns the names of the providers that the help lists.
func ListedProviders() []string {
	var names []string
	for _, p := range Providers() {
		if !p.Unlisted {
			names = append(names, p.Name)
		}
	}
	return names
}

func splitModel(model string) (Provider, string, error) {
	p, name, ok := strings.Cut(model, "/")
	known := Providers()
	i := slices.IndexFunc(known, func(k Provider) bool { return k.Name == p })
	switch {
	case ok && i >= 0 && name != "":
		return known[i], name, nil
	case i >= 0:
		return Provider{}, "", &hone.UsageError{Why: fmt.Sprintf("model %q names a provider, but no model of it", model), Next: useModel(p + "/" + cmp.Or(known[i].Standard, known[i].Argument, "NAME"))}
	}
	names := ListedProviders()
	if meant := near.Name(p, names); meant != "" && name != "" {
		return Provider{}, "", loop.Usage(fmt.Sprintf("model %q is not PROVIDER/NAME", model), "did you mean "+meant+"/"+name+"?")
	}
	for i := range names {
		names[i] += "/NAME"
	}
	next := useModel("gemini/gemini-2.5-pro")
	next.Remark = "for example"
	next.Or = &hone.Next{Flags: []hone.Flag{{Name: "model", Value: "openai/NAME"}, {Name: "base-url", Value: "URL"}}, Remark: "for an OpenAI-compatible server"}
	return Provider{}, "", &hone.UsageError{Next: next, Why: fmt.Sprintf("model %q has an unknown provider; the providers are %s, and %s/NAME for a command-line agent of fix, task or phase", model, strings.Join(names, ", "), agentProvider)}
}

func useModel(name string) hone.Next {
	return hone.Next{Flags: []hone.Flag{{Name: "model", Value: name}}}
}

// A name without a provider gets the provider that lists a price for it.
func fullName(model string) string {
	if model == "" || strings.Contains(model, "/") {
		return model
	}
	published := datedName.ReplaceAllString(model, "")
	for _, p := range ListPrices() {
		if p.Model == published && !p.Elsewhere() {
			return p.Provider + "/" + model
		}
	}
	return model
}

// A resumed run then finds the script from any directory.
func resolveScriptPath(m *loop.Model) error {
	p, name, err := splitModel(m.Name)
	if err != nil || p.Name != "script" {
		return err
	}
	path, err := filepath.Abs(name)
	m.Name = p.Name + "/" + path
	return err
}

// ErrNoModel means that there is no default model.
var ErrNoModel error = &noKeyError{hone.UsageError{Why: "no model was given, and no provider's key is set",
	Next: noModelNext("")}}

func noModelNext(verb hone.Verb) hone.Next {
	keyless := useModel("ollama/NAME")
	keyless.Remark = "which needs no key"
	return hone.Next{First: "set GEMINI_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY", Verb: verb, Or: &keyless}
}

type noKeyError struct{ hone.UsageError }

// Unwrap returns the usage error.
func (e *noKeyError) Unwrap() error { return &e.UsageError }

// HasProvider reports whether a model's name has a known provider.
func HasProvider(model string) bool {
	_, _, err := splitModel(model)
	return err == nil
}

func defaultModel(getenv func(string) string) (string, error) {
	for _, p := range Providers() {
		if value, _ := p.Key(getenv); value != "" && p.Standard != "" {
			return p.Name + "/" + p.Standard, nil
		}
	}
	return "", ErrNoModel
}

func (h Host) open(m loop.Model) (model.Model, error) {
	opened, err := h.connect(m)
	if err == nil && m.Tools == loop.TextTools {
		opened = texttools.Wrap(opened)
	}
	return opened, err
}

// The key and the address come from the environment of this process, never from a journal.
func (h Host) connect(m loop.Model) (model.Model, error) {
	if m.Name == "" {
		return nil, ErrNoModel
	}
	p, name, err := splitModel(m.Name)
	if err != nil {
		return nil, err
	}
	if m.Agent != nil {
		return nil, h.Ready(m)
	}
	a := access{name: name, wire: m.Wire, timeouts: model.Timeouts{Idle: m.Idle, Total: m.Total}}
	if a.address, err = h.address(m, p); err != nil {
		return nil, err
	}
	if m.KeyCommand != "" {
		keyed := &keyedModel{keySource: h.keys, line: m.KeyCommand, environ: h.environ(), open: func(key string) (model.Model, error) {
			a.key, a.variable = key, config.KeyCommand.Key
			return p.open(a)
		}}
		if h.keys == nil {
			keyed.keySource = &keySource{wall.None{}, ".", func(string) {}}
		}
		if _, err := keyed.open("no key yet"); err != nil {
			return nil, err
		}
		return keyed, nil
	}
	a.key, a.variable = p.Key(h.getenv)
	if a.key == "" && len(p.Keys) > 0 && !(p.keyOptional && a.address != "") {
		next := hone.Next{First: fmt.Sprintf("export %s=…", p.Keys[0])}
		if other, err := defaultModel(h.getenv); err == nil {
			or := useModel(other)
			or.Remark, next.Or = "whose key is set", &or
		}
		return nil, &noKeyError{hone.UsageError{Why: fmt.Sprintf("%s needs a key, and %s is not set", p.Name, strings.Join(p.Keys, " or ")), Next: next}}
	}
	return p.open(a)
}

// Prober is a model that can find out whether its provider responds, at no
// cost.
type Prober interface {
	Probe(ctx context.Context) error
}

// Prober returns the prober of a model's provider; nil if it has none.
func (h Host) Prober(m loop.Model) (Prober, error) {
	opened, err := h.connect(m)
	if err != nil {
		return nil, err
	}
	p, _ := opened.(Prober)
	return p, nil
}

// Empty means the provider's own.
func (h Host) address(m loop.Model, p Provider) (string, error) {
	base, err := m.Address()
	if err != nil {
		return "", err
	}
	base = cmp.Or(base, h.getenv(p.Base), p.Address)
	switch {
	case base == "" && p.ownAddress:
		return "", loop.Usage(p.Name+" needs an address, but "+p.Base+" is not set", "export "+p.Base+"=http://…/v1")
	case base == "":
		return "", nil
	}
	return p.parseAddress(base)
}

func (p Provider) parseAddress(text string) (string, error) {
	if p.hostOnly && !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		masked, _ := config.MaskAddress(text)
		return "", loop.Usage(fmt.Sprintf("%q is not a provider address", masked), "write it like http://127.0.0.1:8080/v1")
	}
	if !p.hostOnly {
		return u.String(), nil
	}
	standard, err := url.Parse(p.Address)
	if err != nil {
		return "", err
	}
	if u.Port() == "" {
		u.Host += ":" + standard.Port()
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = standard.Path
	}
	return u.String(), nil
}

// defaultOutput is the output limit of a model of which nothing is known, in
// tokens.
const defaultOutput = 16_384

// missingModel replaces a model that cannot be opened, for example because its
// key is not set. That is an error only when the model is asked.
type missingModel struct{ why error }

// Generate returns why there is no model.
func (m missingModel) Generate(context.Context, model.Request) (model.Reply, error) {
	return model.Reply{}, m.why
}

// It returns why the run's next request would fail; nil if the reply is recorded.
func (s *Session) canAsk() error {
	if s.run.Past().Facts().Answered {
		return nil
	}
	for _, m := range loop.AllModels(s.loop) {
		if a, ok := s.models[m].(missingModel); ok && !s.run.Past().HasFailed(m.Name) {
			return a.stop()
		}
	}
	return nil
}

func (m missingModel) stop() error {
	if m.why != ErrNoModel {
		return m.why
	}
	// The run's settings have no model that a resumed run could ask.
	return &hone.Stop{Kind: hone.KindUsage, Why: m.why.Error(), Next: noModelNext(hone.NewRun)}
}
