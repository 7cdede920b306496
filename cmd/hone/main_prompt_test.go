package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// sent writes the system text and the user's text of a chat completions request,
// as "hone prompt" prints them.
func sent(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	all := server(ts).Received()
	if n < 1 || n > len(all) {
		ts.Fatalf("%d requests were made", len(all))
	}
	var body struct {
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	ts.Check(json.Unmarshal(all[n-1].Body, &body))
	var b strings.Builder
	for i, m := range body.Messages {
		if i == 1 {
			b.WriteByte('\n')
		}
		b.WriteString(contentText(ts, m.Content))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b.String()), 0o644))
}

// contentText returns the text of a message, which is a string or a list of
// parts.
func contentText(ts *testscript.TestScript, raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	ts.Check(json.Unmarshal(raw, &parts))
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// atMost fails if a file has more bytes than the first argument says.
func atMost(ts *testscript.TestScript, neg bool, args []string) {
	limit, err := strconv.Atoi(args[0])
	ts.Check(err)
	if size := len(ts.ReadFile(args[1])); size > limit == !neg {
		ts.Fatalf("%s has %d bytes; the limit is %d", args[1], size, limit)
	}
}

func begins(ts *testscript.TestScript, neg bool, args []string) {
	if ok := strings.HasPrefix(ts.ReadFile(args[1]), ts.ReadFile(args[0])); ok == neg {
		ts.Fatalf("%s begins with %s: %v", args[1], args[0], ok)
	}
}
