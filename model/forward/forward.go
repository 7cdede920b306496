// Package forward is a proxy between an agent and its model provider that
// keeps a budget. [New] returns a [Forward].
//
// A command-line agent behind a wall has no network and a dummy key. Its base
// URL variable points to a loopback address inside the wall, and a [Forward]
// outside the wall serves the connections to that address (ruling A8). It adds
// the real key, lowers each call's output limit to what the budget allows,
// counts the tokens used, and refuses calls when the budget is used up.
//
// It forwards only listed requests: the provider's generation calls, token
// counts and lists of models, with the headers and query parameters that they
// need. It answers all other requests with an error in the provider's format.
// It removes the key from every response.
//
// Every call is reserved on the [Ledger] before it is sent (ruling G11) and
// settled exactly once: with the usage that the provider reports, with zero if
// the provider rejected the request, and otherwise in full, for example if the
// response was cut or the agent disconnected.
//
// Unless [Config.Hosted] is set, it refuses requests that make the provider
// access the network or read stored data. They would bypass the wall, and also
// the reservation, which assumes at most one token per byte. It does not guard
// against expensive service tiers, documents and images with more tokens than
// bytes, or anything that the agent learns from the model.
//
// httputil.ReverseProxy copies requests and responses. The rest of the package applies the
// budget to the protocol of each provider, and removes keys that a stream splits.
package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"hone/model"
)

// Wire is a provider's protocol.
type Wire string

// The protocols. OpenAI includes both chat completions and Responses.
const (
	Gemini    Wire = "gemini"
	Anthropic Wire = "anthropic"
	OpenAI    Wire = "openai"
)

// Config describes the provider and the limits.
type Config struct {
	Wire Wire
	// Base is the provider's endpoint, as its SDK's variable contains it; empty
	// means the provider's own. A login in it is sent, and protected like the
	// key.
	Base string
	// Key replaces the agent's key; if empty, none is sent.
	Key string
	// Secret is what a request must contain in place of a key, so that only the
	// agent can spend the budget. Empty allows all requests.
	Secret string
	// Ledger reserves each call that generates. It must not be nil.
	Ledger Ledger
	// Meter returns the meter of one response to a request with this path, such
	// as /v1/messages. Nil charges every call in full.
	Meter func(path string) model.Meter
	// Hosted allows requests for tools that the provider runs (web search, code
	// execution, remote MCP), for addresses that it fetches and for data that
	// it has stored. An agent's own tools do not need it.
	Hosted bool
	// Timeouts limit each call. Idle applies to the first byte, to the time
	// between bytes, and to an agent that does not read or write. Zero fields
	// mean the defaults of [model.Timeouts].
	Timeouts model.Timeouts
	// MaxBody limits a request, in bytes; 0 means 32 MiB. [model.MaxBody]
	// limits a response.
	MaxBody int64
	// MaxCalls limits the number of calls, and separately that of free
	// requests; 0 means 10,000.
	MaxCalls int64
	// MaxConcurrent limits the number of concurrent calls; others wait. 0 means
	// 16. Eight times as many connections are accepted.
	MaxConcurrent int
	// Transport sends the calls; nil means the forwarder's own, which uses the
	// environment's proxy like [http.DefaultTransport]. It must not decode a
	// response's content encoding.
	Transport http.RoundTripper
}

// Ledger is the budget to which calls are charged.
type Ledger interface {
	// Reserve reserves a call before it is sent. An error means that the call
	// is refused, for example because the budget is used up; the agent is told
	// only that. Reserve must be safe for concurrent use.
	Reserve(ctx context.Context, c Call) (Reservation, error)
}

// Call is what is known about a call before it is sent.
type Call struct {
	Model string // as named in the request
	// RequestBytes is the size of the body, which has at most one token per
	// byte.
	RequestBytes int64
	// MaxOutput is the request's limit on output tokens, for all its answers
	// together; 0 means that it sets no limit.
	MaxOutput int64
}

// Reservation is the permission to send a call.
type Reservation struct {
	// MaxOutput limits the output tokens, for all answers together. It replaces
	// a higher limit or a missing one. If it is not positive, the call is
	// refused.
	MaxOutput int64
	// Commit settles the reservation; it may be nil. It is called exactly once,
	// from the call's goroutine. If used is nil, the usage is unknown and the
	// reservation is charged in full; it is zero for a rejected request. The
	// fault says what failed, and is nil on success; a provider's failure is a
	// [*model.Error] or an [*Overrun]. It never contains a key. If Commit
	// returns an error, no more calls are forwarded.
	Commit func(used *model.Usage, fault error) error
}

// Overrun is the error for a provider that wrote more tokens than its limit.
// Because no budget can be kept with it, no more calls are forwarded (ruling
// G11).
type Overrun struct {
	Model          string
	Wrote, Allowed int64 // tokens
}

func (o *Overrun) Error() string {
	return fmt.Sprintf("%s wrote %d tokens, but its limit was %d: a budget needs a provider that respects limits", o.Model, o.Wrote, o.Allowed)
}

// Report is a summary of the requests so far.
type Report struct {
	Calls         int64 // reserved calls
	Free          int64 // requests without cost: token counts, lists of models
	Refused       int64 // requests that were answered without the provider
	ChargedInFull int64 // calls that were charged in full, because their usage is unknown
	// Usage is the sum of the usage that the provider reported.
	Usage model.Usage
	// LedgerErr is the ledger's last error; nil if it refused no call.
	LedgerErr error
	// Stopped is the reason why no more calls are forwarded: an [*Overrun], an
	// error of a Commit, or [ErrClosed]; nil while calls are forwarded.
	Stopped error
}

// ErrClosed is the error of requests to a closed forwarder.
var ErrClosed = errors.New("the forwarder is closed")

// Forward forwards the calls of the connections that it serves. It is safe for
// concurrent use. [New] returns one; the caller must Close it.
type Forward struct {
	config    Config
	base      *url.URL // without the API's version
	routes    []route
	redactor  *redactor
	login     *url.Userinfo
	transport http.RoundTripper
	own       *http.Transport // nil if the transport is the caller's
	server    *http.Server
	ctx       context.Context
	cancel    context.CancelCauseFunc
	slots     chan struct{} // one element for each running call
	conns     chan struct{} // one element for each open connection

	mu     sync.Mutex
	active sync.WaitGroup // open requests; Add needs mu, and that f is not closed
	report Report
}

const (
	defaultBody       = 32 << 20
	defaultCalls      = 10_000
	defaultConcurrent = 16
	defaultIdle       = 20 * time.Minute
	defaultTotal      = time.Hour
	maxHeader         = 64 << 10
)

// New returns a forwarder, or an error for an invalid configuration. It sends
// no request.
func New(c Config) (*Forward, error) {
	if c.Ledger == nil {
		return nil, errors.New("a forwarder needs a ledger")
	}
	if c.MaxBody < 0 || c.MaxCalls < 0 || c.MaxConcurrent < 0 {
		return nil, errors.New("a forwarder's limit is negative")
	}
	base, err := parseBase(c)
	if err != nil {
		return nil, err
	}
	if c.Meter == nil {
		c.Meter = func(string) model.Meter { return func([]byte) model.Metered { return model.Metered{} } }
	}
	c.MaxBody = cmp.Or(c.MaxBody, defaultBody)
	c.MaxCalls = cmp.Or(c.MaxCalls, defaultCalls)
	c.Timeouts.Idle = cmp.Or(max(0, c.Timeouts.Idle), defaultIdle)
	c.Timeouts.Total = cmp.Or(max(0, c.Timeouts.Total), defaultTotal)
	c.MaxConcurrent = cmp.Or(c.MaxConcurrent, defaultConcurrent)
	f := &Forward{
		config: c, base: base, login: base.User, transport: c.Transport,
		routes: routes(c.Wire), slots: make(chan struct{}, c.MaxConcurrent), conns: make(chan struct{}, 8*c.MaxConcurrent),
	}
	f.base.User = nil
	f.base.Path = trimVersion(c.Wire, f.base.Path)
	f.redactor = newRedactor(c.Key, secretOf(f.login))
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	if f.transport == nil {
		f.own = newTransport()
		f.transport = f.own
	}
	f.server = f.newServer()
	return f, nil
}

func parseBase(c Config) (*url.URL, error) {
	own := map[Wire]string{
		Gemini:    "https://generativelanguage.googleapis.com",
		Anthropic: "https://api.anthropic.com",
		OpenAI:    "https://api.openai.com/v1",
	}[c.Wire]
	if own == "" {
		return nil, fmt.Errorf("unknown wire %q", c.Wire)
	}
	u, err := url.Parse(cmp.Or(c.Base, own))
	// The errors omit the address, which may contain a login.
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the base URL is not an http or https URL such as https://api.openai.com/v1")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.RawPath != "" || u.Path != "" && !isPlainPath(u.Path) {
		return nil, errors.New("the base URL's path has unsupported characters")
	}
	return u, nil
}

// trimVersion removes the API version from a base's path if the wire's requests
// contain it.
func trimVersion(w Wire, path string) string {
	switch w {
	case Gemini:
		for _, v := range geminiVersions() {
			path = strings.TrimSuffix(path, "/"+v)
		}
	case Anthropic:
		path = strings.TrimSuffix(path, "/v1")
	}
	return path
}

// secretOf returns the secret part of a login.
func secretOf(login *url.Userinfo) string {
	if login == nil {
		return ""
	}
	if password, ok := login.Password(); ok {
		return password
	}
	return login.Username()
}

func newTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	t.DisableCompression = true
	t.MaxResponseHeaderBytes = maxHeader
	return t
}

// URL returns the value of the agent's base URL variable if the forwarder
// serves addr, such as 127.0.0.1:4000.
func (f *Forward) URL(addr string) string { return "http://" + addr + f.base.Path }

// Report returns a summary of the requests so far.
func (f *Forward) Report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report
}

// Close cancels all calls, closes all connections, and returns when every
// reservation is settled.
func (f *Forward) Close() {
	f.stop(ErrClosed)
	f.mu.Lock()
	f.cancel(ErrClosed)
	f.mu.Unlock()
	// An error about a listener or a connection does not matter here.
	_ = f.server.Close()
	f.active.Wait()
	if f.own != nil {
		f.own.CloseIdleConnections()
	}
}

// stop ends the forwarding of calls. Only the first reason is recorded.
func (f *Forward) stop(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.report.Stopped == nil {
		f.report.Stopped = why
	}
}

// addRequest registers a request, and returns false if the forwarder is closed.
// After true the caller must call f.active.Done.
func (f *Forward) addRequest() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return false
	}
	f.active.Add(1)
	return true
}

// acquireSlot waits until fewer than MaxConcurrent calls are running.
func (f *Forward) acquireSlot(ctx context.Context) error {
	select {
	case f.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// countCall adds a call or a free request to the report, or returns the reason
// to refuse it.
func (f *Forward) countCall(free bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := &f.report.Calls
	if free {
		n = &f.report.Free
	}
	switch {
	case f.report.Stopped != nil:
		return f.report.Stopped
	case *n >= f.config.MaxCalls:
		return errTooMany
	}
	*n++
	return nil
}

var errTooMany = errors.New("too many calls were made")

// geminiVersions returns the API versions that agents use, the longest first.
func geminiVersions() []string { return []string{"v1alpha", "v1beta", "v1"} }
