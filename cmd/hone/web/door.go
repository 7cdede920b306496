package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"hone/cmd/hone/page"
	"hone/internal/lazyregexp"
)

// Remote is what a server needs for browsers on other machines.
type Remote struct {
	Name        string          // the server's name or address in links; the certificate must cover it
	Certificate tls.Certificate // with its key and leaf
	Password    string          // not empty
}

// admitted lets only the user's requests through, and lets the user in.
func (s *Server) admitted(next http.Handler) http.Handler {
	inside := http.StripPrefix(s.root, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie(cookieName)
		known := err == nil && same(cookie.Value, s.cookie)
		switch token := r.URL.Query().Get("token"); {
		case known && strings.HasPrefix(r.URL.Path, s.root+"/"):
			inside.ServeHTTP(w, r)
		case token != "" && r.Method == http.MethodGet:
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

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (s *Server) letIn(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: s.cookie, Path: s.root + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.remote != nil})
	http.Redirect(w, r, s.root+pathHere(r), http.StatusSeeOther)
}

// anyRoot is the root of a server in a path: that of an earlier one if a page outlived it.
var anyRoot = lazyregexp.New(`^/[A-Z2-7]{26}(/|$)`)

// It has no root.
func pathHere(r *http.Request) string {
	path := anyRoot.ReplaceAllString(r.URL.Path, "/")
	here := url.URL{Path: "/" + strings.TrimLeft(path, "/\\")} // two slashes would lead to another site
	return here.EscapedPath()
}

const (
	triesTime = time.Minute
	maxTries  = 10 // in that time, of all browsers together
)

type tries struct {
	mu    sync.Mutex
	wrong []time.Time // of the last minute
}

// After too many wrong passwords right is not called, and wait is how long to wait.
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

func (s *Server) askPassword(w http.ResponseWriter, r *http.Request, status int, why string) {
	to := "/"
	if r.Method == http.MethodGet {
		to = pathHere(r)
	}
	part, err := s.door.View(page.SignIn{To: to, Why: why})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = s.door.Serve(w, page.Served{Title: "hone: sign in", Version: s.Version, Parts: []page.Part{part}})
}
