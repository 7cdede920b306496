package harness

import (
	"context"

	"hone/loop"
)

// Prober is a model whose provider can be asked at no cost whether it answers.
type Prober interface {
	Probe(ctx context.Context) error
}

// Prober is whom to ask about a model's provider; nil: there is none to ask.
func (h Host) Prober(m loop.Model) (Prober, error) {
	opened, err := h.connect(m)
	if err != nil {
		return nil, err
	}
	p, _ := opened.(Prober)
	return p, nil
}
