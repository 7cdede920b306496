// Package web serves pages of runs to the browser of the user who started it, and to
// nobody else.
//
// [New] returns the server. Whoever opens [Server.Link] first gets a cookie in exchange
// for the token in it, and is led to a random path; every other request needs both. The
// cookie is for this path alone: browsers send cookies to all ports of a host, and another
// port may be another user's. A request must name the server by a loopback name, which
// keeps web sites from reaching it under a name of their own (DNS rebinding), and requests
// that other sites make with the user's cookie are refused.
//
// [NewRemote] returns a server that other machines can reach, only with TLS. A request must
// use a name in its certificate. Browsers also get the cookie for a password.
//
// Pages are read from a [Source] that the server asks again while a browser shows
// them. A page that is open is sent the elements that changed; a slow reader is sent
// fewer of them, and does not delay others.
package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
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

	"hone/cmd/hone/page"
)

// Source is what a server shows. Its methods may be called from several goroutines.
type Source interface {
	// State returns a text that differs whenever View would return something else. It
	// is asked often, and must be cheap. The error is [ErrNotFound] if there is no page
	// of that name.
	State(name string) (string, error)
	// View returns the page of a run; of all runs if the name is empty; of an evaluation
	// if it begins with [Evaluations].
	View(ctx context.Context, name string) (View, error)
}

// View is a page.
type View struct {
	Title string
	Place string // the page's name in the bar; empty for the list of runs
	Parts []page.Part
}

// ErrNotFound is the error of a [Source] that does not have a page.
var ErrNotFound = errors.New("there is no such page")

// Server serves the pages of a source. Use [New].
type Server struct {
	source  Source
	version string
	pages   *page.Renderer
	host    string // in the link
	port    string
	remote  *Remote        // nil if only this machine can reach it
	door    *page.Renderer // of the form for the password, which does not show the root
	tries   tries          // of the password
	root    string         // before the path of every page; only a browser with the cookie is told
	cookie  string         // the value that a browser must send
	done    <-chan struct{}
	actor   Actor // nil if the user may only look

	mu      sync.Mutex
	token   string           // of the link; empty after it was used
	feeds   map[string]*feed // by page; a feed outlives its last viewer for a while
	viewers int
}

// New returns a server for a listener on a loopback address. Streams end when the context
// does.
func New(ctx context.Context, l net.Listener, source Source, version string, pages *page.Renderer) (*Server, error) {
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address", l.Addr())
	}
	return newServer(ctx, at.IP.String(), l, source, version, pages), nil
}

func newServer(ctx context.Context, host string, l net.Listener, source Source, version string, pages *page.Renderer) *Server {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	root := "/" + rand.Text()
	pages.Under(root)
	return &Server{source: source, version: version, pages: pages, host: host, port: port, root: root, cookie: rand.Text(), done: ctx.Done(), feeds: map[string]*feed{}}
}

// Link returns the address of a page, with a new token in it. The token can be used
// once, and earlier ones not any more.
func (s *Server) Link(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = rand.Text()
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(s.host, s.port), Path: pathOf(name), RawQuery: "token=" + s.token}
	if s.remote != nil {
		u.Scheme = "https"
	}
	return u.String()
}

// Evaluations is the prefix of the names of pages of evaluations.
const Evaluations = "eval/"

// pathOf returns the path of a page.
func pathOf(name string) string {
	if name == "" || strings.HasPrefix(name, Evaluations) {
		return "/" + name
	}
	return "/run/" + name
}

// Serve answers requests until the context of [New] ends.
func (s *Server) Serve(l net.Listener) error {
	h := http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, IdleTimeout: 2 * time.Minute}
	serve := h.Serve
	if s.remote != nil {
		h.TLSConfig = &tls.Config{Certificates: []tls.Certificate{s.remote.Certificate}}
		h.ErrorLog = log.New(io.Discard, "", 0) // a port scan would write to the user's terminal
		serve = func(l net.Listener) error { return h.ServeTLS(l, "", "") }
	}
	served := make(chan error, 1)
	go func() { served <- serve(l) }()
	select {
	case err := <-served:
		return err
	case <-s.done:
		_ = h.Close()
		<-served
		return nil
	}
}

// Handler returns what answers requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /run/{name...}", s.page)
	mux.HandleFunc("GET /"+Evaluations+"{rest...}", s.page)
	mux.HandleFunc("GET /stream/{name...}", s.stream)
	mux.HandleFunc("GET /icon.svg", asset("image/svg+xml", page.Icon()))
	mux.HandleFunc("GET /page.css", asset("text/css; charset=utf-8", page.Style()))
	mux.HandleFunc("GET /page.js", asset("text/javascript; charset=utf-8", page.Script()))
	s.actions(mux)
	return s.guarded(http.NewCrossOriginProtection().Handler(s.admitted(mux)))
}

// policy lets a page use what this server sends, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded refuses requests under another name than the server's, and sets the headers of
// every answer.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			h.Set(name, value)
		}
		if !s.isOwnHost(r.Host) {
			http.Error(w, "This server does not answer to that name. Open the address that hone web printed.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnHost reports whether a request's Host is a name of this server and its port.
func (s *Server) isOwnHost(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, "80" // which browsers omit
		if s.remote != nil {
			port = "443"
		}
	}
	switch {
	case port != s.port:
		return false
	case s.remote != nil:
		return s.remote.Certificate.Leaf.VerifyHostname(name) == nil
	}
	return slices.Contains([]string{"127.0.0.1", "localhost", "::1", s.host}, name)
}

// admitted lets only the user's requests through, and lets the user in.
func (s *Server) admitted(next http.Handler) http.Handler {
	inside := http.StripPrefix(s.root, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch token := r.URL.Query().Get("token"); {
		case strings.HasPrefix(r.URL.Path, s.root+"/") && s.hasCookie(r):
			inside.ServeHTTP(w, r)
		case token != "" && r.Method == http.MethodGet:
			s.admit(w, r, token)
		case s.remote != nil && slices.Contains([]string{"/page.css", "/page.js", "/icon.svg"}, r.URL.Path):
			next.ServeHTTP(w, r) // for the form, and no secret
		case s.remote != nil:
			s.signIn(w, r)
		default:
			http.Error(w, "This page is for the user who started hone web. Open the address that it printed; press Enter in its terminal for a new one.", http.StatusUnauthorized)
		}
	})
}

// cookieName is the name of the cookie. The paths of cookies tell servers apart.
const cookieName = "hone"

// hasCookie reports whether a request has the cookie.
func (s *Server) hasCookie(r *http.Request) bool {
	c, err := r.Cookie(cookieName)
	return err == nil && same(c.Value, s.cookie)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// admit lets a browser in that has the token of the link.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, token string) {
	s.mu.Lock()
	right := s.token != "" && same(token, s.token)
	if right {
		s.token = ""
	}
	s.mu.Unlock()
	if !right {
		http.Error(w, "This address was used before, or is not the last one that hone web printed. If this browser used it, its history has the page. Otherwise press Enter in the terminal of hone web for a new one.", http.StatusForbidden)
		return
	}
	s.letIn(w, r)
}

// letIn gives a browser the cookie, and leads it to the page that it asked for.
func (s *Server) letIn(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: s.cookie, Path: s.root + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.remote != nil})
	http.Redirect(w, r, s.root+pathHere(r), http.StatusSeeOther)
}

// anyRoot is the root of a server in a path: that of an earlier one if a page outlived it.
var anyRoot = regexp.MustCompile(`^/[A-Z2-7]{26}(/|$)`)

// pathHere returns the path of the page that a request asks for, without a root.
func pathHere(r *http.Request) string {
	path := anyRoot.ReplaceAllString(r.URL.Path, "/")
	here := url.URL{Path: "/" + strings.TrimLeft(path, "/\\")} // two slashes would lead to another site
	return here.EscapedPath()
}

// asset returns a handler of a text that never changes.
func asset(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(text))
	}
}

// page serves a page.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if rest := r.PathValue("rest"); rest != "" {
		name = Evaluations + rest
	}
	f := s.open(name)
	defer s.close(f)
	got, err := f.read(r.Context())
	if err != nil {
		s.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = s.pages.Serve(w, page.Served{Title: got.view.Title, Version: s.version, Place: got.view.Place, Stream: "/stream/" + name, Seen: got.id(), Parts: got.view.Parts})
}

// refuse answers that a page cannot be shown.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	status, title := http.StatusInternalServerError, "This page cannot be shown"
	if errors.Is(err, ErrNotFound) {
		status, title = http.StatusNotFound, "Not found"
	}
	part, failed := s.pages.Refusal(title, err.Error())
	if failed != nil {
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = s.pages.Serve(w, page.Served{Title: "hone: " + title, Version: s.version, Parts: []page.Part{part}})
}
