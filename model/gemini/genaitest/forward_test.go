package genaitest

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/genai"

	"hone/model"
	"hone/model/agent"
)

// The SDK retries on its own, but not after the first response that says that
// the budget is used up, and it shows this message. Package forward tests the
// other SDKs.
func TestTheSDKDoesNotRetry(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s reached the provider", r.Method, r.RequestURI)
	}))
	defer provider.Close()
	var asked atomic.Int64
	f, err := agent.NewForward(agent.ForwardConfig{Wire: agent.Gemini, Base: provider.URL, Key: key,
		Reserve: func(string, int64, int64) (int64, func(*model.Usage, error) error, error) {
			asked.Add(1)
			return 0, nil, errors.New("nothing is left")
		}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sdk(t, f.URL(listen(t, f))).Models.GenerateContent(t.Context(), "gemini-x", genai.Text("hi"), nil)
	if err == nil || !strings.Contains(err.Error(), "the budget of this run is used up") {
		t.Errorf("the SDK returns %v", err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the SDK sent %d requests, want 1", n)
	}
}

// listen returns an address whose connections the forwarder serves until the
// test ends.
func listen(t *testing.T, f *agent.Forward) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			served.Go(func() { f.ServeConn(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		f.Close()
		served.Wait()
	})
	return l.Addr().String()
}
