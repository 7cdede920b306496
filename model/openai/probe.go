package openai

import (
	"context"
	"errors"
	"io"
	"net/http"

	"hone/model"
)

// Probe checks the server and the key by requesting the list of models, which
// costs no tokens. It does not check the model's name, because not every
// compatible server offers single models. A server without a list passes too.
func (c Config) Probe(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	x := model.NewExchange(ctx, c.Timeouts)
	defer x.Close()
	body, err := c.send(x, http.MethodGet, "models", nil)
	if err == nil {
		_, err = io.Copy(io.Discard, body)
		err = errors.Join(err, body.Close())
	}
	if s := x.Status(); s == http.StatusNotFound || s == http.StatusMethodNotAllowed {
		return nil
	}
	if err != nil {
		return c.fault(x, err)
	}
	return nil
}
