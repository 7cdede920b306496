package paid

import (
	"math"
	"testing"

	"hone/model"
)

// TestCostOf: the length of the prompt decides the price, what the server reports comes
// before the list, and the user's own price before both.
func TestCostOf(t *testing.T) {
	listed := Price{Input: 1, Output: 10, CacheRead: 0.1, CacheWrite: 1.25, Above: 100_000, LongInput: 2, LongOutput: 15, LongCacheRead: 0.2}
	own := listed
	own.Configured = true
	const million = 1e6
	for name, tt := range map[string]struct {
		used model.Usage
		p    *Price
		want float64 // below 0: not known
	}{
		"short":                   {model.Usage{Input: 50_000, CacheRead: 50_000, Output: 1000}, &listed, (50_000 + 5000 + 10_000) / million},
		"long":                    {model.Usage{Input: 50_000, CacheRead: 50_001, Output: 1000}, &listed, (100_000 + 10_000.2 + 15_000) / million},
		"long, cached":            {model.Usage{CacheWrite: 200_000}, &listed, 200_000 * 2.5 / million},
		"no price":                {model.Usage{Input: 1}, nil, -1},
		"reported, no price":      {model.Usage{Input: 1, Cost: new(0.5)}, nil, 0.5},
		"reported":                {model.Usage{Input: 1000, Cost: new(0.002)}, &listed, 0.002},
		"reported in cents":       {model.Usage{Input: 1000, Cost: new(0.2)}, &listed, 0.001},
		"reported per token":      {model.Usage{Input: 1000, Cost: new(0.000001)}, &listed, 0.001},
		"reported 0":              {model.Usage{Input: 1000, Cost: new(0.0)}, &listed, 0.001},
		"reported, own price":     {model.Usage{Input: 1000, Cost: new(0.002)}, &own, 0.001},
		"reported, taken as free": {model.Usage{Input: 1000, Cost: new(0.002)}, &Price{}, 0.002},
	} {
		got := costOf(tt.used, tt.p)
		if (got == nil) != (tt.want < 0) || got != nil && math.Abs(*got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if got != nil && tt.p != nil && tt.used.Cost == nil {
			if most := tt.p.maxCost(tt.used.Total()-tt.used.Output, tt.used.Output); most < *got {
				t.Errorf("%s: at most %v was reserved, but it cost %v", name, most, *got)
			}
		}
	}
}
