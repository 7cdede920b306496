package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"hone/model"
)

// asker is a provider of a protocol that sends the messages as they are and
// receives {"text": "…"}.
type asker struct{ url, key string }

// Generate makes one attempt.
func (a asker) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	x := model.NewExchange(ctx, model.Timeouts{})
	defer x.Close()
	body, err := a.post(x, req)
	var received struct{ Text string }
	if err == nil {
		err = json.Unmarshal(body, &received)
	}
	if err != nil {
		return model.Reply{}, x.Fault(err) // describes err by what x recorded
	}
	if req.Stream != nil {
		req.Stream(received.Text)
	}
	return model.Reply{Parts: []model.Part{{Text: received.Text}}, Finish: model.Stop, Raw: x.Raw()}, nil
}

// post sends the request and returns the body of a successful response.
func (a asker) post(x *model.Exchange, req model.Request) ([]byte, error) {
	sent, err := json.Marshal(req.Messages)
	if err != nil {
		return nil, err
	}
	post, err := http.NewRequestWithContext(x.Context(), http.MethodPost, a.url, bytes.NewReader(sent))
	if err != nil {
		return nil, err
	}
	post.Header.Set("Authorization", "Bearer "+a.key)
	res, err := x.Client().Do(post)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	// The body of an error is read too: Fault takes the message from it.
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = errors.New(res.Status)
	}
	return body, err
}

// A complete provider.
func ExampleExchange() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, `{"error": {"message": "wrong key"}}`, http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"text": "Paris"}`)
	}))
	defer server.Close()
	req := model.Request{Messages: []model.Message{
		{Role: model.User, Parts: []model.Part{{Text: "What is the capital of France?"}}},
	}}
	for _, key := range []string{"secret", "guess"} {
		reply, err := asker{server.URL, key}.Generate(context.Background(), req)
		fmt.Printf("%q, %v\n", reply.Text(), err)
	}
	// Output:
	// "Paris", <nil>
	// "", auth (HTTP 401): wrong key
}
