package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"hone/model"
)

// ForwardConfig describes the provider and the limits.
type ForwardConfig struct {
	Wire string // Gemini, Anthropic or OpenAI
	// Base is the provider's endpoint, as its SDK's variable contains it; empty
	// means the provider's own. A login in it is sent, and protected like the
	// key.
	Base string
	// Key replaces the agent's key; if empty, none is sent.
	Key string
	// Secret is what a request must contain in place of a key, so that only the
	// agent can spend the budget. Empty allows all requests.
	Secret string
	// Reserve reserves a call that generates before it is sent. It must not be nil,
	// and is called from many goroutines.
	//
	// The size of the request is in bytes; it has at most one token per byte.
	// maxOutput is its limit on output tokens, for all its answers together; 0 means
	// that it sets no limit. The limit that is granted replaces a higher one or a
	// missing one; if it is not positive, the call is refused. An error means that the
	// call is refused, for example because the budget is used up; the agent is told
	// only that.
	//
	// commit settles the reservation. It is called exactly once. If used is nil, the
	// usage is unknown and the reservation is charged in full; it is zero for a rejected
	// request. The fault says what failed, and is nil on success; a provider's failure is
	// a [*model.Error] or an [*Overrun]. It never contains a key. If commit returns an
	// error, no more calls are forwarded.
	Reserve func(model string, bytes, maxOutput int64) (granted int64, commit func(used *model.Usage, fault error) error, err error)
	// Reader returns the reader of one response to a request with this path, such
	// as /v1/messages. It must not be nil.
	Reader func(path string) model.Reader
	// Hosted allows requests for tools that the provider runs (web search, code
	// execution, remote MCP), for addresses that it fetches and for data that
	// it has stored. An agent's own tools do not need it.
	Hosted bool
	// Timeouts limit each call. Idle also applies to an agent that does not read or
	// write. Zero fields mean the defaults of [model.Timeouts].
	Timeouts model.Timeouts

	maxBody       int64 // of a request, in bytes; 0 means 32 MiB
	maxConcurrent int   // others wait; 0 means 16. Eight times as many connections are accepted
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

// Forward forwards the calls of the connections that it serves. It is safe for
// concurrent use. [NewForward] returns one; the caller must Close it.
type Forward struct {
	config   ForwardConfig
	wire     *wire
	base     *url.URL // without the API's version
	login    *url.Userinfo
	redactor redactor
	server   *http.Server
	ctx      context.Context
	cancel   context.CancelFunc
	slots    chan struct{} // one element for each running call
	conns    chan struct{} // one element for each open connection
	serving  sync.RWMutex  // every request reads

	mu      sync.Mutex
	stopped error // why no more calls are forwarded
	refused error // the last reason to refuse a call
}

const (
	maxHeader    = 64 << 10         // bytes
	headerTime   = 30 * time.Second // limit for sending a header
	idleConnTime = 10 * time.Minute // limit for an idle connection
	// drainTime is how long the server reads the rest of a refused request: if
	// it closed the connection earlier, the agent could lose the response.
	drainTime = 5 * time.Second
)

// NewForward returns a forwarder, or an error for an invalid configuration. It sends
// no request.
func NewForward(c ForwardConfig) (*Forward, error) {
	f := &Forward{config: c}
	known := wires()
	i := slices.IndexFunc(known, func(w wire) bool { return w.name == c.Wire })
	if i < 0 {
		return nil, fmt.Errorf("unknown wire %q", c.Wire)
	}
	f.wire = &known[i]
	var err error
	f.base, err = url.Parse(cmp.Or(c.Base, f.wire.own))
	// The errors omit the address, which may contain a login.
	if err != nil || f.base.Host == "" || f.base.Scheme != "http" && f.base.Scheme != "https" || f.base.RawQuery != "" || f.base.Fragment != "" {
		return nil, errors.New("the base URL is not an http or https URL such as https://api.openai.com/v1")
	}
	f.base.Path = strings.TrimRight(f.base.Path, "/")
	if !regexp.MustCompile(`\A(/[\w~@+-][\w.~:@+-]*)*\z`).MatchString(f.base.EscapedPath()) {
		return nil, errors.New("the base URL's path has unsupported characters")
	}
	if f.wire.version != nil {
		f.base.Path = f.wire.version.ReplaceAllString(f.base.Path, "")
	}
	f.login, f.base.User = f.base.User, nil
	password, ok := f.login.Password()
	if !ok {
		password = f.login.Username()
	}
	f.redactor = newRedactor(c.Key, password)
	f.config.Timeouts.Idle = cmp.Or(max(0, c.Timeouts.Idle), 20*time.Minute)
	f.config.maxBody = cmp.Or(c.maxBody, 32<<20)
	concurrent := cmp.Or(c.maxConcurrent, 16)
	f.slots, f.conns = make(chan struct{}, concurrent), make(chan struct{}, 8*concurrent)
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.server = &http.Server{
		Handler:           http.HandlerFunc(f.serve),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleConnTime,
		MaxHeaderBytes:    maxHeader,
		// The general handler would answer OPTIONS *.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0),
		BaseContext:                  func(net.Listener) context.Context { return f.ctx },
	}
	return f, nil
}

// URL returns the value of the agent's base URL variable if the forwarder
// serves addr, such as 127.0.0.1:4000.
func (f *Forward) URL(addr string) string { return "http://" + addr + f.wire.agents }

// Err returns why calls were refused: an [*Overrun] or an error of a commit,
// after which none is forwarded, or else the last error of Reserve. It is nil if
// there was none of these.
func (f *Forward) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.stopped, f.refused)
}

// Close cancels all calls, closes all connections, and returns when every
// reservation is settled.
func (f *Forward) Close() {
	f.cancel()
	// An error about a listener or a connection does not matter here.
	_ = f.server.Close()
	f.serving.Lock()
	defer f.serving.Unlock()
}

func (f *Forward) stop(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = cmp.Or(f.stopped, why)
}

func (f *Forward) halted() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped
}

// ServeConn serves one connection, and returns when either side has closed it.
// A wall calls it for each connection from the inside. If too many connections
// are open, it closes this one.
func (f *Forward) ServeConn(c net.Conn) {
	select {
	case f.conns <- struct{}{}:
		defer func() { <-f.conns }()
	default:
		c.Close()
		return
	}
	// Serve always returns an error, here when the connection is closed.
	_ = f.server.Serve(&listener{Conn: c, closed: make(chan struct{})})
}

// listener is a connection that accepts itself, once. Its second Accept waits
// for the connection's end.
type listener struct {
	net.Conn
	accepted bool
	once     sync.Once
	closed   chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	if l.accepted {
		<-l.closed
		return nil, net.ErrClosed
	}
	l.accepted = true
	return l, nil
}

func (l *listener) Close() error {
	defer l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

func (l *listener) Addr() net.Addr { return l.LocalAddr() }
