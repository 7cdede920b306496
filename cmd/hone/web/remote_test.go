package web_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hone/cmd/hone/web"
)

// certificate returns one for some names, and what trusts it.
func certificate(t *testing.T, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

const password = "correct horse battery"

// remote is a server for other machines, and a browser of one.
type remote struct {
	served
	port  string
	trust *x509.CertPool
}

func serveRemote(t *testing.T) remote {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cert, trust := certificate(t, "box.example")
	s := remote{served: served{book: newBook(t), at: l.Addr().String()}, trust: trust}
	_, s.port, _ = net.SplitHostPort(s.at)
	if s.Server, err = web.New(t.Context(), l, &web.Remote{Name: "box.example", Certificate: cert, Password: password}, web.Options{Dirs: []string{s.dir}, Version: "1"}); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	return s
}

// browser returns a client that finds the server under any name.
func (s remote) browser(t *testing.T) *http.Client {
	c := stranger()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.at)
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: s.trust, ServerName: "box.example"}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	c.Transport = transport
	return c
}

// ask sends a request; one with a form if there is a password.
func (s remote) ask(t *testing.T, c *http.Client, host, path, pass string, header http.Header) (*http.Response, string) {
	t.Helper()
	method, body := "GET", ""
	if pass != "" {
		method, body = "POST", url.Values{"password": {pass}}.Encode()
	}
	r, err := http.NewRequest(method, "https://"+host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for k, v := range header {
		r.Header[k] = v
	}
	got, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, _ := io.ReadAll(got.Body)
	return got, string(text)
}

// TestRemote: a browser elsewhere gets in with the password or the link, by a name of the
// certificate, and with nothing else.
func TestRemote(t *testing.T) {
	t.Parallel()
	s := serveRemote(t)
	c := s.browser(t)
	own := "box.example:" + s.port
	for name, q := range map[string]struct {
		host, path, password string
		header               http.Header
		status               int
	}{
		"no cookie":                   {own, "/", "", nil, 401},
		"no cookie, a run":            {own, "/run/" + one, "", nil, 401},
		"no cookie, the stream":       {own, "/stream/" + one, "", nil, 401},
		"no cookie, the style":        {own, "/page.css", "", nil, 200},
		"by address":                  {"127.0.0.1:" + s.port, "/", "", nil, 401},
		"a wrong token":               {own, "/?token=x", "", nil, 403},
		"a wrong password":            {own, "/", "wrong horse battery", nil, 403},
		"a part of the password":      {own, "/", password[:12], nil, 403},
		"a wrong name":                {"evil.example:" + s.port, "/", "", nil, 403},
		"a wrong name, password":      {"evil.example:" + s.port, "/", password, nil, 403},
		"a loopback name":             {"localhost:" + s.port, "/", "", nil, 403},
		"another port":                {"box.example:1", "/", "", nil, 403},
		"no port":                     {"box.example", "/", "", nil, 403},
		"the password of a site":      {own, "/", password, http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		"the password of a port":      {own, "/", password, http.Header{"Sec-Fetch-Site": {"same-site"}}, 403},
		"the password of an origin":   {own, "/", password, http.Header{"Origin": {"https://box.example:1"}}, 403},
		"a form that is too long":     {own, "/", strings.Repeat("x", 20<<10), nil, 401},
		"another server's cookie":     {own, "/", "", http.Header{"Cookie": {"hone=x; hone=y"}}, 401},
		"the password in the address": {own, "/?password=" + url.QueryEscape(password), "", nil, 401},
	} {
		got, text := s.ask(t, c, q.host, q.path, q.password, q.header)
		if got.StatusCode != q.status || strings.Contains(text, shown) || len(got.Cookies()) > 0 {
			t.Errorf("%s: %s, want %d, cookies %v\n%s", name, got.Status, q.status, got.Cookies(), text)
		}
		if !strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: no policy", name)
		}
	}
	for _, enter := range []func() *http.Response{
		func() *http.Response { got, _ := s.ask(t, c, own, "/run/"+one, password, nil); return got },
		func() *http.Response {
			_, query, _ := strings.Cut(s.Link(one), "?")
			got, _ := s.ask(t, c, own, "/run/"+one+"?"+query, "", nil)
			return got
		},
	} {
		got := enter()
		to := got.Header.Get("Location")
		if got.StatusCode != 303 || !strings.HasSuffix(to, "/run/"+one) || len(got.Cookies()) != 1 || got.ProtoMajor != 2 {
			t.Fatalf("%s %s to %q, cookies %v", got.Proto, got.Status, to, got.Cookies())
		}
		cookie := got.Cookies()[0]
		if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != strings.TrimSuffix(to, "run/"+one) {
			t.Errorf("the cookie: %+v", cookie)
		}
		if got, text := s.ask(t, c, own, cookie.Path, "", http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}}); got.StatusCode != 200 || !strings.Contains(text, shown) {
			t.Errorf("with the cookie: %s\n%s", got.Status, text)
		}
	}
	if link := s.Link(one); !strings.HasPrefix(link, "https://"+own+"/run/"+one+"?token=") {
		t.Error(link)
	}
}

// TestSignInLeadsHere: the form leads back to the page, also to that of an earlier server, and
// never to another site. It does not tell strangers the path of the pages.
func TestSignInLeadsHere(t *testing.T) {
	t.Parallel()
	s := serveRemote(t)
	c := s.browser(t)
	earlier := "/" + strings.Repeat("A", 26)
	for path, want := range map[string]string{"/run/" + one: "/run/" + one, earlier + "/run/" + one: "/run/" + one, earlier: "/", earlier + "//evil.example/": "/evil.example/", "//evil.example/": "/evil.example/", "/%5cevil.example": "/evil.example", "/run/%22%3e%3cscript%3e": "/run/%22%3E%3Cscript%3E"} {
		got, _ := s.ask(t, c, "box.example:"+s.port, path, password, nil)
		at := got.Header.Get("Location")
		root, ok := strings.CutSuffix(at, want)
		if got.StatusCode != 303 || !ok || len(root) != len(earlier) || strings.Contains(root[1:], "/") {
			t.Fatalf("%s: %s to %q", path, got.Status, at)
		}
		if _, text := s.ask(t, c, "box.example:"+s.port, path, "", nil); strings.Contains(text, "<script>") || strings.Contains(text, root) || !strings.Contains(text, `<form id="sign-in" method="post" action="`+want+`"`) {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// TestManyPasswords: after some wrong passwords, no browser can try any for a while. The
// user's link still works.
func TestManyPasswords(t *testing.T) {
	t.Parallel()
	s := serveRemote(t)
	own := "box.example:" + s.port
	for i := range 10 {
		if got, _ := s.ask(t, s.browser(t), own, "/", "wrong horse battery", nil); got.StatusCode != 403 {
			t.Fatalf("try %d: %s", i+1, got.Status)
		}
	}
	for _, pass := range []string{"wrong horse battery", password} {
		got, text := s.ask(t, s.browser(t), own, "/", pass, nil)
		if got.StatusCode != 429 || got.Header.Get("Retry-After") == "" || len(got.Cookies()) > 0 || !strings.Contains(text, "Too many wrong passwords") {
			t.Errorf("one more: %s\n%s", got.Status, text)
		}
	}
	_, query, _ := strings.Cut(s.Link(""), "?")
	if got, _ := s.ask(t, s.browser(t), own, "/?"+query, "", nil); got.StatusCode != 303 || len(got.Cookies()) != 1 {
		t.Errorf("the link: %s", got.Status)
	}
}

// TestOnlyTLS: a browser that speaks plain HTTP learns nothing, and one that does not
// trust the certificate gets no answer.
func TestOnlyTLS(t *testing.T) {
	t.Parallel()
	s := serveRemote(t)
	got, err := stranger().Get("http://" + s.at + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if body, _ := io.ReadAll(got.Body); got.StatusCode != 400 || strings.Contains(string(body), "hone") {
		t.Errorf("%s: %s", got.Status, body)
	}
	if got, err := stranger().Get("https://" + s.at + "/"); err == nil {
		t.Errorf("a certificate that nobody vouches for: %s", got.Status)
	}
}

// TestRemoteNeeds: a server for others needs a password and a certificate for its name.
func TestRemoteNeeds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cert, _ := certificate(t, "box.example")
	for _, r := range []*web.Remote{{Name: "box.example", Certificate: cert}, {Name: "other.example", Certificate: cert, Password: password}} {
		if _, err := web.New(t.Context(), l, r, web.Options{}); err == nil {
			t.Errorf("%s, password %q: it serves", r.Name, r.Password)
		}
	}
}
