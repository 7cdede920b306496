package paid

import "hone/model"

// Price is what a model's tokens cost, in USD per million.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`

	// A call whose prompt has more than Above tokens, cached ones included, costs these
	// prices in full; what it writes to the cache costs more by the same factor as other
	// input. 0 means that the length of a prompt does not matter.
	Above         int64   `json:"above,omitempty"`
	LongInput     float64 `json:"long_input,omitempty"`
	LongOutput    float64 `json:"long_output,omitempty"`
	LongCacheRead float64 `json:"long_cache_read,omitempty"`

	// Configured means that it is the user's own, so that it counts even if the server
	// reports what a call costs.
	Configured bool `json:"configured,omitempty"`
}

// forLength returns the prices of a call whose prompt has that many tokens.
func (p Price) forLength(prompt int64) Price {
	if p.Above == 0 || prompt <= p.Above {
		return p
	}
	long := Price{Input: p.LongInput, Output: p.LongOutput, CacheRead: p.LongCacheRead, CacheWrite: p.LongInput}
	if p.Input > 0 {
		long.CacheWrite = p.CacheWrite * p.LongInput / p.Input
	}
	return long
}

// maxReportedFactor is how much the cost that a server reports may differ from that of the
// list. More is a mistake in its units, such as cents for dollars or a price for a token.
const maxReportedFactor = 100

// costOf returns the cost in USD; nil if it is not known. p is nil if the price is not.
func costOf(u model.Usage, p *Price) *float64 {
	if p == nil {
		return u.Cost
	}
	at := p.forLength(u.Input + u.CacheRead + u.CacheWrite)
	listed := (float64(u.Input)*at.Input + float64(u.Output)*at.Output +
		float64(u.CacheRead)*at.CacheRead + float64(u.CacheWrite)*at.CacheWrite) / 1e6
	if u.Cost == nil || p.Configured || *u.Cost > listed*maxReportedFactor && listed > 0 || *u.Cost < listed/maxReportedFactor {
		return &listed
	}
	return u.Cost
}

// maxCost returns the most that a call can cost, in USD: the tokens that it sends are not
// known before, so the dearer prices count. in and out are tokens.
func (p Price) maxCost(in, out int64) float64 {
	long := p.forLength(p.Above + 1)
	return (float64(in)*max(p.Input, p.CacheRead, p.CacheWrite, long.Input, long.CacheRead, long.CacheWrite) +
		float64(out)*max(p.Output, long.Output)) / 1e6
}
