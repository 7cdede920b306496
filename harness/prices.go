package harness

import (
	_ "embed"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"hone"
	"hone/internal/config"
	"hone/loop"
)

//go:embed prices.toml
var priceTable []byte

// ListPrice is a model's list price in USD per million tokens, as its provider
// publishes it.
type ListPrice struct {
	Model string `toml:"model"` // PROVIDER/NAME, exactly as the price was published
	config.Price
	Source string         `toml:"source"` // page of the provider
	Read   toml.LocalDate `toml:"read"`   // when the page was read
}

// ListPrices returns the prices that hone knows by itself.
func ListPrices() []ListPrice {
	var table struct {
		Price []ListPrice `toml:"price"`
	}
	if err := toml.Unmarshal(priceTable, &table); err != nil {
		panic(err) // it is part of the program
	}
	return table.Price
}

// The list price counts only at the provider's own endpoint: what another server costs is not known.
func (h Host) setPrice(m *loop.Model, configured map[string]config.Price) {
	p, ok := configured[m.PricedAs()]
	if !ok && h.foreignAddress(*m) == "" {
		prices := ListPrices()
		i := slices.IndexFunc(prices, func(p ListPrice) bool { return p.Model == m.PricedAs() })
		if i < 0 {
			return
		}
		p, ok, m.PriceSource = prices[i].Price, true, prices[i].Source
	}
	if ok {
		m.Price = &hone.Price{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	}
}

// A resumed run may call the model at another endpoint. The prices of the calls that were made stay recorded.
func (h Host) dropListPrice(m *loop.Model) {
	if m.PriceSource != "" && h.foreignAddress(*m) != "" {
		m.Price, m.PriceSource = nil, ""
	}
}
