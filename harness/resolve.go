package harness

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"hone"

	"hone/internal/config"
	"hone/loop"
	"hone/model"
	"hone/sandbox"
	"hone/workspace"
)

// Resolve resolves the settings that every loop has, in this order of
// precedence: flag, environment, .config/hone.toml, default.
func (h Host) Resolve(k loop.Kind, root string, f loop.Flags, file config.File) (loop.Settings, error) {
	m, err := h.resolveModel(k, root, f, file)
	if err != nil {
		return loop.Settings{}, err
	}
	walls, err := ResolveWalls(f, file.Sandbox, root)
	if err != nil {
		return loop.Settings{}, err
	}
	reading, err := ResolveReading(f, file.Check)
	if err == nil {
		err = loop.CheckLine(cmp.Or(f.Check, file.Check.Command))
	}
	if err != nil {
		return loop.Settings{}, err
	}
	walls.Absent = walls.Wall == string(sandbox.Auto) && !h.HasWalls()
	return loop.Settings{Model: m, Approve: cmp.Or(f.Approve, "ask"), Send: file.Guard.Send, Walls: walls, Trust: resolveTrust(f, file),
		RepoAdvice: loop.Advice{Off: k.NoAdvice || file.Model.Advice == "none"},
		Check:      cmp.Or(f.Check, file.Check.Command), CheckTime: file.Check.Timeout.Value(), CheckEnv: file.Check.Env, Reading: reading}, checkCostLimit(f, file, m)
}

// resolveModel resolves the model with its fallbacks, and their settings.
func (h Host) resolveModel(k loop.Kind, root string, f loop.Flags, file config.File) (loop.Model, error) {
	names, err := modelNames(cmp.Or(f.Model, h.getenv("HONE_MODEL"), file.Model.Model, k.Model))
	if err != nil {
		return loop.Model{}, err
	}
	f.Model = names[0]
	m, err := h.resolveFirst(k, root, f, file)
	if err != nil {
		return m, err
	}
	for _, name := range names[1:] {
		fallback, err := h.resolveFallback(m, name, f, file)
		if err != nil {
			return m, err
		}
		m.Fallbacks = append(m.Fallbacks, fallback)
	}
	return m, h.resolveEscalation(&m, f, file)
}

// resolveEscalation sets the model that does the rounds if a model makes no progress.
func (h Host) resolveEscalation(m *loop.Model, f loop.Flags, file config.File) error {
	switch name := file.Model.Escalate; {
	case name == "", name == m.Name, m.Name == "":
		return nil
	case m.Agent != nil:
		h.Note(m.Name + " is a command-line agent, which [model] escalate does not apply to")
		return nil
	default:
		up, err := h.resolveFallback(*m, name, f, file)
		m.Escalation, m.EscalateAfter = &up, file.Model.EscalateAfter
		return err
	}
}

// modelNames splits names that are separated by commas. There is always one, which may
// be empty.
func modelNames(list string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "" && list != "":
			return nil, &hone.UsageError{Why: fmt.Sprintf("models %q: a name is missing beside a comma", list), Next: useModel("PROVIDER/NAME,PROVIDER/NAME")}
		case slices.Contains(names, name):
			return nil, loop.Usage(fmt.Sprintf("models %q: %s stands there twice, but a model cannot take its own place", list, name), "name it once, or add another model")
		}
		names = append(names, name)
	}
	return names, nil
}

// resolveFallback resolves a model that takes the place of another one. What the
// settings say of a model's limits and address is about that other one.
func (h Host) resolveFallback(first loop.Model, name string, f loop.Flags, file config.File) (loop.Model, error) {
	m := first
	m.Name, m.Fallbacks, m.Escalation, m.Price, m.PriceSource, m.Context, m.MaxOutput = name, nil, nil, nil, "", 0, 0
	m.SetBaseURL("")
	if err := resolveScriptPath(&m); err != nil {
		return m, err
	}
	switch {
	case first.Agent != nil, m.Provider() == agentProvider:
		return m, &hone.UsageError{Why: fmt.Sprintf("%s,%s: a command-line agent cannot have a fallback or be one, because another model cannot continue its session", first.Name, name), Next: useModel(first.Name)}
	case first.BaseURL != "" && first.Provider() == m.Provider():
		p, _, _ := splitModel(name)
		hint := fmt.Sprintf("if both are there: export %s=URL, in place of the base URL", p.Base)
		if p.Name == "openai" {
			hint += "; if only the first is: name it ollama/NAME, and export OLLAMA_HOST=URL"
		}
		return m, loop.Usage(fmt.Sprintf("the base URL is that of %s, and nothing says where %s is, which has the same provider", first.Name, name), hint)
	}
	fillLimits(&m)
	m.Context, m.MaxOutput = cmp.Or(m.Context, file.Model.Context), min(m.MaxOutput, cmp.Or(file.Model.MaxOutput, m.MaxOutput))
	h.setPrice(&m, file.Prices)
	return m, nil
}

// resolveFirst resolves the model that f names, and its settings. An empty name is the
// default model.
func (h Host) resolveFirst(k loop.Kind, root string, f loop.Flags, file config.File) (loop.Model, error) {
	m := loop.Model{
		Name:      f.Model,
		Wire:      cmp.Or(f.Wire, file.Model.Wire),
		Tools:     cmp.Or(f.Tools, file.Model.Tools),
		Reasoning: cmp.Or(model.Reasoning(f.Reasoning), model.Reasoning(file.Model.Reasoning)),
		Context:   file.Model.Context,
		MaxOutput: file.Model.MaxOutput,
		Idle:      file.Model.IdleTimeout.Value(),
		Total:     file.Model.TotalTimeout.Value(),
		Attempts:  file.Model.Attempts,
	}
	if m.Name == "" {
		name, err := defaultModel(h.getenv)
		if err != nil && k.Modelless {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		m.Name = name
		h.Note("no model was given; using " + name + ", the first provider whose key is set")
	}
	if err := resolveScriptPath(&m); err != nil {
		return m, err
	}
	m.SetBaseURL(cmp.Or(f.BaseURL, h.fileAddress(m, file.Model)))
	if err := assignAgent(&m, k.Agents, file.Commands, root); err != nil {
		return m, err
	}
	fillLimits(&m)
	h.setPrice(&m, file.Prices)
	return m, nil
}

// fileAddress returns the address in the configuration if it is for this model: if no
// variable has another address, and the configuration names no model of another
// provider.
func (h Host) fileAddress(m loop.Model, file config.Model) string {
	p, _, err := splitModel(m.Name)
	if err != nil || p.Base != "" && h.getenv(p.Base) != "" {
		return ""
	}
	if named := (loop.Model{Name: file.Model}); file.Model != "" && named.Provider() != p.Name {
		return ""
	}
	return file.BaseURL
}

// checkCostLimit returns an error if there is a cost limit that hone cannot
// enforce.
func checkCostLimit(f loop.Flags, file config.File, model loop.Model) error {
	if cmp.Or(f.Limits.MaxCost, file.Limits.MaxCost) == 0 {
		return nil
	}
	for _, m := range model.All() {
		if err := checkCounted(m); err != nil {
			return err
		}
	}
	return nil
}

// checkCounted returns an error if hone cannot tell what a model costs.
func checkCounted(m *loop.Model) error {
	if m.Agent != nil && m.Agent.Wire == "" {
		return loop.Usage("a cost limit was given, but hone cannot count the usage of "+m.Name+": it has no forwarder",
			"give it wire and base-url-env in [commands."+m.Agent.Name+"], or set no cost limit")
	}
	if m.Price == nil && m.Name != "" {
		return loop.Usage("a cost limit was given, but the price of "+m.PricedAs()+" is unknown",
			"add to .config/hone.toml: [prices.\""+m.PricedAs()+"\"] with input = and output =, in USD per million tokens")
	}
	return nil
}

// CanLimitCost returns why a limit of costs cannot be enforced for a loop, such as that
// the price of one of its models is unknown; nil if it can.
func CanLimitCost(l loop.Loop) error {
	var limited loop.Flags
	limited.Limits.MaxCost = 1
	for _, asked := range l.Models() {
		if err := checkCostLimit(limited, config.File{}, *asked.Model); err != nil {
			return err
		}
	}
	return nil
}

func resolveTrust(f loop.Flags, file config.File) loop.Trust {
	t := loop.Trust{
		Protect: file.Check.Protect, FreeTools: file.Guard.Tools != nil && !*file.Guard.Tools, Flaky: cmp.Or(f.Flaky, file.Check.Flaky), Prove: cmp.Or(f.Prove, file.Check.Prove),
		KeepBest: cmp.Or(f.Keep, file.Limits.Keep) == "best", Include: file.Undo.Include, MaxFile: workspace.DefaultMaxFile,
		MinFree: loop.DefaultMinFree,
	}
	if file.Limits.MinFree != nil {
		t.MinFree = int64(*file.Limits.MinFree)
	}
	if file.Undo.MaxFile != nil {
		t.MaxFile = int64(*file.Undo.MaxFile)
	}
	if t.Prove == "off" {
		t.Prove = ""
	}
	return t
}

// ResolveWalls resolves the settings of the walls, in this order of precedence:
// flag, file, default.
func ResolveWalls(f loop.Flags, file config.Sandbox, root string) (loop.WallSettings, error) {
	net := cmp.Or(f.Net, file.Net)
	s := loop.WallSettings{Wall: cmp.Or(f.Wall, file.Wall, string(sandbox.Auto)), Net: net != nil && *net, AllowGit: f.AllowGit || file.AllowGit,
		Env: file.Env, Memory: int64(file.Memory), Processes: file.Processes}
	for _, list := range []struct {
		from []string
		to   *[]string
	}{{file.Write, &s.Write}, {file.Read, &s.Read}, {file.Hide, &s.Hide}} {
		var err error
		if *list.to, err = loop.AbsPaths(root, list.from); err != nil {
			return s, err
		}
	}
	for i, p := range s.Write {
		if _, err := os.Stat(p); err != nil {
			return s, loop.Usage(config.HonePath+": sandbox.write: "+file.Write[i]+" does not exist", "create it, or remove it from the list")
		}
	}
	return s, checkState(s)
}

// exceptNames returns the names without the exceptions.
func exceptNames(names, exceptions []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(exceptions, n) })
}
