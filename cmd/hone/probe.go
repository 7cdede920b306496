package main

import "context"

// prober is a model whose provider can be asked whether it is there at no
// cost.
type prober interface {
	Probe(ctx context.Context) error
}

// probe is whom to ask about a model's provider; nil where there is nobody.
func (m modelSettings) probe(env func(string) string) (prober, error) {
	opened, err := m.connect(env)
	if err != nil {
		return nil, err
	}
	p, _ := opened.(prober)
	return p, nil
}
