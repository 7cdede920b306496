package main

import (
	"context"
	"encoding/json"
	"fmt"

	"hone"
	"hone/history"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// session is a run that is about to be driven, fresh or gone on with.
type session struct {
	*place
	journal *journal.Journal
	limits  hone.Limits
	models  []model.Model // in the order of the settings that they were opened by
	start   *hone.Start   // nil: the run is gone on with
	output  outputFlags
	// replayed is where it goes what comes of going through the run once more;
	// nil: the run is driven.
	replayed *hone.Replayed
}

// begin makes a run of settings that are resolved and checked, and drives it.
// Nothing is written before the models are known to have what they need.
func (a *app) begin(ctx context.Context, root string, start *hone.Start, o outputFlags, drive func(session) error, models ...modelSettings) error {
	opened := make([]model.Model, len(models))
	for i, m := range models {
		var err error
		if opened[i], err = m.open(a.env); err != nil {
			return err
		}
	}
	p, err := a.enter(ctx, root, true)
	if err != nil {
		return err
	}
	defer p.leave()
	if err := p.include(trustOf(*start).Include); err != nil {
		return err
	}
	j, err := p.home.Create(p.home.NewRun())
	if err != nil {
		return err
	}
	defer j.Close()
	return drive(session{place: p, journal: j, limits: start.Limits, models: opened, start: start, output: o})
}

// goOn reads the settings of a run's start event into settings, which holds the
// models', and opens those. One that cannot be opened is only missed when it is
// asked.
func (a *app) goOn(s *session, start hone.Start, settings any, baseURL string, models ...*modelSettings) error {
	if err := json.Unmarshal(start.Settings, settings); err != nil {
		return fmt.Errorf("read the settings of the run: %w", err)
	}
	for _, m := range models {
		if baseURL != "" {
			m.reach(baseURL)
		}
		opened, err := m.open(a.env)
		if err != nil {
			opened = absent{err}
		}
		s.models = append(s.models, opened)
	}
	return nil
}

// run is the engine's view of the session.
func (s session) run(rules workspace.Rules, of runSettings) *hone.Run {
	r := &hone.Run{Tree: s.tree, Journal: s.journal, Rules: rules, Limits: s.limits, Retry: hone.Retry{Attempts: of.Model.Attempts}}
	of.Trust.govern(r)
	if s.replayed == nil {
		r.Before = s.before()
	}
	return r
}

// before looks for what is known of the tree: from the run itself, where it is
// gone on with, or else from the one before.
func (s session) before() func() workspace.Manifest {
	run := s.journal.Run()
	if s.start != nil {
		run = s.lock.Last
	}
	return func() workspace.Manifest { return history.LastManifest(s.home, run) }
}
