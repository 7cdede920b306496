package hone

import "hone/model"

// Price is what a model's tokens cost, in USD per million. It is the same for every
// length of a prompt.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// The cost is in USD.
func (p Price) cost(u model.Usage) float64 {
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output +
		float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite) / 1e6
}

// The cost is in USD; in and out are tokens.
func (p Price) maxCost(in, out int64) float64 {
	return (float64(in)*max(p.Input, p.CacheRead, p.CacheWrite) + float64(out)*p.Output) / 1e6
}
