// Package forward passes an agent's model calls on to its provider.
//
// A command-line agent behind a wall has no network and a dummy key. Its
// base-URL variable leads to a loopback address inside of the wall, whose
// connections a [Forward] answers outside of it (ruling A8): it adds the real
// key, lowers each call's output limit to what the budget grants, counts what
// was used, and refuses when nothing is left.
//
// What passes is a list, not a filter: the provider's generation calls, the
// counting of tokens and the list of models, with the headers and the query
// that they need. Everything else is answered by the forwarder itself, in the
// provider's own shape. The key is taken out of whatever goes back.
//
// Every call is a reserve on the [Ledger] before it leaves (ruling G11), and
// is settled exactly once: with what the provider says was used, with nothing
// where it turned the request away, and in full wherever that is not known,
// which includes an answer that was cut and an agent that went away.
//
// Requests that would have the provider itself reach the network, or read
// what is not in the request, are refused unless [Config.Hosted] lets them
// pass: they would be a way around the wall, and around the reserve, which
// takes a byte for at most one token. Not guarded are prices that a request
// chooses (a service tier), documents and pictures that are more tokens than
// bytes, and what an agent learns by asking the model.
package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"hone/model"
)

// Wire is a provider's protocol.
type Wire string

// The protocols. OpenAI is both of its own: chat completions and Responses.
const (
	Gemini    Wire = "gemini"
	Anthropic Wire = "anthropic"
	OpenAI    Wire = "openai"
)

// Config says where calls go and what bounds them.
type Config struct {
	Wire Wire
	// Base is the provider's endpoint, as its SDK's variable has it; empty is
	// the provider's own. A login in it is sent, and kept like the key.
	Base string
	// Key is sent in place of the agent's; empty sends none.
	Key string
	// Secret is what a request must bring where it would bring a key: without
	// it whoever finds the forwarder's address could spend the budget. Empty
	// asks for none.
	Secret string
	// Ledger is asked before each call that generates. It must not be nil.
	Ledger Ledger
	// Hosted lets pass requests for tools that the provider runs (web search,
	// code execution, remote MCP), for addresses that it fetches and for what
	// it has stored. None of them is needed by an agent's own tools.
	Hosted bool
	// Timeouts bound each call; Idle counts for the first byte, for the silence
	// between bytes, and for an agent that does not read or write. Zero fields
	// have the defaults of [model.Timeouts].
	Timeouts model.Timeouts
	// MaxBody is the most bytes of a request; 0 means 32 MiB. An answer is
	// bounded by [model.MaxBody].
	MaxBody int64
	// MaxCalls is the most calls in all, free ones apart and bounded alike; 0
	// means 10,000.
	MaxCalls int64
	// MaxConcurrent is the most calls at once; others wait. 0 means 16. Eight
	// times as many connections are kept.
	MaxConcurrent int
	// Transport makes the calls; nil means one of the forwarder's own, which
	// uses the environment's proxy as [http.DefaultTransport] does. It must not
	// decode an answer's content by itself.
	Transport http.RoundTripper
}

// Ledger is the budget that calls are charged to.
type Ledger interface {
	// Reserve puts a call on the ledger before it leaves. An error means that
	// the call may not be made, such as that the budget is used up; the agent
	// is told only that. It must be safe for concurrent use.
	Reserve(ctx context.Context, c Call) (Grant, error)
}

// Call is what is known of a call before it is made.
type Call struct {
	Model string // as the request names it
	// RequestBytes are those of its body: at most one token each.
	RequestBytes int64
	// MaxOutput is the most tokens that its answers may have, all of them
	// together where it asks for several; 0 where it sets no limit.
	MaxOutput int64
}

// Grant is a reserve.
type Grant struct {
	// MaxOutput is the most tokens that the answers may have together. It is
	// sent in place of a higher limit, or of none. Nothing but a positive
	// number lets the call pass.
	MaxOutput int64
	// Commit settles the reserve: used is what the call took, nil where that is
	// not known and the reserve stands in full. A request that was turned away
	// took nothing: used is zero then, not nil. The fault is what went wrong, a
	// [*model.Error] or an [*Overrun] where it is the provider's; it holds no
	// key. An error of Commit ends the forwarding.
	// Contract: it is called exactly once, from the call's own goroutine; nil
	// is not called.
	Commit func(used *model.Usage, fault error) error
}

// Overrun is the fault of a provider that wrote more than it was let: with it
// no budget can be kept, so that it ends the forwarding (ruling G11).
type Overrun struct {
	Model          string
	Wrote, Allowed int64 // tokens
}

func (o *Overrun) Error() string {
	return fmt.Sprintf("%s wrote %d tokens and was allowed %d: a provider that keeps no limit cannot be given a budget", o.Model, o.Wrote, o.Allowed)
}

// Report is what happened so far.
type Report struct {
	Calls   int64 // that were reserved
	Free    int64 // that cost nothing: counts of tokens, lists of models
	Refused int64 // requests that were answered without the provider
	Lost    int64 // of Calls: charged in full, for want of knowing
	// Usage is the sum of what the provider said was used.
	Usage model.Usage
	// Why is what the ledger said when it last refused a call; nil where it
	// never did.
	Why error
	// Stopped is why nothing passes any more: an [*Overrun], an error of a
	// Commit, or [ErrClosed]; nil while calls pass.
	Stopped error
}

// ErrClosed is why a closed forwarder passes nothing on.
var ErrClosed = errors.New("the forwarder is closed")

// Forward is an [http.Handler] that passes calls on. It is safe for
// concurrent use. Make one with [New], and Close it.
type Forward struct {
	config    Config
	base      *url.URL // without the API's version
	routes    []route
	key       *redactor
	login     *url.Userinfo
	transport http.RoundTripper
	own       *http.Transport // nil where the transport is the caller's
	server    *http.Server
	queue     *queue
	ctx       context.Context
	cancel    context.CancelCauseFunc
	turns     chan struct{} // one for each call that is under way

	mu     sync.Mutex
	active sync.WaitGroup // requests; added to under mu while not closed
	report Report
}

const (
	defaultBody       = 32 << 20
	defaultCalls      = 10_000
	defaultConcurrent = 16
	maxHeader         = 64 << 10
)

// New makes a forwarder; no server is asked. An error says what is wrong with
// the configuration.
func New(c Config) (*Forward, error) {
	if c.Ledger == nil {
		return nil, errors.New("a forwarder needs a ledger")
	}
	if c.MaxBody < 0 || c.MaxCalls < 0 || c.MaxConcurrent < 0 {
		return nil, errors.New("a bound of a forwarder is negative")
	}
	base, err := parseBase(c)
	if err != nil {
		return nil, err
	}
	c.MaxBody = cmp.Or(c.MaxBody, defaultBody)
	c.MaxCalls = cmp.Or(c.MaxCalls, defaultCalls)
	c.MaxConcurrent = cmp.Or(c.MaxConcurrent, defaultConcurrent)
	f := &Forward{
		config: c, base: base, login: base.User, transport: c.Transport,
		routes: routes(c.Wire), turns: make(chan struct{}, c.MaxConcurrent),
	}
	f.base.User = nil
	f.base.Path = withoutVersion(c.Wire, f.base.Path)
	f.key = newRedactor(c.Key, secretOf(f.login))
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	if f.transport == nil {
		f.own = newTransport()
		f.transport = f.own
	}
	f.start()
	return f, nil
}

func parseBase(c Config) (*url.URL, error) {
	own := map[Wire]string{
		Gemini:    "https://generativelanguage.googleapis.com",
		Anthropic: "https://api.anthropic.com",
		OpenAI:    "https://api.openai.com/v1",
	}[c.Wire]
	if own == "" {
		return nil, fmt.Errorf("no wire is called %q", c.Wire)
	}
	u, err := url.Parse(cmp.Or(c.Base, own))
	// The address may hold a login, so that it is not in the error.
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the base URL is not an address of the web, such as https://api.openai.com/v1")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.RawPath != "" || u.Path != "" && !plain(u.Path) {
		return nil, errors.New("the base URL's path has characters that a forwarder does not pass on")
	}
	return u, nil
}

// withoutVersion takes the API's version off a base's path where the wire's
// requests bring it along.
func withoutVersion(w Wire, path string) string {
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

// secretOf is what is secret of a login.
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

// URL is what the agent's base-URL variable holds when commands find the
// forwarder at addr, such as 127.0.0.1:4000.
func (f *Forward) URL(addr string) string { return "http://" + addr + f.base.Path }

// Report is what happened so far.
func (f *Forward) Report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report
}

// Close ends all calls and connections, and returns when every reserve is
// settled.
func (f *Forward) Close() {
	f.stop(ErrClosed)
	f.mu.Lock()
	f.cancel(ErrClosed)
	f.mu.Unlock()
	// What the server says of its listener and connections helps nobody.
	_ = f.server.Close()
	f.active.Wait()
	if f.own != nil {
		f.own.CloseIdleConnections()
	}
}

// stop lets nothing pass any more; the first reason stays.
func (f *Forward) stop(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.report.Stopped == nil {
		f.report.Stopped = why
	}
}

// begin lets a request in; the caller must call f.active.Done if it is.
func (f *Forward) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return false
	}
	f.active.Add(1)
	return true
}

// turn waits until fewer than the most calls are under way.
func (f *Forward) turn(ctx context.Context) error {
	select {
	case f.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// count takes a call or a free one into the report, or says why it is not to
// be made.
func (f *Forward) count(free bool) error {
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

// ServeConn answers the requests of one connection, and returns when it is
// closed, by either side. It is the Serve of a door in a wall.
func (f *Forward) ServeConn(c net.Conn) { f.queue.serve(c) }

// geminiVersions are those of the API that agents use, the longest first.
func geminiVersions() []string { return []string{"v1alpha", "v1beta", "v1"} }
