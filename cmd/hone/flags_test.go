package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hone"
	"hone/cmd/hone/kinds"
	"hone/internal/config"
	"hone/loop"
)

func TestRaised(t *testing.T) {
	had := hone.Limits{Rounds: 5, Tokens: 1000, Time: time.Hour}
	for _, test := range []struct {
		name string
		ask  config.Values
		want hone.Limits // zero if refused
	}{
		{"nothing is asked for", nil, had},
		{"the same", config.Values{config.Rounds.Name: 5, config.MaxTokens.Name: int64(1000), config.MaxTime.Name: time.Hour}, had},
		{"one is raised", config.Values{config.Rounds.Name: 6}, hone.Limits{Rounds: 6, Tokens: 1000, Time: time.Hour}},
		{"all are raised", config.Values{config.Rounds.Name: 6, config.MaxTokens.Name: int64(1001), config.MaxTime.Name: 2 * time.Hour}, hone.Limits{Rounds: 6, Tokens: 1001, Time: 2 * time.Hour}},
		{"rounds are lowered", config.Values{config.Rounds.Name: 4, config.MaxTokens.Name: int64(2000)}, hone.Limits{}},
		{"tokens are lowered", config.Values{config.MaxTokens.Name: int64(999)}, hone.Limits{}},
		{"time is lowered", config.Values{config.MaxTime.Name: time.Minute}, hone.Limits{}},
		{"a cost limit where there was none", config.Values{config.MaxCost.Name: float64(100)}, hone.Limits{}},
	} {
		got, err := loop.RaiseLimits(had, test.ask, "last")
		switch {
		case test.want == hone.Limits{}:
			if !errors.As(err, new(*hone.UsageError)) || got != had {
				t.Errorf("%s: %+v, %v; want it refused", test.name, got, err)
			}
		case err != nil || got != test.want:
			t.Errorf("%s: %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
	costly, err := loop.RaiseLimits(hone.Limits{Rounds: 1, Cost: 1.5}, config.Values{config.MaxCost.Name: float64(2)}, "last")
	if err != nil || costly.Cost != 2 {
		t.Errorf("a cost limit is raised: %+v, %v", costly, err)
	}
}

// The help of --sandbox names the default, in the loop's own words too.
func TestSandboxDefault(t *testing.T) {
	a := &app{}
	for _, k := range kinds.All() {
		text := a.loopCommand(k).Flags().Lookup("sandbox").Usage
		if !strings.HasSuffix(text, " (default auto)") || strings.Count(text, "default") != 1 {
			t.Errorf("%s: %q does not end in the default", k.Name, text)
		}
	}
}
