package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"hone/model"
)

// Probe checks the server and the key by requesting the list of models, which
// costs no tokens. It does not check the model's name, because not every
// compatible server offers single models. A server without a list passes too.
func (c Config) Probe(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	list, err := url.JoinPath(c.BaseURL, "models")
	if err != nil {
		return err
	}
	x := model.NewExchange(ctx, c.Timeouts)
	defer x.Close()
	req, err := http.NewRequestWithContext(x.Context(), http.MethodGet, list, nil)
	if err != nil {
		return err
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := x.Client().Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		err = errors.Join(err, resp.Body.Close())
	}
	switch s := x.Status(); {
	case err != nil:
		return c.fault(x, err)
	case s == http.StatusOK, s == http.StatusNotFound, s == http.StatusMethodNotAllowed:
		return nil
	default:
		message, code := model.ErrorBody(x.Body())
		return c.fault(x, model.StatusError(s, x.Header(), message, code))
	}
}
