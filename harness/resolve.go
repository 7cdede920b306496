package harness

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hone"
	"hone/internal/config"
	"hone/loop"
	"hone/model"
	"hone/sandbox"
	"hone/workspace/treepath"
)

// Resolve resolves the settings that every loop has. The values are of all settings; file
// has the prices, the agents, and the address of its model.
func (h Host) Resolve(k loop.Kind, root string, v config.Values, file config.File) (s loop.Settings, err error) {
	s = loop.Settings{Values: v.Recorded(k.Name), Check: config.Check.In(v), RepoAdvice: loop.Advice{Off: config.Advice.In(v) == "none"}}
	if s.Model, err = h.resolveModel(k, root, v, file); err != nil {
		return s, err
	}
	if s.Walls, err = h.ResolveWalls(v, root); err != nil {
		return s, err
	}
	s.Walls.Absent = s.Walls.Wall == sandbox.Auto && !h.HasWalls()
	if err := cmp.Or(ValidFormat(v, file), loop.CheckLine(s.Check)); err != nil {
		return s, err
	}
	h.noteUnmatched(root, v, file)
	return s, checkCostLimit(config.MaxCost.In(v), s.Model)
}

// A misspelled glob would protect, send or allow nothing without a word.
func (h Host) noteUnmatched(root string, v config.Values, file config.File) {
	below := map[string][]string{} // the globs whose files are to be looked for in a directory, in one walk
	matched := map[string]bool{}
	settings := []config.Setting[[]string]{config.Protect, config.Only, config.Send, config.Include}
	for _, s := range settings {
		for _, glob := range s.In(v) {
			top := path.Dir(glob) // as far as it is literal
			for strings.ContainsAny(top, `*?[{\`) {
				top = path.Dir(top)
			}
			if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(top))); err != nil { // it may have another case
				top = "."
			}
			below[top] = append(below[top], glob)
		}
	}
	for top, globs := range below {
		open := map[string]treepath.Patterns{}
		for _, glob := range globs {
			open[glob] = treepath.CompileValid([]string{glob}, true)
		}
		_ = fs.WalkDir(os.DirFS(root), top, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == ".git" {
				return fs.SkipDir
			}
			for glob, one := range open {
				if !d.IsDir() && one.Match(name) {
					matched[glob] = true
					delete(open, glob)
				}
			}
			if len(open) == 0 {
				return fs.SkipAll
			}
			return nil
		})
	}
	for _, s := range settings {
		for _, glob := range s.In(v) {
			problem, hint := strconv.Quote(glob)+" matches no file", "patterns are relative to "+root
			switch {
			case matched[glob]:
			case slices.Contains(s.In(file.Shared()), glob):
				h.Note(file.Wrong(s.Key, problem, hint).Error())
			default:
				h.Note("--" + s.FlagName() + ": " + problem + "; " + hint)
			}
		}
	}
}

func (h Host) resolveModel(k loop.Kind, root string, v config.Values, file config.File) (loop.Model, error) {
	names, err := modelNames(config.Model.In(v))
	if err != nil {
		return loop.Model{}, err
	}
	m, err := h.resolveFirst(k, root, names[0], v, file)
	if err != nil {
		return m, err
	}
	for _, name := range names[1:] {
		fallback, err := h.resolveFallback(m, name, v, file)
		if err != nil {
			return m, err
		}
		m.Fallbacks = append(m.Fallbacks, fallback)
	}
	switch name := fullName(config.Escalate.In(v)); {
	case name == "", name == m.Name, m.Name == "":
	case m.Agent != nil:
		h.Note(m.Name + " is a command-line agent, which [model] escalate does not apply to")
	default:
		up, err := h.resolveFallback(m, name, v, file)
		if err != nil {
			return m, err
		}
		m.Escalation, m.EscalateAfter = &up, config.EscalateAfter.In(v)
	}
	return m, nil
}

// There is always one name, which may be empty.
func modelNames(list string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = fullName(strings.TrimSpace(name))
		switch {
		case name == "" && strings.TrimSpace(list) != "":
			return nil, &hone.UsageError{Why: fmt.Sprintf("models %q: a name is missing beside a comma", list), Next: useModel("PROVIDER/NAME,PROVIDER/NAME")}
		case slices.Contains(names, name):
			return nil, loop.Usage(fmt.Sprintf("models %q: %s stands there twice, but a model cannot take its own place", list, name), "name it once, or add another model")
		}
		names = append(names, name)
	}
	return names, nil
}

// What the settings say of a model's limits and address is about the first.
func (h Host) resolveFallback(first loop.Model, name string, v config.Values, file config.File) (loop.Model, error) {
	m := first
	m.Name, m.Fallbacks, m.Escalation, m.Price, m.PriceSource, m.Context, m.MaxOutput = name, nil, nil, nil, "", 0, 0
	m.SetBaseURL("")
	if m.Provider() != first.Provider() {
		m.KeyCommand = ""
	}
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
	h.setPrice(&m, file.Prices)
	m.Context, m.MaxOutput = cmp.Or(m.Context, config.Context.In(v)), min(m.MaxOutput, cmp.Or(config.MaxOutput.In(v), m.MaxOutput))
	return m, nil
}

// An empty name is the default model.
func (h Host) resolveFirst(k loop.Kind, root, name string, v config.Values, file config.File) (loop.Model, error) {
	m := loop.Model{
		Name:      name,
		Wire:      config.Wire.In(v),
		Tools:     config.Tools.In(v),
		Reasoning: model.Reasoning(config.Reasoning.In(v)),
		Context:   config.Context.In(v),
		MaxOutput: config.MaxOutput.In(v),
		Idle:      config.IdleTimeout.In(v),
		Total:     config.TotalTimeout.In(v),
		Attempts:  config.CallAttempts.In(v),
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
	address, keyCommand, err := h.fromFile(m, file)
	if err != nil {
		return m, err
	}
	m.SetBaseURL(cmp.Or(config.BaseURL.In(v), address))
	m.KeyCommand = keyCommand
	if err := assignAgent(&m, k.Agents, file.Commands, root); err != nil {
		return m, err
	}
	h.setPrice(&m, file.Prices)
	return m, nil
}

// The configuration's address and key are for models of the provider that it names: no other may see the key. A variable
// with an address comes first.
func (h Host) fromFile(m loop.Model, file config.File) (address, keyCommand string, err error) {
	address, keyCommand = file.Late(config.BaseURL), file.Late(config.KeyCommand)
	named := loop.Model{Name: config.Model.In(file.Shared())}
	p, _, err := splitModel(m.Name)
	switch {
	case keyCommand != "" && named.Name == "":
		return "", "", loop.Usage(config.HonePath+": "+config.KeyCommand.Key+" says whose key it prints only together with model",
			"write the model next to it, such as model = \"openai/NAME\"")
	case err != nil, named.Name != "" && named.Provider() != p.Name:
		return "", "", err
	case p.Base != "" && h.getenv(p.Base) != "":
		address = ""
	}
	return address, keyCommand, nil
}

func checkCostLimit(limit float64, model loop.Model) error {
	if limit == 0 {
		return nil
	}
	for _, m := range model.All() {
		if m.Agent != nil && m.Agent.Wire == "" {
			return loop.Usage("a cost limit was given, but hone cannot count the usage of "+m.Name+": it has no forwarder",
				"give it wire and base-url-env in [commands."+m.Agent.Name+"], or set no cost limit")
		}
		if m.Name != "" && (m.Price == nil || m.PriceSource == localServer.Source) {
			return loop.Usage("a cost limit was given, but the price of "+m.PricedAs()+" is unknown",
				"add to .config/hone.toml: [prices.\""+m.PricedAs()+"\"] with input = and output =, in USD per million tokens, 0 if it costs nothing")
		}
	}
	return nil
}

// ResolveWalls resolves the settings of the walls. It does not look whether there are any.
func (h Host) ResolveWalls(v config.Values, root string) (loop.WallSettings, error) {
	s := loop.WallSettings{AllowGit: config.AllowGit.In(v), Env: config.Variables.In(v), Policy: sandbox.Policy{Wall: sandbox.Wall(config.Wall.In(v)),
		Net: config.Net.In(v), Limits: sandbox.Limits{Memory: config.Memory.In(v), Processes: config.Processes.In(v)}}}
	for _, list := range []struct {
		config.Setting[[]string]
		to *[]string
	}{{config.MayWrite, &s.Write}, {config.MayRead, &s.Read}, {config.Hide, &s.Hide}} {
		given := list.In(v)
		var err error
		if *list.to, err = loop.AbsPaths(root, given); err != nil {
			return s, err
		}
		for i, p := range *list.to {
			_, err := os.Stat(p)
			text := fmt.Sprintf("%s: %s: %s does not exist", config.HonePath, list.Key, given[i])
			switch {
			case err != nil && list.Row == config.MayWrite.Row:
				return s, loop.Usage(text, "create it, or remove it from the list")
			case errors.Is(err, fs.ErrNotExist):
				h.Note(text)
			}
		}
	}
	return s, checkState(s)
}

func exceptNames(names, exceptions []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(exceptions, n) })
}
