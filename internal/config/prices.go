package config

import "fmt"

// Price is one [prices."provider/name"] section, in USD for a million tokens.
// Where the file does not say what cached tokens cost, they cost as much as
// others that are read.
type Price struct {
	Input, Output, CacheRead, CacheWrite float64
}

// priceList is what was read of the prices.
type priceList map[string]*quote

// quote is one model's prices, and which of them stand where.
type quote struct {
	Price
	lines map[string]int
	first leaf
}

func (q *quote) keys() map[string]setter {
	return map[string]setter{
		"input":       amount(&q.Input, true, "input = 1.25"),
		"output":      amount(&q.Output, true, "output = 10"),
		"cache-read":  amount(&q.CacheRead, true, "cache-read = 0.125"),
		"cache-write": amount(&q.CacheWrite, true, "cache-write = 1.25"),
	}
}

// take takes in one leaf below prices.
func (ps priceList) take(l leaf) error {
	const hint = `write [prices."provider/name"], and below it input and output in USD for a million tokens`
	if len(l.path) == 1 && l.empty() {
		return nil
	}
	if len(l.path) == 1 || len(l.path) == 2 && !l.empty() {
		return l.wrong("it is not a section of one model's prices", hint)
	}
	name := l.path[1]
	if problem, _ := badModel(name); problem != "" {
		return l.wrong(problem, hint)
	}
	q := ps[name]
	if q == nil {
		q = &quote{lines: map[string]int{}, first: l}
		ps[name] = q
	}
	if len(l.path) == 2 {
		return nil
	}
	keys := q.keys()
	key, set, ok := find(keys, l.path[2:])
	if !ok {
		return l.wrong("there is no such key", unknownHint(l.path[2], sorted(keys)))
	}
	q.lines[key] = l.line
	return set(l)
}

// complete is the finished list, nil where there is none.
func (ps priceList) complete() (map[string]Price, error) {
	if len(ps) == 0 {
		return nil, nil
	}
	prices := make(map[string]Price, len(ps))
	for _, name := range sorted(ps) {
		q := ps[name]
		for _, key := range []string{"input", "output"} {
			if q.lines[key] == 0 {
				at := leaf{path: []string{"prices", name}, line: q.first.line}
				return nil, at.wrong(fmt.Sprintf("the price %q is missing", key), fmt.Sprintf("write %s = 0 if it costs nothing", key))
			}
		}
		if q.lines["cache-read"] == 0 {
			q.CacheRead = q.Input
		}
		if q.lines["cache-write"] == 0 {
			q.CacheWrite = q.Input
		}
		prices[name] = q.Price
	}
	return prices, nil
}
