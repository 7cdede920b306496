package web_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"hone/journal"
)

// TestActions: only the user acts, with POST and from this page, and only if that is
// allowed.
func TestActions(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	short := journal.ShortRun(one)
	stopped := "requested on the page: stop " + short + "|refused: no process works on this run"
	for _, test := range []struct {
		name, method, path, body string
		header                   map[string]string
		stranger, forbidden      bool
		want                     int
		did                      string
	}{
		{name: "an action", path: "/act/stop/" + one, body: "a=1&b=2", want: 303, did: stopped},
		{name: "from the page", path: "/act/stop/" + one, header: map[string]string{"Sec-Fetch-Site": "same-origin"}, want: 303, did: stopped},
		{name: "not allowed", path: "/act/stop/" + one, forbidden: true, want: 403},
		{name: "a preview that is not allowed", method: "GET", path: "/preview/undo/" + one, forbidden: true, want: 403},
		{name: "without a cookie", path: "/act/stop/" + one, stranger: true, want: 401},
		{name: "by GET", method: "GET", path: "/act/stop/" + one + "?a=1", want: 405},
		{name: "by HEAD", method: "HEAD", path: "/act/stop/" + one + "?a=1", want: 405},
		{name: "from another site", path: "/act/stop/" + one, header: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: 403},
		{name: "from another port", path: "/act/stop/" + one, header: map[string]string{"Sec-Fetch-Site": "same-site"}, want: 403},
		{name: "with another origin", path: "/act/stop/" + one, header: map[string]string{"Origin": "http://127.0.0.1:1"}, want: 403},
		{name: "to another name", path: "/act/stop/" + one, header: map[string]string{"Host": "evil.example"}, want: 403},
		{name: "too large", path: "/act/answer/" + one, body: strings.Repeat("a=1&", 30_000), want: 413},
		{name: "not a form", path: "/act/answer/" + one, body: "%zz", want: 400},
		{name: "query is no form", path: "/act/answer/" + one + "?a=1", want: 303, did: "requested on the page: answer " + short + "|refused: no question was answered"},
		{name: "of no run", path: "/act/stop/" + one + "x", want: 404},
		{name: "of no kind", path: "/act/dance/" + one, want: 404},
		{name: "a preview of no kind", method: "GET", path: "/preview/dance/" + one, want: 404},
	} {
		t.Run(test.name, func(t *testing.T) {
			var did []string
			say := func(text string) { did = append(did, text) }
			if test.forbidden {
				say = nil
			}
			s := serveSaying(t, say)
			browser, root := s.enter(t)
			if test.stranger {
				browser = stranger()
			}
			method := test.method
			if method == "" {
				method = "POST"
			}
			r, err := http.NewRequest(method, root+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", form)
			for name, value := range test.header {
				r.Header.Set(name, value)
			}
			r.Host = r.Header.Get("Host")
			got, err := browser.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			body, _ := io.ReadAll(got.Body)
			if got.StatusCode != test.want || strings.Join(did, "|") != test.did {
				t.Errorf("%s, did %q: %s", got.Status, did, body)
			}
			if at := got.Header.Get("Location"); test.want == 303 && at != strings.TrimPrefix(root, "http://"+s.at)+"/run/"+one {
				t.Errorf("the browser is sent to %q", at)
			}
			if test.forbidden && !strings.Contains(string(body), "hone web --allow-actions") {
				t.Errorf("the refusal does not say what to type: %s", body)
			}
		})
	}
}
