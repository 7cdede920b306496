package modeltest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"hone/model"
)

func faultTests() []conformanceTest {
	return []conformanceTest{
		{"cut in the middle", cutStream},
		{"ended without the last event", unfinishedStream},
		{"garbage", garbage},
		{"rate limited", rateLimited},
		{"overloaded", overloaded},
		{"key rejected", keyRejected},
		{"context too long", contextTooLong},
		{"unknown model", unknownModel},
		{"canceled in the middle", canceled},
		{"canceled before", canceledBefore},
		{"deadline of the caller", callersDeadline},
		{"idle timeout", idle},
		{"silent from the start", silentStart},
		{"unreachable", unreachable},
		{"no redirect is followed", redirect},
		{"key only in headers", keyOnlyInHeaders},
	}
}

// long is sent in many events.
var long = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20)

func cutStream(t *testing.T, p Provider) {
	e := p.fault(t, Turn{Text: long, Cut: true}, model.Cut)
	if !e.Temporary() {
		t.Errorf("%v is not temporary", e)
	}
	if p.has(Tools) {
		call := model.Call{ID: "call_1", Name: "write", Args: string(encode(object{"path": "a", "content": long}))}
		p.fault(t, Turn{Calls: []model.Call{call}, Cut: true}, model.Cut)
	}
}

func unfinishedStream(t *testing.T, p Provider) {
	p.skip(t, Streaming)
	p.fault(t, Turn{Text: long, NoEnd: true}, model.Cut)
	if p.has(Tools) {
		p.fault(t, Turn{Calls: []model.Call{readCall()}, NoEnd: true}, model.Cut)
	}
}

func garbage(t *testing.T, p Provider) {
	p.fault(t, Turn{Text: long, Garbage: true}, model.Garbage, model.Cut)
}

func rateLimited(t *testing.T, p Provider) {
	e := p.fault(t, Turn{Status: 429, Message: "Slow down.\nPlease.", RetryAfter: "7"}, model.RateLimited)
	if e.RetryAfter != 7*time.Second || e.Status != 429 || !e.Temporary() {
		t.Errorf("error = %+v, want status 429, temporary, after 7s", e)
	}
	if e.Message != "Slow down. Please." {
		t.Errorf("message = %q, want the provider's on one line", e.Message)
	}
}

func overloaded(t *testing.T, p Provider) {
	for _, status := range []int{500, 502, 503, 529} {
		e := p.fault(t, Turn{Status: status, Message: "The server is overloaded."}, model.Overloaded)
		if e.Status != status || e.Message != "The server is overloaded." || !e.Temporary() {
			t.Errorf("error = %+v, want status %d, temporary, with the provider's message", e, status)
		}
	}
}

func keyRejected(t *testing.T, p Provider) {
	for _, status := range []int{401, 403} {
		e := p.fault(t, Turn{Status: status, Message: "The key is not valid."}, model.Auth)
		if !strings.Contains(e.Hint, p.KeyVariable) || e.Temporary() {
			t.Errorf("error = %+v, want one that is not temporary, with a hint that names %s", e, p.KeyVariable)
		}
	}
}

func contextTooLong(t *testing.T, p Provider) {
	const message = "Your input exceeds the context window of this model."
	e := p.fault(t, Turn{Status: 400, Code: "context_length_exceeded", Message: message}, model.TooLong)
	if e.Temporary() {
		t.Errorf("%v is temporary", e)
	}
	p.fault(t, Turn{Status: 413, Message: "Request too large."}, model.TooLong)
}

func unknownModel(t *testing.T, p Provider) {
	e := p.fault(t, Turn{Status: 404, Message: "The model does not exist."}, model.NoModel)
	if e.Temporary() || !strings.Contains(e.Error(), "The model does not exist.") || !strings.Contains(e.Hint, "no such model?") {
		t.Errorf("error = %v with the hint %q, want one that is not temporary, with the provider's message and a question about the model", e, e.Hint)
	}
}

// A canceled call returns the context's error and leaves no goroutine running.
func canceled(t *testing.T, p Provider) {
	p.skip(t, Streaming)
	_, m := p.start(t, Turn{Text: long, Hang: true})
	before := runtime.NumGoroutine()
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		req := question()
		req.Stream = func(string) { cancel() }
		_, err := m.Generate(ctx, req)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("no text was streamed although half of it had arrived; " +
				"if the provider does not stream, Lacks must name Streaming")
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("Generate = %v, want context.Canceled", err)
		}
	}
	if !eventually(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines are running, %d were before", runtime.NumGoroutine(), before)
	}
}

func canceledBefore(t *testing.T, p Provider) {
	s, m := p.start(t, Turn{Text: "Paris"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Generate(ctx, question()); !errors.Is(err, context.Canceled) {
		t.Errorf("Generate = %v, want context.Canceled", err)
	}
	if n := len(s.Received()); n != 0 {
		t.Errorf("the server received %d requests, want none", n)
	}
}

func callersDeadline(t *testing.T, p Provider) {
	_, m := p.start(t, Turn{Text: long, Hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := m.Generate(ctx, question()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Generate = %v, want context.DeadlineExceeded", err)
	}
}

func idle(t *testing.T, p Provider) { p.wantSilent(t, Turn{Text: long, Hang: true}) }

func silentStart(t *testing.T, p Provider) { p.wantSilent(t, Turn{Text: long, Delay: time.Hour}) }

func (p Provider) wantSilent(t *testing.T, turn Turn) {
	t.Helper()
	s := NewServer(t, turn)
	s.Speak(p.Wire)
	reply, err := p.New(s.URL, key, model.Timeouts{Idle: 50 * time.Millisecond}).Generate(t.Context(), question())
	if e := wantFault(t, reply, err, model.Silent); !e.Temporary() {
		t.Errorf("%v is not temporary", e)
	}
}

// closedURL returns the URL of a port on which nothing listens.
func closedURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func unreachable(t *testing.T, p Provider) {
	reply, err := p.New(closedURL(t), key, model.Timeouts{}).Generate(t.Context(), question())
	if e := wantFault(t, reply, err, model.Unreachable); !e.Temporary() {
		t.Errorf("%v is not temporary", e)
	}
}

// A redirect must not send the key to another address.
func redirect(t *testing.T, p Provider) {
	s := NewServer(t, Turn{Text: "stolen"})
	from := http.RedirectHandler(s.URL, http.StatusTemporaryRedirect)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: from}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	reply, err := p.New("http://"+l.Addr().String(), key, model.Timeouts{}).Generate(t.Context(), question())
	wantFault(t, reply, err, model.Invalid)
	if n := len(s.Received()); n != 0 {
		t.Errorf("the redirect was followed with %d requests", n)
	}
}

func keyOnlyInHeaders(t *testing.T, p Provider) {
	turns := []Turn{
		{Text: "Paris", Thinking: "a thought"},
		{Status: 401, Message: "no"},
		{Status: 500, Message: "no"},
		{Text: long, Garbage: true},
		{Text: long, Cut: true},
	}
	s, m := p.start(t, turns...)
	for range turns {
		reply, err := m.Generate(t.Context(), question())
		wantNoKey(t, reply, err)
	}
	reply, err := p.New(closedURL(t), key, model.Timeouts{}).Generate(t.Context(), question())
	wantNoKey(t, reply, err)
	for _, r := range s.Received() {
		if text := r.Path + r.Query + string(r.Body); strings.Contains(text, key) {
			t.Errorf("the key is in %s", text)
		}
		if !strings.Contains(fmt.Sprint(r.Header), key) {
			t.Errorf("the key is not in the headers of %s", r.Path)
		}
	}
}

func wantNoKey(t *testing.T, reply model.Reply, err error) {
	t.Helper()
	text := fmt.Sprintf("%s %s %v", encode(reply), reply.Raw, err)
	if e := (*model.Error)(nil); errors.As(err, &e) {
		text += fmt.Sprintf(" %+v", *e)
	}
	if strings.Contains(text, key) {
		t.Errorf("the result contains the key: %.500s", text)
	}
}
