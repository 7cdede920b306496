package main

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWebListen: hone web serves a certificate that its own hint made, to whoever knows
// the password.
func TestWebListen(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hone")
	}
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte("correct horse battery\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"web", "--listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--password-file", "password"}
	refused := exec.Command("hone", args...)
	refused.Dir = dir
	out, _ := refused.CombinedOutput()
	_, command, ok := strings.Cut(string(out), ", or openssl ")
	if !ok {
		t.Fatalf("%s", out)
	}
	made := exec.Command("openssl", strings.Fields(command)...)
	made.Dir = dir
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, link := startLink(t, dir, "https://127.0.0.1:", args...)
	address, _, _ := strings.Cut(link, "?")
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, c := range []struct {
		password, want string
		status         int
	}{{"wrong", "The password is wrong.", 403}, {"correct horse battery", "<h1>Runs</h1>", 200}} {
		got, err := browser.PostForm(address, url.Values{"password": {c.password}})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(got.Body)
		got.Body.Close()
		if got.StatusCode != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("password %q: %s\n%s", c.password, got.Status, body)
		}
	}
}

// TestWebPort: the port of --listen is the one in the address, also of the second server,
// and a port that is in use is named.
func TestWebPort(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hone")
	}
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at, dir := l.Addr().String(), t.TempDir()
	out, err := exec.Command("hone", "web", "-C", dir, "--listen", at).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "address already in use") || !strings.Contains(string(out), "hone: hint: hone web --listen HOST:PORT with another port") {
		t.Errorf("%v: %s", err, out)
	}
	l.Close()
	if _, link := startLink(t, dir, "http://127.0.0.1:", "web", "--listen", at); !strings.HasPrefix(link, "http://"+at+"/?token=") {
		t.Error(link)
	}
}
