package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hone/cmd/hone/web"
	"hone/history"
	"hone/internal/crashtest/waittest"
	"hone/journal"
)

// one is the id of the run of a book.
const one = "20260102-030405-abcdef"

// shown is what the pages of a book show.
const shown = "the-loop"

// book is a directory with a run, to which a test adds.
type book struct {
	t   *testing.T
	dir string
	run *journal.Journal
}

func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{t: t, dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(b.dir, ".git"), 0o755); err != nil { // no run is looked for above it
		t.Fatal(err)
	}
	home, err := journal.OpenHome(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Close() })
	if b.run, err = home.Create(one); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.run.Close() })
	b.add(history.TypeStart, nil, history.Start{Loop: shown, Dir: b.dir, Limits: history.Limits{Rounds: 3}})
	b.note("first")
	return b
}

func (b *book) add(kind journal.Type, step *journal.Identity, payload any) {
	b.t.Helper()
	if _, err := b.run.Append(journal.Entry{Type: kind, Step: step, Payload: payload}); err != nil {
		b.t.Fatal(err)
	}
}

// note adds a text to what came before the first round.
func (b *book) note(text string) {
	b.t.Helper()
	b.add(history.TypeNotice, nil, history.Notice{Text: text})
}

// begin begins a round, and ends the one before it.
func (b *book) begin(round int) {
	b.t.Helper()
	if round > 1 {
		b.add(history.TypeRound, nil, history.State{Round: round - 1, Decision: history.AnotherRound})
	}
	b.add(history.TypeNotice, &journal.Identity{Round: round, Name: "test"}, history.Notice{Text: "it begins"})
}

// served is a server that runs until the test ends.
type served struct {
	*web.Server
	*book
	at   string
	stop func()
	done chan error
}

func serve(t *testing.T) served { return serveSaying(t, nil) }

// serveSaying is serve with what is called when the user acts; nil allows no actions.
func serveSaying(t *testing.T, say func(string)) served {
	t.Helper()
	b := newBook(t)
	return b.serve(web.Options{Dirs: []string{b.dir}, Version: "1", Say: say})
}

func (b *book) serve(o web.Options) served {
	b.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := served{book: b, at: l.Addr().String(), stop: cancel, done: make(chan error, 1)}
	if s.Server, err = web.New(ctx, l, nil, o); err != nil {
		b.t.Fatal(err)
	}
	go func() { s.done <- s.Serve(l) }()
	b.t.Cleanup(cancel)
	return s
}

// enter returns a client that has opened the link, and does not follow redirects, and the
// address that begins those of all pages for it.
func (s served) enter(t *testing.T) (c *http.Client, root string) {
	t.Helper()
	c = stranger()
	got, err := c.Get(s.Link(""))
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	cookies, to := got.Cookies(), got.Header.Get("Location")
	if got.StatusCode != http.StatusSeeOther || !regexp.MustCompile("^/[A-Z2-7]{26}/$").MatchString(to) || len(cookies) != 1 || cookies[0].Path != to {
		t.Fatalf("%s to %q with cookies %v", got.Status, to, cookies)
	}
	c.Transport = withCookie{cookies[0]}
	return c, "http://" + s.at + strings.TrimSuffix(to, "/")
}

func stranger() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// withCookie sends a cookie with each request.
type withCookie struct{ *http.Cookie }

func (c withCookie) RoundTrip(r *http.Request) (*http.Response, error) {
	r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	return http.DefaultTransport.RoundTrip(r)
}

// TestClosed: only the browser that opened the link gets in, only under a loopback name,
// and other sites can do nothing with its cookie.
func TestClosed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	user, root := s.enter(t)
	_, port, _ := net.SplitHostPort(s.at)
	inside := strings.TrimPrefix(root, "http://"+s.at)
	for name, c := range map[string]struct {
		client *http.Client
		method string
		path   string
		host   string
		header map[string]string
		status int
	}{
		"the user":                     {user, "GET", "/", "", nil, 200},
		"the user, by localhost":       {user, "GET", "/", "localhost:" + port, nil, 200},
		"the user, by IPv6":            {user, "GET", "/", "[::1]:" + port, nil, 200},
		"a run":                        {user, "GET", "/run/" + one, "", nil, 200},
		"no such run":                  {user, "GET", "/run/two", "", nil, 404},
		"no such page":                 {user, "GET", "/etc/passwd", "", nil, 404},
		"climbing":                     {user, "GET", "/run/../../etc/passwd", "", nil, 307}, // to /etc/passwd
		"no cookie":                    {stranger(), "GET", "/", "", nil, 401},
		"no cookie, a run":             {stranger(), "GET", "/run/" + one, "", nil, 401},
		"no cookie, the stream":        {stranger(), "GET", "/stream/" + one, "", nil, 401},
		"no cookie, the style":         {stranger(), "GET", "/page.css", "", nil, 401},
		"a wrong token":                {stranger(), "GET", "/?token=AAAAAAAAAAAAAAAAAAAAAAAAAA", "", nil, 403},
		"an empty token":               {stranger(), "GET", "/?token=", "", nil, 401},
		"no cookie, the path":          {stranger(), "GET", inside + "/", "", nil, 401},
		"no cookie, the path's style":  {stranger(), "GET", inside + "/page.css", "", nil, 401},
		"another server's cookie":      {stranger(), "GET", inside + "/", "", map[string]string{"Cookie": "hone=x; hone=y"}, 401},
		"rebinding":                    {user, "GET", "/", "evil.example", nil, 403},
		"rebinding, with the port":     {user, "GET", "/", "evil.example:" + port, nil, 403},
		"rebinding, by a longer name":  {user, "GET", "/", "127.0.0.1.evil.example:" + port, nil, 403},
		"another port":                 {user, "GET", "/", "127.0.0.1:1", nil, 403},
		"no port":                      {user, "GET", "/", "127.0.0.1", nil, 403},
		"a token, under another name":  {stranger(), "GET", "/?token=x", "evil.example:" + port, nil, 403},
		"a post":                       {user, "POST", "/", "", nil, 405},
		"a post of another site":       {user, "POST", "/", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a post of another port":       {user, "POST", "/", "", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"a post with another's origin": {user, "POST", "/", "", map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		"a post of a token":            {stranger(), "POST", "/?token=x", "", nil, 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := "http://" + s.at
			if c.client == user {
				at = root
			}
			r, err := http.NewRequest(c.method, at+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			got, err := c.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			body, _ := io.ReadAll(got.Body)
			if got.StatusCode != c.status || got.StatusCode != 200 && strings.Contains(string(body), shown) {
				t.Errorf("%s, want %d\n%s", got.Status, c.status, body)
			}
			for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"} {
				if !strings.HasPrefix(got.Header.Get(name), want) {
					t.Errorf("%s: %q", name, got.Header.Get(name))
				}
			}
			if got.StatusCode != http.StatusSeeOther && len(got.Cookies()) > 0 {
				t.Error("it sets a cookie")
			}
		})
	}
}

// TestLink: a link works once, a new one makes the earlier useless, and the cookie is
// kept from scripts and from other sites.
func TestLink(t *testing.T) {
	t.Parallel()
	s := serve(t)
	old, link := s.Link(one), s.Link(one)
	open := func(link string) *http.Response {
		got, err := stranger().Get(link)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		return got
	}
	if got := open(old); got.StatusCode != 403 {
		t.Errorf("an earlier link: %s", got.Status)
	}
	got := open(link)
	to := got.Header.Get("Location")
	if got.StatusCode != 303 || !strings.HasSuffix(to, "/run/"+one) {
		t.Fatalf("the link: %s, %q", got.Status, to)
	}
	if c := got.Cookies()[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Domain != "" || c.Path != strings.TrimSuffix(to, "run/"+one) {
		t.Errorf("the cookie: %+v", c)
	}
	if got := open(link); got.StatusCode != 403 || len(got.Cookies()) > 0 {
		t.Errorf("the link again: %s", got.Status)
	}
	u, err := url.Parse(link)
	if err != nil || u.Hostname() != "127.0.0.1" {
		t.Errorf("%v, %v", u, err)
	}
}

// TestOtherPorts: a browser sends the cookie to no other port of the machine, whose servers may
// belong to other users. Neither the cookie nor the path that it belongs to is enough.
func TestOtherPorts(t *testing.T) {
	t.Parallel()
	var seen []string // what arrives at another port
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header["Cookie"]...)
		seen = append(seen, r.Header["Referer"]...)
	}))
	defer other.Close()
	var did []string
	s := serveSaying(t, func(text string) { did = append(did, text) })
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	home, err := browser.Get(s.Link(one))
	if err != nil {
		t.Fatal(err)
	}
	home.Body.Close()
	cookies := jar.Cookies(home.Request.URL)
	if home.StatusCode != 200 || len(cookies) != 1 {
		t.Fatalf("the user's page: %s, %v", home.Status, cookies)
	}
	for _, path := range []string{"/", "/run/" + one, "/run/", "/stream/" + one, "/act/stop/" + one, "/page.css", "/?token=x"} {
		got, err := browser.Get(other.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
	}
	if len(seen) > 0 {
		t.Errorf("another port is sent %q", seen)
	}
	for name, replay := range map[string]struct{ address, cookie string }{
		"the cookie alone": {"http://" + s.at + "/act/stop/" + one, cookies[0].String()},
		"the path alone":   {strings.Replace(home.Request.URL.String(), "/run/", "/act/stop/", 1), ""},
	} {
		r, err := http.NewRequest("POST", replay.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", "http://"+s.at)
		r.Header.Set("Cookie", replay.cookie)
		got, err := stranger().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != 401 || len(did) > 0 {
			t.Errorf("%s: %s, did %v", name, got.Status, did)
		}
	}
}

// message is one of a stream.
type message struct {
	id    string
	ids   []string // of the parts
	parts []string
}

// messages reads a stream until it ends.
func messages(t *testing.T, c *http.Client, address, last string) <-chan message {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	got, err := c.Do(r)
	if err != nil || got.StatusCode != 200 {
		t.Fatal(got, err)
	}
	out := make(chan message, 100)
	go func() {
		defer close(out)
		defer got.Body.Close()
		var m message
		for lines := bufio.NewScanner(got.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				m.id = value
			case "data":
				var parts []struct{ ID, HTML string }
				if err := json.Unmarshal([]byte(value), &parts); err != nil {
					t.Error(err)
				}
				m.ids, m.parts = nil, nil
				for _, p := range parts {
					m.ids = append(m.ids, p.ID)
					m.parts = append(m.parts, p.HTML)
				}
				out <- m
			}
		}
	}()
	return out
}

// next returns the next message.
func next(t *testing.T, from <-chan message) message {
	t.Helper()
	select {
	case m := <-from:
		return m
	case <-time.After(waittest.Limit):
		t.Fatal("nothing is sent")
		return message{}
	}
}

// TestStream: a reader is sent the parts that changed since what it saw last.
func TestStream(t *testing.T) {
	t.Parallel()
	s := serve(t)
	user, root := s.enter(t)
	from := messages(t, user, root+"/stream/"+one, "")
	first := next(t, from)
	if got := fmt.Sprint(first.ids); got != "[run rounds r0 wait]" || !strings.Contains(fmt.Sprint(first.parts), "first") {
		t.Errorf("first %s", got)
	}
	s.begin(1)
	second := next(t, from)
	if got := fmt.Sprint(second.ids); !strings.Contains(got, " r1") || strings.Contains(got, "r0") || strings.Contains(got, "wait") {
		t.Errorf("then %s", got)
	}
	s.begin(2)
	third := next(t, from)
	for _, c := range []struct{ last, with, without string }{
		{second.id, " r2", "r0"},
		{first.id, " r1 r2", "r0"},
		{"another-1", "r0 r1 r2 wait", "nothing"},
		{"nonsense", "r0 r1 r2 wait", "nothing"},
	} {
		for _, m := range []message{next(t, messages(t, user, root+"/stream/"+one, c.last)), next(t, messages(t, user, root+"/stream/"+one+"?after="+c.last, ""))} {
			if got := fmt.Sprint(m.ids); m.id != third.id || !strings.Contains(got, c.with) || strings.Contains(got, c.without) {
				t.Errorf("after %s: %s, %s", c.last, m.id, got)
			}
		}
	}
}

// TestPageNamesItsReading: the stream of a page sends only what has changed since the page was
// loaded, including changes before the stream began, with and without other viewers.
func TestPageNamesItsReading(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		s := serve(t)
		user, root := s.enter(t)
		if others {
			next(t, messages(t, user, root+"/stream/"+one, ""))
		}
		got, err := user.Get(root + "/run/" + one)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		body, _ := io.ReadAll(got.Body)
		_, rest, _ := strings.Cut(string(body), `data-stream="`+strings.TrimPrefix(root, "http://"+s.at)+`/stream/`+one+`" data-seen="`)
		seen, _, ok := strings.Cut(rest, `"`)
		if !ok || !strings.Contains(string(body), "first") {
			t.Fatalf("%s", body)
		}
		s.begin(1)
		later := messages(t, user, root+"/stream/"+one+"?after="+seen, "")
		if got := fmt.Sprint(next(t, later).ids); !strings.Contains(got, "r1") || strings.Contains(got, "r0") {
			t.Errorf("others %t: %s", others, got)
		}
	}
}

// TestManyReaders: one that reads nothing delays no other, and there is a limit.
func TestManyReaders(t *testing.T) {
	t.Parallel()
	s := serve(t)
	user, root := s.enter(t)
	for range 15 {
		s.note(strings.Repeat("a long text ", 1<<14)) // in all more than any buffer holds
	}
	r, err := http.NewRequest("GET", root+"/stream/"+one, nil)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := user.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Body.Close()
	page, err := user.Get(root + "/run/" + one)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	body, _ := io.ReadAll(page.Body)
	_, rest, _ := strings.Cut(string(body), `data-seen="`)
	seen, _, _ := strings.Cut(rest, `"`)
	var readers []<-chan message
	for range 255 {
		readers = append(readers, messages(t, user, root+"/stream/"+one+"?after="+seen, ""))
	}
	s.begin(1)
	for _, from := range readers {
		if m := next(t, from); !slices.Contains(m.ids, "r1") {
			t.Fatalf("%+v", m)
		}
	}
	got, err := user.Get(root + "/stream/" + one)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.StatusCode != 503 {
		t.Errorf("one more reader: %s", got.Status)
	}
}

// TestEnd: the end of the context ends the streams and the server.
func TestEnd(t *testing.T) {
	t.Parallel()
	s := serve(t)
	user, root := s.enter(t)
	from := messages(t, user, root+"/stream/"+one, "")
	next(t, from)
	s.stop()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	if m, ok := <-from; ok {
		t.Errorf("it goes on: %+v", m)
	}
}

// TestOnlyLoopback: a server of others is refused.
func TestOnlyLoopback(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	defer l.Close()
	if _, err := web.New(t.Context(), l, nil, web.Options{}); err == nil {
		t.Error("it listens to others")
	}
}

// TestBroken: a page that cannot be read says why.
func TestBroken(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.run.Close()
	if err := os.RemoveAll(filepath.Join(b.dir, ".hone", "runs")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, ".hone", "runs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := b.serve(web.Options{Dirs: []string{b.dir}})
	user, root := s.enter(t)
	got, err := user.Get(root + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if body, _ := io.ReadAll(got.Body); got.StatusCode != 500 || !strings.Contains(string(body), "not a directory") {
		t.Errorf("%s: %s", got.Status, body)
	}
}

// TestCompare: two runs are on one page, and nothing else is compared.
func TestCompare(t *testing.T) {
	t.Parallel()
	s := serve(t)
	user, root := s.enter(t)
	for query, want := range map[string]string{"?run=" + one + "&run=" + one: `<div id="pair"><article>`, "?run=" + one: "choose two runs in the list", "": "choose two runs", "?run=" + one + "&run=../x": "Not found"} {
		got, err := user.Get(root + "/compare" + query)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(got.Body)
		got.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: %s", query, body)
		}
	}
}
