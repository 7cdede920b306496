package harness

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"hone"
	"hone/internal/config"
	"hone/internal/lazyregexp"
	"hone/loop"
)

//go:embed prices.tsv
var priceTable string

// ListPrice is a model's list price in USD per million tokens, and its limits in tokens, as
// its provider publishes them.
type ListPrice struct {
	Provider string // one of hone's, or the host of an endpoint
	Model    string // exactly as the price was published
	hone.Price
	Context, MaxOutput int64  // 0 if it is not known
	Read               string // the date on which Source was read
	Source             string
}

// Elsewhere reports whether the price is that of an endpoint, and not of a provider of hone's.
func (p ListPrice) Elsewhere() bool { return strings.Contains(p.Provider, ".") }

// ListPrices returns the prices that hone knows by itself.
func ListPrices() []ListPrice {
	r := csv.NewReader(strings.NewReader(priceTable))
	r.Comma, r.Comment = '\t', '#'
	rows, err := r.ReadAll()
	if err != nil {
		panic(err) // it is part of the program
	}
	var all []ListPrice
	for _, row := range rows[1:] {
		number := func(column int) float64 {
			n, _ := strconv.ParseFloat(row[column], 64) // "-" is 0
			return n
		}
		all = append(all, ListPrice{Provider: row[0], Model: row[1], Read: row[12], Source: row[13],
			Price: hone.Price{Input: number(2), Output: number(3), CacheRead: number(4), CacheWrite: number(5),
				Above: int64(number(6)), LongInput: number(7), LongOutput: number(8), LongCacheRead: number(9)},
			Context: int64(number(10)), MaxOutput: int64(number(11))})
	}
	return all
}

// origin says where a price is from. It begins with what it is the price of.
func (p ListPrice) origin() string {
	if p.Read == "" {
		return p.Source
	}
	return p.Provider + " " + p.Model + ": " + p.Source + ", " + p.Read
}

// What the user's own machine does costs nothing.
var (
	freeModel   = ListPrice{Source: "free: it runs on this machine"}
	localServer = ListPrice{Source: "taken to be free: the server is on this machine"}
)

// listPrice returns what hone knows of a model. At an address that is not the provider's own,
// such as a gateway's, the list price of the three large providers is the best guess: others
// have none, because everybody may offer their models.
func (h Host) listPrice(m loop.Model) (ListPrice, bool) {
	provider, name, _ := strings.Cut(m.PricedAs(), "/")
	u, err := url.Parse(h.foreignAddress(m))
	switch {
	case err != nil:
		return ListPrice{}, false
	case provider == "script", provider == "ollama" && !strings.HasSuffix(name, "cloud") && u.Hostname() != "ollama.com":
		return freeModel, true
	}
	host := strings.Replace(u.Hostname(), "api.together.ai", "api.together.xyz", 1)
	all := ListPrices()
	for _, published := range []string{name, datedName.ReplaceAllString(name, "")} {
		for _, p := range all {
			large := !p.Elsewhere()
			switch {
			case host == "" && p.Provider == provider && p.Model == published,
				host != "" && p.Provider == host && p.Model == published,
				host != "" && large && plainName(p.Model) == plainName(published):
				return p, true
			}
		}
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return localServer, u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// datedName matches the date of a snapshot, which costs what its model costs.
var datedName = lazyregexp.New(`[-@](20\d{6}|20\d\d-\d\d-\d\d)(-v\d(:\d)?)?$`)

// decoration matches what clouds and gateways add to the names of models.
var decoration = lazyregexp.New(`^(.*/)?(([a-z]+\.)?(anthropic|openai|google)\.)?|-v\d(:\d)?$`)

func plainName(name string) string {
	return strings.ReplaceAll(decoration.ReplaceAllString(name, ""), ".", "-")
}

// limitsOfSimilar returns the limits of the provider's listed models that share the longest prefix with the model's name; if there
// are several, the smallest. So a new model of a known family has limits before the list has the model. Zero means that no listed
// model is similar.
func limitsOfSimilar(model string) (context, output int64) {
	provider, name, _ := strings.Cut(model, "/")
	most := len("gpt-")
	for _, p := range ListPrices() {
		common := 0
		for common < min(len(name), len(p.Model)) && name[common] == p.Model[common] {
			common++
		}
		switch {
		case p.Provider != provider || common < most || p.Context == 0 || p.MaxOutput == 0:
		case common > most:
			most, context, output = common, p.Context, p.MaxOutput
		default:
			context, output = min(context, p.Context), min(output, p.MaxOutput)
		}
	}
	return context, output
}

// It also sets the limits that are not known yet.
func (h Host) setPrice(m *loop.Model, configured map[string]config.Price) {
	listed, ok := h.listPrice(*m)
	if !ok && h.foreignAddress(*m) == "" {
		listed.Context, listed.MaxOutput = limitsOfSimilar(m.PricedAs())
	}
	m.Context = cmp.Or(m.Context, listed.Context)
	m.MaxOutput = cmp.Or(m.MaxOutput, listed.MaxOutput, defaultOutput)
	if own, isOwn := configured[m.PricedAs()]; isOwn {
		ok, listed = true, ListPrice{Price: hone.Price{Input: own.Input, Output: own.Output, CacheRead: own.CacheRead, CacheWrite: own.CacheWrite, Configured: true}}
	}
	if ok {
		m.Price, m.PriceSource = &listed.Price, listed.origin()
	}
}

// A resumed run may call the model at another endpoint. The prices of the calls that were made stay recorded, and so does
// the user's own price.
func (h Host) renewListPrice(m *loop.Model) {
	now, ok := h.listPrice(*m)
	was, _, _ := strings.Cut(m.PriceSource, ": ")
	if is, _, _ := strings.Cut(now.origin(), ": "); m.Price != nil && m.Price.Configured || ok && is == was {
		return
	}
	m.Price, m.PriceSource = nil, ""
	h.setPrice(m, nil)
}
