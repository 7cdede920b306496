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
// With [Remote], other machines can reach the server, only with TLS. A request must use a
// name in its certificate. Browsers also get the cookie for a password.
//
// The pages show the runs in some directories, and the results of hone eval (source.go). A
// page that is open is sent the elements that changed (stream.go). What the user does on the
// page of a run is done by a hone that the server starts; only the questions of this process's
// own run stay in it (act.go).
package web

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"hone/cmd/hone/attempts"
	"hone/cmd/hone/page"
	"hone/cmd/hone/report"
	"hone/journal"
	"hone/sandbox/wall"
)

// Options say what a server shows, and what the user can do there.
type Options struct {
	Dirs    []string            // whose runs it shows
	Version string              // of the program
	Clean   func(string) string // removes secrets from a text
	Own     *OwnRun             // the run of this process; nil if it has none
	Environ []string            // of the processes that it starts
	// Say says in the terminal what the user does on the page; nil means that the user may
	// only look.
	Say func(text string)
}

// Server serves the pages of runs. Use [New].
type Server struct {
	Options
	html   *page.Renderer
	door   *page.Renderer // of the form for the password, which does not show the root
	host   string         // in the link
	port   string
	remote *Remote // nil if only this machine can reach it
	tries  tries   // of the password
	root   string  // before the path of every page; only a browser with the cookie is told
	cookie string  // the value that a browser must send
	ctx    context.Context
	end    func()

	viewers chan struct{} // one for each stream

	mu      sync.Mutex
	token   string            // of the link; empty after it was used
	said    map[string]string // about the last action, by run
	resumed []*resumed        // runs at work in children
	running sync.WaitGroup    // what the user has asked for
	keeper  *wall.Keeper      // of children

	reading  sync.Mutex // guards what follows: what was read of the directories
	readings map[string]*reading
	seed     maphash.Seed
	pages    map[string]*page.Maker    // by run
	rows     map[string]listed         // by run
	copies   map[string]attempts.Found // runs that work in copies
	groups   map[string]bool           // runs with attempts: a later run may apply another attempt
}

// New returns a server for a listener: on a loopback address if remote is nil. It serves until
// the context ends.
func New(ctx context.Context, l net.Listener, remote *Remote, o Options) (*Server, error) {
	at, ok := l.Addr().(*net.TCPAddr)
	switch {
	case remote == nil && (!ok || !at.IP.IsLoopback()):
		return nil, fmt.Errorf("%s is not a loopback address", l.Addr())
	case remote != nil && remote.Password == "":
		return nil, errors.New("a server for other machines needs a password")
	case remote != nil:
		if err := remote.Certificate.Leaf.VerifyHostname(remote.Name); err != nil {
			return nil, err
		}
	}
	s := &Server{Options: o, remote: remote, root: "/" + rand.Text(), cookie: rand.Text(), html: page.New(o.Clean), door: page.New(nil),
		viewers: make(chan struct{}, maxViewers), said: map[string]string{}, readings: map[string]*reading{}, seed: maphash.MakeSeed(), keeper: wall.NewKeeper(""),
		pages: map[string]*page.Maker{}, rows: map[string]listed{}, copies: map[string]attempts.Found{}, groups: map[string]bool{}}
	s.html.Under(s.root)
	s.host, s.port, _ = net.SplitHostPort(l.Addr().String())
	if remote != nil {
		s.host = remote.Name
	}
	s.ctx, s.end = context.WithCancel(ctx)
	return s, nil
}

// Link returns the address of the page of a run, or of the list if run is empty, with a new
// token in it. The token can be used once, and earlier ones not any more.
func (s *Server) Link(run string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = rand.Text()
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(s.host, s.port), Path: "/", RawQuery: "token=" + s.token}
	if run != "" {
		u.Path = "/run/" + run
	}
	if s.remote != nil {
		u.Scheme = "https"
	}
	return u.String()
}

// Serve answers requests until the context of [New] ends, and for what the user has asked for by
// then.
func (s *Server) Serve(l net.Listener) error {
	defer s.wait()
	h := http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, IdleTimeout: 2 * time.Minute}
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
	case <-s.ctx.Done():
		_ = h.Close()
		<-served
		return nil
	}
}

// It ends the runs that the server has resumed.
func (s *Server) wait() {
	s.end()
	s.mu.Lock() // nothing begins from here on
	for _, r := range s.resumed {
		s.Say("stopping run " + journal.ShortRun(r.run) + ", which was resumed on the page")
	}
	s.mu.Unlock()
	s.running.Wait()
	s.keeper.Close()
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /run/{name...}", s.page)
	mux.HandleFunc("GET /"+evaluations+"{rest...}", s.page)
	mux.HandleFunc("GET /compare", s.compare)
	mux.HandleFunc("GET /stream/{name...}", s.stream)
	mux.HandleFunc("GET /icon.svg", asset("image/svg+xml", page.Icon()))
	mux.HandleFunc("GET /page.css", asset("text/css; charset=utf-8", page.Style()))
	mux.HandleFunc("GET /page.js", asset("text/javascript; charset=utf-8", page.Script()))
	mux.Handle("POST /act/{action}/{name...}", s.allowed(s.act))
	mux.Handle("GET /preview/undo/{name...}", s.allowed(s.preview))
	return s.guarded(http.NewCrossOriginProtection().Handler(s.admitted(mux)))
}

// policy lets a page use what this server sends, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// It refuses requests under another name than the server's.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			h.Set(name, value)
		}
		name, port, err := net.SplitHostPort(r.Host)
		if err != nil {
			name, port = r.Host, "80" // which browsers omit
			if s.remote != nil {
				port = "443"
			}
		}
		own := slices.Contains([]string{"127.0.0.1", "localhost", "::1", s.host}, name)
		if s.remote != nil {
			own = s.remote.Certificate.Leaf.VerifyHostname(name) == nil
		}
		if !own || port != s.port {
			http.Error(w, "This server does not answer to that name. Open the address that hone web printed.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// The text never changes.
func asset(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(text))
	}
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if rest := r.PathValue("rest"); rest != "" {
		name = evaluations + rest
	}
	got, err := s.read(r.Context(), name)
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.serve(w, http.StatusOK, page.Served{Title: got.title, Place: got.place, Stream: "/stream/" + name, Seen: got.id(), Parts: got.parts})
}

func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	names := r.URL.Query()["run"]
	if len(names) != 2 {
		s.refuse(w, errors.New("choose two runs in the list"))
		return
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	var both page.Pair
	for _, name := range names {
		home, err := s.find(name)
		if err == nil {
			defer home.Close()
			var run *report.Run
			if run, err = report.Read(home, name); err == nil {
				both = append(both, page.Page{Account: report.Of(run)})
				continue
			}
		}
		s.refuse(w, err)
		return
	}
	part, err := s.html.View(both)
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.serve(w, http.StatusOK, page.Served{Title: "hone: two runs", Place: "two runs", Parts: []page.Part{part}})
}

func (s *Server) serve(w http.ResponseWriter, status int, p page.Served) {
	p.Version = s.Version
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = s.html.Serve(w, p)
}

func (s *Server) refuse(w http.ResponseWriter, err error) {
	status, title := http.StatusInternalServerError, "This page cannot be shown"
	if errors.Is(err, errNotFound) {
		status, title = http.StatusNotFound, "Not found"
	}
	part, failed := s.html.View(page.Refusal{Title: title, Why: explanation(err)})
	if failed != nil {
		http.Error(w, err.Error(), status)
		return
	}
	s.serve(w, status, page.Served{Title: "hone: " + title, Parts: []page.Part{part}})
}
