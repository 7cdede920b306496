// Package web serves pages of runs to the browser of the user who started it, and to
// nobody else.
//
// [New] returns the server. Whoever opens [Server.Link] first gets a cookie in exchange
// for the token in it; every other request needs the cookie. A request must name the
// server by a loopback name, which keeps web sites from reaching it under a name of
// their own (DNS rebinding), and requests that other sites make with the user's cookie
// are refused.
//
// Pages are read from a [Source] that the server asks again while somebody looks at
// them. A page that is open is sent the elements that changed; a slow reader is sent
// fewer of them, and does not delay others.
package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	// View returns the page of a run; of all runs if the name is empty.
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
	port    string
	cookie  string // the value that a browser must send
	done    <-chan struct{}

	mu      sync.Mutex
	token   string           // of the link; empty after it was used
	feeds   map[string]*feed // of the pages that somebody looks at
	viewers int
}

// New returns a server for a listener on a loopback address. Streams end when the context
// does.
func New(ctx context.Context, l net.Listener, source Source, version string, pages *page.Renderer) (*Server, error) {
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address", l.Addr())
	}
	return &Server{source: source, version: version, pages: pages, port: strconv.Itoa(at.Port), cookie: rand.Text(), done: ctx.Done(), feeds: map[string]*feed{}}, nil
}

// Link returns the address of a page, with a new token in it. The token can be used
// once, and earlier ones not any more.
func (s *Server) Link(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = rand.Text()
	u := url.URL{Scheme: "http", Host: "127.0.0.1:" + s.port, Path: pathOf(name), RawQuery: "token=" + s.token}
	return u.String()
}

// pathOf returns the path of a page.
func pathOf(name string) string {
	if name == "" {
		return "/"
	}
	return "/run/" + name
}

// Serve answers requests until the context of [New] ends.
func (s *Server) Serve(l net.Listener) error {
	h := http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
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
	mux.HandleFunc("GET /stream/{name...}", s.stream)
	mux.HandleFunc("GET /icon.svg", asset("image/svg+xml", page.Icon()))
	mux.HandleFunc("GET /page.css", asset("text/css; charset=utf-8", page.Style()))
	mux.HandleFunc("GET /page.js", asset("text/javascript; charset=utf-8", page.Script()))
	return s.guarded(http.NewCrossOriginProtection().Handler(mux))
}

// policy lets a page use what this server sends, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded lets only the user's requests through.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			h.Set(name, value)
		}
		names := []string{"127.0.0.1:" + s.port, "localhost:" + s.port, "[::1]:" + s.port}
		switch token := r.URL.Query().Get("token"); {
		case !slices.Contains(names, r.Host):
			http.Error(w, "this server answers on 127.0.0.1 only", http.StatusMisdirectedRequest)
		case token != "" && r.Method == http.MethodGet:
			s.admit(w, r, token)
		case !s.knows(r):
			http.Error(w, "This page is for the user who started hone web. Open the address that it printed; press Enter in its terminal for a new one.", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// cookieName returns the cookie's name. Browsers send a cookie to all ports of a host, so
// that the name has to tell servers apart.
func (s *Server) cookieName() string { return "hone_" + s.port }

// knows reports whether a request has the cookie.
func (s *Server) knows(r *http.Request) bool {
	c, err := r.Cookie(s.cookieName())
	return err == nil && same(c.Value, s.cookie)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// admit gives a browser the cookie for the token of the link, and removes the token from
// its address.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, token string) {
	s.mu.Lock()
	right := s.token != "" && same(token, s.token)
	if right {
		s.token = ""
	}
	s.mu.Unlock()
	if !right && !s.knows(r) {
		http.Error(w, "This address was used before, or is not the last one that hone web printed. Press Enter in its terminal for a new one.", http.StatusForbidden)
		return
	}
	if right {
		http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: s.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	http.Redirect(w, r, (&url.URL{Path: r.URL.Path}).EscapedPath(), http.StatusSeeOther)
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
	f := s.open(name)
	defer s.close(f)
	got, err := f.read(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = s.pages.Serve(w, page.Served{Title: got.view.Title, Version: s.version, Place: got.view.Place, Stream: "/stream/" + name, Seen: got.id(), Parts: got.view.Parts})
}

// refuse answers that a page cannot be shown.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, ErrNotFound) {
		status = http.StatusNotFound
	}
	http.Error(w, err.Error(), status)
}
