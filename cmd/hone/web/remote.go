package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"hone/cmd/hone/page"
)

// Remote is what a server needs for browsers on other machines.
type Remote struct {
	Name        string          // the server's name or address in links; the certificate must cover it
	Certificate tls.Certificate // with its key and leaf
	Password    string          // not empty
}

// NewRemote returns a server for a listener on any address. It speaks only TLS. Streams end
// when the context ends.
func NewRemote(ctx context.Context, l net.Listener, source Source, version string, pages *page.Renderer, r Remote) (*Server, error) {
	if r.Password == "" {
		return nil, fmt.Errorf("a server for other machines needs a password")
	}
	if err := r.Certificate.Leaf.VerifyHostname(r.Name); err != nil {
		return nil, err
	}
	s := newServer(ctx, r.Name, l, source, version, pages)
	s.remote, s.door = &r, page.New(nil)
	return s, nil
}

const (
	triesTime = time.Minute
	maxTries  = 10 // in that time, of all browsers together
)

// tries limits the number of wrong passwords.
type tries struct {
	mu    sync.Mutex
	wrong []time.Time // of the last minute
}

// try calls right, unless there were too many wrong passwords: then it returns how long to
// wait.
func (t *tries) try(now time.Time, right func() bool) (ok bool, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.wrong) > 0 && now.Sub(t.wrong[0]) >= triesTime {
		t.wrong = t.wrong[1:]
	}
	if len(t.wrong) >= maxTries {
		return false, triesTime - now.Sub(t.wrong[0])
	}
	if ok = right(); !ok {
		t.wrong = append(t.wrong, now)
	}
	return ok, 0
}

// signIn shows the form for the password, and gives the cookie for the right one.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(writeTime))
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	password := ""
	if r.Method == http.MethodPost {
		password = r.PostFormValue("password")
	}
	if password == "" {
		s.askPassword(w, r, http.StatusUnauthorized, "")
		return
	}
	given, want := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(s.remote.Password))
	switch ok, wait := s.tries.try(time.Now(), func() bool { return subtle.ConstantTimeCompare(given[:], want[:]) == 1 }); {
	case wait > 0:
		seconds := int(wait/time.Second) + 1
		w.Header().Set("Retry-After", fmt.Sprint(seconds))
		s.askPassword(w, r, http.StatusTooManyRequests, fmt.Sprintf("Too many wrong passwords. Wait %d seconds.", seconds))
	case !ok:
		s.askPassword(w, r, http.StatusForbidden, "The password is wrong.")
	default:
		s.letIn(w, r)
	}
}

// askPassword sends the form for the password.
func (s *Server) askPassword(w http.ResponseWriter, r *http.Request, status int, why string) {
	to := "/"
	if r.Method == http.MethodGet {
		to = pathHere(r)
	}
	part, err := s.door.SignIn(to, why)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = s.door.Serve(w, page.Served{Title: "hone: sign in", Version: s.version, Parts: []page.Part{part}})
}
