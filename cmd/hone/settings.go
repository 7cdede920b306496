package main

import (
	"cmp"
	"slices"

	"hone"
	"hone/internal/config"
	"hone/model"
)

// loadConfig reads .config/hone.toml with the sections of all loops.
func loadConfig(root string) (file config.File, loops config.Loops, err error) {
	file, err = config.Load(root, loops.Sections())
	return file, loops, err
}

// resolveRun resolves what every loop needs: flag, environment, file,
// default.
func (a *app) resolveRun(f loopFlags, root string, file config.File) (runSettings, error) {
	m := modelSettings{
		Name:      cmp.Or(f.model, a.env("HONE_MODEL"), file.Model.Model),
		Wire:      cmp.Or(f.wire, file.Model.Wire),
		Tools:     cmp.Or(f.tools, file.Model.Tools),
		Reasoning: cmp.Or(model.Reasoning(f.reasoning), model.Reasoning(file.Model.Reasoning)),
		Context:   file.Model.Context,
		MaxOutput: file.Model.MaxOutput,
		Idle:      file.Model.IdleTimeout.Value(),
		Total:     file.Model.TotalTimeout.Value(),
		Attempts:  file.Model.Attempts,
	}
	m.reach(cmp.Or(f.baseURL, file.Model.BaseURL))
	m.Name = cmp.Or(m.Name, f.standard)
	if m.Name == "" {
		name, err := defaultModel(a.env)
		if err != nil {
			return runSettings{}, err
		}
		m.Name = name
		a.say("note", "no model was named; "+name+" is the first whose key is set")
	}
	if err := m.anchor(); err != nil {
		return runSettings{}, err
	}
	if err := m.appoint(f.agents, file.Commands, root); err != nil {
		return runSettings{}, err
	}
	m.complete()
	if p, ok := file.Prices[m.asked()]; ok {
		m.Price = &hone.Price{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	}
	walls, err := resolveWalls(f.walls, file.Sandbox, root, f.walls.standard)
	if err != nil {
		return runSettings{}, err
	}
	return runSettings{Model: m, Send: file.Guard.Send, Walls: walls, Trust: resolveTrust(f.trust, file)}, costKnown(f, file, m)
}

// costKnown refuses a cost limit that could not be kept.
func costKnown(f loopFlags, file config.File, m modelSettings) error {
	limited := cmp.Or(f.limits.maxCost, file.Limits.MaxCost) > 0
	if limited && m.Agent != nil && m.Agent.Wire == "" {
		return usage("a cost limit was given, and nobody counts what "+m.Name+" uses: it has no forwarder",
			"give it wire and base-url-env in [commands."+m.Agent.Name+"], or leave --max-cost out")
	}
	if limited && m.Price == nil {
		return usage("a cost limit was given, and the price of "+m.asked()+" is not known",
			"write into .config/hone.toml: [prices.\""+m.asked()+"\"] with input = and output =, in USD per million tokens")
	}
	return nil
}

func resolveLimits(f limitFlags, file config.Limits, rounds int) hone.Limits {
	return hone.Limits{
		Rounds: cmp.Or(f.rounds, rounds), Patience: cmp.Or(f.patience, file.Patience),
		Tokens: cmp.Or(f.maxTokens, file.MaxTokens, defaultTokens),
		Cost:   cmp.Or(f.maxCost, file.MaxCost),
		Time:   cmp.Or(f.maxTime, file.MaxTime.Value(), defaultTime),
	}
}

// raised are a run's limits with those that a resume raises. A lower one is
// refused: what a run was promised is not taken back.
func raised(l hone.Limits, f limitFlags) (hone.Limits, error) {
	if lower(f.rounds, l.Rounds) || lower(f.maxTokens, l.Tokens) || lower(f.maxCost, l.Cost) || lower(f.maxTime, l.Time) ||
		lower(f.patience, l.Patience) {
		return l, usage("a resumed run's limits can only be raised", "hone show last, to see them")
	}
	l.Rounds, l.Patience = cmp.Or(f.rounds, l.Rounds), cmp.Or(f.patience, l.Patience)
	l.Tokens = cmp.Or(f.maxTokens, l.Tokens)
	l.Cost = cmp.Or(f.maxCost, l.Cost)
	l.Time = cmp.Or(f.maxTime, l.Time)
	return l, nil
}

// lower reports whether a limit that was asked for is below the one that there
// is. Zero asks for nothing; a limit where there was none is a lower one.
func lower[T cmp.Ordered](asked, there T) bool {
	var none T
	return asked != none && (there == none || asked < there)
}

// configError is what is wrong with a configuration file: it names the place
// itself.
func configError(err error) error { return usage(err.Error(), "nothing was sent or written") }

// without are the names that are not among the exceptions.
func without(names, exceptions []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(exceptions, n) })
}
