package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"hone/model"
)

// prober is a model whose provider can be asked whether it is there at no
// cost.
type prober interface {
	Probe(ctx context.Context) error
}

// modelList is the list of models of a server that speaks OpenAI's protocol:
// asking for it costs nothing, and tells whether the server is there and takes
// the key. Not each of the many servers has an entry for one model.
type modelList struct {
	url string
	key string // empty: none is sent
	// variable is where the key is looked for; empty where none is needed.
	variable string
}

// listOf is where a provider's models are listed.
func (m modelSettings) listOf(p provider, env func(string) string) (modelList, error) {
	base, err := m.address(p, env)
	if err != nil {
		return modelList{}, err
	}
	l := modelList{}
	l.key, l.variable = p.key(env)
	l.url, err = url.JoinPath(cmp.Or(base, "https://api.openai.com/v1"), "models")
	return l, err
}

// Probe asks for the list. A server that has none is there all the same.
func (l modelList) Probe(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return err
	}
	if l.key != "" {
		req.Header.Set("Authorization", "Bearer "+l.key)
	}
	// A redirect would take the key to whomever it leads to.
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(req)
	if err != nil {
		return &model.Error{Kind: model.Unreachable, Message: withoutURL(err), Hint: "is the address right, and is a server running there? see --base-url"}
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<16)
	fault := &model.Error{Kind: model.Invalid, Status: resp.StatusCode, Message: http.StatusText(resp.StatusCode)}
	switch s := resp.StatusCode; {
	case s == http.StatusOK, s == http.StatusNotFound, s == http.StatusMethodNotAllowed:
		return nil
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		fault.Kind = model.Auth
		if l.variable != "" {
			fault.Hint = fmt.Sprintf("is the key in %s right?", l.variable)
		}
	case s >= 500:
		fault.Kind = model.Overloaded
	}
	return fault
}

// withoutURL words a request's error without its address, which may hold a
// password.
func withoutURL(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return model.OneLine(err.Error())
}

// probe is whom to ask about a model's provider; nil where there is nobody.
func (m modelSettings) probe(env func(string) string) (prober, error) {
	opened, err := m.open(env)
	if err != nil {
		return nil, err
	}
	if p, ok := opened.(prober); ok {
		return p, nil
	}
	p, _, err := m.split()
	if err != nil || p.name == "script" {
		return nil, err
	}
	return m.listOf(p, env)
}
