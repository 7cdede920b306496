package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	openaisdk "github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"hone/model"
	"hone/model/anthropic"
	"hone/model/gemini"
	"hone/model/modeltest"
	"hone/model/openai"
)

// hone's own providers, which use streams, work through a forwarder.
func TestProvidersThroughForwarder(t *testing.T) {
	turn := modeltest.Turn{Text: "Grüße, " + strings.Repeat("wörld ", 50), Thinking: "hm", Split: 7,
		Calls: []model.Call{{ID: "c1", Name: "read", Args: `{"path":"a"}`}}, Usage: &model.Usage{Input: 30, Output: 20, Reasoning: 4, CacheRead: 3}}
	for name, test := range map[string]struct {
		wire string
		make func(url string) model.Model
	}{
		"gemini": {Gemini, func(url string) model.Model {
			return gemini.New(gemini.Config{Name: "g", BaseURL: url, Key: "dummy"})
		}},
		"anthropic": {Anthropic, func(url string) model.Model {
			return anthropic.New(anthropic.Config{Name: "m", BaseURL: url, Key: "dummy"})
		}},
		"chat": {OpenAI, func(url string) model.Model {
			return openai.New(openai.Config{Name: "m", BaseURL: url, Key: "dummy", Wire: openai.Chat})
		}},
		"responses": {OpenAI, func(url string) model.Model {
			return openai.New(openai.Config{Name: "m", BaseURL: url, Key: "dummy", Wire: openai.Responses})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			up := modeltest.NewServer(t, turn)
			ledger := &book{grant: 60}
			f, addr := open(t, ForwardConfig{Wire: test.wire, Base: up.URL, Reserve: ledger.Reserve})
			req := model.Request{MaxOutput: 100, Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Text: "hi"}}}},
				Tools: []model.Spec{{Name: "read", Schema: []byte(`{"type":"object"}`)}}}
			got, err := test.make(f.URL(addr)).Generate(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got.Text() != turn.Text || len(got.Calls()) != 1 || got.Usage == nil || *got.Usage != *turn.Usage {
				t.Errorf("reply: %+v", got)
			}
			if done := ledger.one(t); done.used == nil || *done.used != *turn.Usage {
				t.Errorf("settled with %+v, %v", done.used, done.fault)
			}
			if sent := string(up.Received()[0].Body); !strings.Contains(sent, ":60") || strings.Contains(sent, ":100") {
				t.Errorf("the limit was not lowered in %s", sent)
			}
		})
	}
}

// The SDKs that agents use retry on their own, but not after the first response
// that says that the budget is used up, and they show this message. Package
// genaitest tests Google's.
func TestClientsDoNotRetry(t *testing.T) {
	clients := map[string]struct {
		wire string
		call func(ctx context.Context, url string) error
	}{
		"anthropic": {Anthropic, func(ctx context.Context, url string) error {
			c := anthropicsdk.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("dummy"))
			_, err := c.Messages.New(ctx, anthropicsdk.MessageNewParams{Model: "m", MaxTokens: 10,
				Messages: []anthropicsdk.MessageParam{anthropicsdk.NewUserMessage(anthropicsdk.NewTextBlock("hi"))}})
			return err
		}},
		"openai": {OpenAI, func(ctx context.Context, url string) error {
			c := openaisdk.NewClient(openaioption.WithBaseURL(url), openaioption.WithAPIKey("dummy"))
			_, err := c.Chat.Completions.New(ctx, openaisdk.ChatCompletionNewParams{Model: "m",
				Messages: []openaisdk.ChatCompletionMessageParamUnion{openaisdk.UserMessage("hi")}})
			return err
		}},
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			ledger := &book{refuse: errors.New("nothing is left")}
			f, addr := open(t, ForwardConfig{Wire: client.wire, Base: forbid(t), Reserve: ledger.Reserve})
			err := client.call(t.Context(), f.URL(addr))
			if err == nil || !strings.Contains(err.Error(), "the budget of this run is used up") {
				t.Errorf("the client returns %v", err)
			}
			if ledger.asked != 1 || !errors.Is(f.Err(), ledger.refuse) {
				t.Errorf("the client made %d calls, want 1; the last error is %v", ledger.asked, f.Err())
			}
		})
	}
}

// The next call reuses the connection, and ServeConn returns when it is closed.
func TestConnectionReuse(t *testing.T) {
	up := modeltest.NewServer(t, modeltest.Turn{Text: "hello", Usage: &model.Usage{Input: 1, Output: 1}})
	f, addr := open(t, ForwardConfig{Wire: Anthropic, Base: up.URL, Reserve: (&book{}).Reserve})
	var dialled atomic.Int64
	transport := &http.Transport{DialContext: func(ctx context.Context, network, a string) (net.Conn, error) {
		dialled.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, a)
	}}
	for range 3 {
		m := anthropicsdk.NewClient(anthropicoption.WithBaseURL(f.URL(addr)), anthropicoption.WithAPIKey("dummy"),
			anthropicoption.WithHTTPClient(&http.Client{Transport: transport}))
		if _, err := m.Messages.New(t.Context(), anthropicsdk.MessageNewParams{Model: "m", MaxTokens: 10,
			Messages: []anthropicsdk.MessageParam{anthropicsdk.NewUserMessage(anthropicsdk.NewTextBlock("hi"))}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("%d connections were made for 3 calls", n)
	}
	transport.CloseIdleConnections()

	inside, outside := net.Pipe()
	ended := make(chan struct{})
	go func() {
		f.ServeConn(outside)
		close(ended)
	}()
	inside.Close()
	<-ended
	f.Close()
	f.ServeConn(dial(t, addr, "")) // returns immediately
}
