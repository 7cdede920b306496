package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"hone/model"
	forwarder "hone/model/agent"
	"hone/model/gemini"
	"hone/sandbox"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
)

// allowance is a ledger that grants a number of calls.
type allowance struct {
	mu    sync.Mutex
	calls int
	used  model.Usage
}

func (a *allowance) reserve(string, int64, int64) (int64, func(*model.Usage, error) error, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls--; a.calls < 0 {
		return 0, nil, errors.New("the budget is used up")
	}
	return 50, func(used *model.Usage, _ error) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if used != nil {
			a.used = a.used.Add(*used)
		}
		return nil
	}, nil
}

// agent is a program behind a wall with a base URL and a dummy key. It makes two
// calls, looks for the real key, and tries to get out.
const agent = `
import os, socket, sys, urllib.error, urllib.request
base, elsewhere = sys.argv[1], sys.argv[2]
for _ in range(2):
    r = urllib.request.Request(base + "/v1beta/models/m:generateContent", data=b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}',
        headers={"Content-Type": "application/json", "x-goog-api-key": "dummy"})
    try:
        print("answer", urllib.request.urlopen(r).read().decode())
    except urllib.error.HTTPError as e:
        print("refused", e.code, e.read().decode())
for path in ("/v1beta/files", "/../secret"):
    try:
        print("passed", urllib.request.urlopen(base + path).read().decode())
    except urllib.error.HTTPError as e:
        print("closed", e.code)
print("environment", os.environ)
host, port = elsewhere.split(":")
try:
    socket.create_connection((host, int(port)), 2)
    print("got out")
except OSError as e:
    print("no way out")
`

// TestForwarderBehindWalls: a program behind a wall calls a model without having
// the real key, as often as the budget allows, and reaches nothing else (ruling
// A8).
func TestForwarderBehindWalls(t *testing.T) {
	if _, err := exec.LookPath("/usr/bin/python3"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	const key = "the-real-key-of-this-test"
	var bodies []string
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Header.Get("x-goog-api-key")+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"candidates":[{"content":{"parts":[{"text":"hello %s"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}`, key)
	}))
	defer provider.Close()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, kind := range []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Firejail, sandbox.Landlock} {
		t.Run(string(kind), func(t *testing.T) {
			bodies = nil
			ledger := &allowance{calls: 1}
			f, err := forwarder.NewForward(forwarder.ForwardConfig{Wire: forwarder.Gemini, Base: provider.URL, Key: key, Reserve: ledger.reserve, Reader: gemini.NewReader})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			dir := t.TempDir()
			w, err := wall.Build(t.Context(), sandbox.Policy{Wall: kind, Read: workshop.System(), Write: []string{dir},
				Doors: []sandbox.Door{{Addr: "127.0.0.1:0", Serve: f.ServeConn}}})
			if err != nil {
				t.Skip("SKIPPED: ", err)
			}
			defer w.Close()
			r, err := w.Run(t.Context(), sandbox.Command{Argv: []string{"/usr/bin/python3", "-c", agent, f.URL(w.DoorAddr(0)), other.Addr().String()}, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			printed := string(r.Stdout)
			for _, want := range []string{"answer {", "hello [key]", "refused 400", "closed 403\nclosed 40", "no way out"} {
				if !strings.Contains(printed, want) {
					t.Errorf("it did not print %q:\n%s\n%s", want, printed, r.Stderr)
				}
			}
			if strings.Contains(printed, key) {
				t.Errorf("it has the key:\n%s", printed)
			}
			if len(bodies) != 1 || !strings.HasPrefix(bodies[0], key+" ") || !strings.Contains(bodies[0], `"maxOutputTokens":50`) {
				t.Errorf("the provider got %q", bodies)
			}
			if ledger.used.Total() != 5 {
				t.Errorf("%+v was counted", ledger.used)
			}
		})
	}
}
