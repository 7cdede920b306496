package harness

import (
	"context"

	"hone/loop"
)

// Prober is a model that can find out whether its provider responds, at no
// cost.
type Prober interface {
	Probe(ctx context.Context) error
}

// Prober returns the prober of a model's provider; nil if it has none.
func (h Host) Prober(m loop.Model) (Prober, error) {
	opened, err := h.connect(m)
	if err != nil {
		return nil, err
	}
	p, _ := opened.(Prober)
	return p, nil
}
