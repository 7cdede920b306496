package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"hone/cmd/hone/page"
	"hone/cmd/hone/web"
	"hone/internal/waittest"
)

// book is a source whose pages a test writes.
type book struct {
	mu    sync.Mutex
	parts map[string][]page.Part
	views int
}

func (b *book) State(name string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	parts, ok := b.parts[name]
	if !ok {
		return "", web.ErrNotFound
	}
	return fmt.Sprint(parts), nil
}

func (b *book) View(_ context.Context, name string) (web.View, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.views++
	return web.View{Title: "page " + name, Place: name, Parts: b.parts[name]}, nil
}

// write replaces the parts of a page: names and texts alternate.
func (b *book) write(name string, parts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []page.Part
	for i := 0; i < len(parts); i += 2 {
		list = append(list, page.Part{ID: parts[i], HTML: `<p id="` + parts[i] + `">` + parts[i+1] + "</p>"})
	}
	b.parts[name] = list
}

// served is a server that runs until the test ends.
type served struct {
	*web.Server
	book *book
	at   string
	stop func()
	done chan error
}

func serve(t *testing.T) served { return serveActor(t, nil) }

// serveActor is serve with an actor; nil allows no actions.
func serveActor(t *testing.T, actor web.Actor) served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := served{book: &book{parts: map[string][]page.Part{}}, at: l.Addr().String(), stop: cancel, done: make(chan error, 1)}
	s.book.write("", "runs", "all of them")
	s.book.write("one", "run", "head", "r1", "first")
	if s.Server, err = web.New(ctx, l, s.book, "1", page.New(nil)); err != nil {
		t.Fatal(err)
	}
	s.Allow(actor)
	go func() { s.done <- s.Serve(l) }()
	t.Cleanup(cancel)
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
		"a run":                        {user, "GET", "/run/one", "", nil, 200},
		"no such run":                  {user, "GET", "/run/two", "", nil, 404},
		"no such page":                 {user, "GET", "/etc/passwd", "", nil, 404},
		"climbing":                     {user, "GET", "/run/../../etc/passwd", "", nil, 307}, // to /etc/passwd
		"no cookie":                    {stranger(), "GET", "/", "", nil, 401},
		"no cookie, a run":             {stranger(), "GET", "/run/one", "", nil, 401},
		"no cookie, the stream":        {stranger(), "GET", "/stream/one", "", nil, 401},
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
			if got.StatusCode != c.status || got.StatusCode != 200 && strings.Contains(string(body), "all of them") {
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
	old, link := s.Link("one"), s.Link("one")
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
	if got.StatusCode != 303 || !strings.HasSuffix(to, "/run/one") {
		t.Fatalf("the link: %s, %q", got.Status, to)
	}
	if c := got.Cookies()[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Domain != "" || c.Path != strings.TrimSuffix(to, "run/one") {
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
	c := &clerk{}
	s := serveActor(t, c)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	home, err := browser.Get(s.Link("one"))
	if err != nil {
		t.Fatal(err)
	}
	home.Body.Close()
	cookies := jar.Cookies(home.Request.URL)
	if home.StatusCode != 200 || len(cookies) != 1 {
		t.Fatalf("the user's page: %s, %v", home.Status, cookies)
	}
	for _, path := range []string{"/", "/run/one", "/run/", "/stream/one", "/act/undo/one", "/page.css", "/?token=x"} {
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
		"the cookie alone": {"http://" + s.at + "/act/undo/one", cookies[0].String()},
		"the path alone":   {strings.Replace(home.Request.URL.String(), "/run/", "/act/undo/", 1), ""},
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
		if got.StatusCode != 401 || len(c.did) > 0 {
			t.Errorf("%s: %s, did %v", name, got.Status, c.did)
		}
	}
}

// message is one of a stream.
type message struct {
	id    string
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
				m.parts = nil
				for _, p := range parts {
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
	from := messages(t, user, root+"/stream/one", "")
	first := next(t, from)
	if fmt.Sprint(first.parts) != `[<p id="run">head</p> <p id="r1">first</p>]` {
		t.Errorf("first %v", first.parts)
	}
	s.book.write("one", "run", "head", "r1", "first, longer", "r2", "second")
	second := next(t, from)
	if fmt.Sprint(second.parts) != `[<p id="r1">first, longer</p> <p id="r2">second</p>]` {
		t.Errorf("then %v", second.parts)
	}
	s.book.write("one", "run", "head", "r1", "first, longer", "r2", "done")
	third := next(t, from)
	for _, c := range []struct{ last, want string }{
		{second.id, `[<p id="r2">done</p>]`},
		{first.id, `[<p id="r1">first, longer</p> <p id="r2">done</p>]`},
		{"another-1", `[<p id="run">head</p> <p id="r1">first, longer</p> <p id="r2">done</p>]`},
		{"nonsense", `[<p id="run">head</p> <p id="r1">first, longer</p> <p id="r2">done</p>]`},
	} {
		if m := next(t, messages(t, user, root+"/stream/one", c.last)); m.id != third.id || fmt.Sprint(m.parts) != c.want {
			t.Errorf("after %s: %+v", c.last, m)
		}
		if m := next(t, messages(t, user, root+"/stream/one?after="+c.last, "")); fmt.Sprint(m.parts) != c.want {
			t.Errorf("after %s, by address: %+v", c.last, m)
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
			next(t, messages(t, user, root+"/stream/one", ""))
		}
		got, err := user.Get(root + "/run/one")
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		body, _ := io.ReadAll(got.Body)
		_, rest, _ := strings.Cut(string(body), `data-stream="`+strings.TrimPrefix(root, "http://"+s.at)+`/stream/one" data-seen="`)
		seen, _, ok := strings.Cut(rest, `"`)
		if !ok || !strings.Contains(string(body), `<p id="r1">first</p>`) {
			t.Fatalf("%s", body)
		}
		s.book.write("one", "run", "new head", "r1", "first")
		later := messages(t, user, root+"/stream/one?after="+seen, "")
		if m := next(t, later); fmt.Sprint(m.parts) != `[<p id="run">new head</p>]` {
			t.Errorf("others %t: %v", others, m.parts)
		}
	}
}

// TestManyReaders: the source is read once for all of them, one that reads nothing delays
// no other, and there is a limit.
func TestManyReaders(t *testing.T) {
	t.Parallel()
	s := serve(t)
	user, root := s.enter(t)
	s.book.write("one", "run", strings.Repeat("a long text ", 1<<18)) // more than any buffer holds
	r, err := http.NewRequest("GET", root+"/stream/one", nil)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := user.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Body.Close()
	s.book.write("one", "run", "short")
	var readers []<-chan message
	for range 255 {
		readers = append(readers, messages(t, user, root+"/stream/one", ""))
	}
	for _, from := range readers {
		if m := next(t, from); len(m.parts) != 1 {
			t.Fatalf("%+v", m)
		}
	}
	got, err := user.Get(root + "/stream/one")
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.StatusCode != 503 {
		t.Errorf("one more reader: %s", got.Status)
	}
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	if s.book.views > 10 {
		t.Errorf("the source was read %d times", s.book.views)
	}
}

// TestEnd: the end of the context ends the streams and the server.
func TestEnd(t *testing.T) {
	t.Parallel()
	s := serve(t)
	user, root := s.enter(t)
	from := messages(t, user, root+"/stream/one", "")
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
	if _, err := web.New(t.Context(), l, &book{}, "1", page.New(nil)); err == nil {
		t.Error("it listens to others")
	}
}

var errBroken = errors.New("the journal is damaged")

// broken is a source that cannot be read.
type broken struct{}

func (broken) State(string) (string, error)                   { return "", errBroken }
func (broken) View(context.Context, string) (web.View, error) { return web.View{}, errBroken }

// TestBroken: a page that cannot be read says why.
func TestBroken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := web.New(t.Context(), l, broken{}, "1", page.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	s := served{Server: server, at: l.Addr().String()}
	user, root := s.enter(t)
	got, err := user.Get(root + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if body, _ := io.ReadAll(got.Body); got.StatusCode != 500 || !strings.Contains(string(body), "damaged") {
		t.Errorf("%s: %s", got.Status, body)
	}
}
