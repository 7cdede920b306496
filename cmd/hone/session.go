package main

import (
	"context"
	"encoding/json"
	"fmt"

	"hone"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// session is a run that is about to be driven, fresh or gone on with.
type session struct {
	*place
	journal *journal.Journal
	limits  hone.Limits
	model   model.Model
	start   *hone.Start // nil: the run is gone on with
	output  outputFlags
}

// begin makes a run of settings that are resolved and checked, and drives it.
// Nothing is written before the model is known to have what it needs.
func (a *app) begin(ctx context.Context, root string, start *hone.Start, m modelSettings, o outputFlags, drive func(session) error) error {
	opened, err := m.open(a.env)
	if err != nil {
		return err
	}
	p, err := a.enter(ctx, root, true)
	if err != nil {
		return err
	}
	defer p.leave()
	j, err := p.home.Create(p.home.NewRun())
	if err != nil {
		return err
	}
	defer j.Close()
	return drive(session{place: p, journal: j, limits: start.Limits, model: opened, start: start, output: o})
}

// goOn reads the settings of a run's start event into settings, which holds m,
// and opens the model. One that cannot be opened is only missed when it is
// asked.
func (a *app) goOn(s *session, start hone.Start, settings any, m *modelSettings, baseURL string) error {
	if err := json.Unmarshal(start.Settings, settings); err != nil {
		return fmt.Errorf("read the settings of the run: %w", err)
	}
	if baseURL != "" {
		m.reach(baseURL)
	}
	opened, err := m.open(a.env)
	if err != nil {
		opened = absent{err}
	}
	s.model = opened
	return nil
}

// run is the engine's view of the session.
func (s session) run(rules workspace.Rules, m modelSettings) *hone.Run {
	return &hone.Run{Tree: s.tree, Journal: s.journal, Rules: rules, Limits: s.limits, Retry: hone.Retry{Attempts: m.Attempts}}
}
