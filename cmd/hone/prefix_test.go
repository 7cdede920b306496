package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"hone/cmd/hone/report"
	"hone/history"
	"hone/journal"
	"hone/model"
)

// Providers charge little for input that begins like an earlier request. prefixes counts,
// in bytes, how much of the requests of a run does.
type prefixes struct {
	later    int // size of all requests of a conversation but its first
	earlier  int // size of the requests before these
	repeated int // how much of those they begin with
}

// repeatedPercent returns how many percent of the earlier requests are repeated.
func (p prefixes) repeatedPercent() int { return 100 * p.repeated / max(1, p.earlier) }

func (p prefixes) String() string {
	return fmt.Sprintf("%d%% of what earlier requests contain is repeated, which is %d%% of later input", p.repeatedPercent(), 100*p.repeated/max(1, p.later))
}

// prefixesOf reads the newest run of a directory. A conversation is a session, or the
// requests of a role in all rounds if each has one message.
func prefixesOf(dir string) (p prefixes, err error) {
	home, err := journal.FindHome(dir)
	if err != nil {
		return p, err
	}
	defer home.Close()
	run, err := home.FindRun("last")
	if err != nil {
		return p, err
	}
	r, err := report.Read(home, run)
	if err != nil {
		return p, err
	}
	before := map[string]string{}
	for _, e := range r.Past.Events() {
		asked, ok := e.Payload.(history.Asked)
		if !ok {
			continue
		}
		request, err := history.ReadWholeRequest(asked.Request, home.Get)
		if err != nil {
			return p, err
		}
		conversation := asked.Role
		if len(request.Tools) > 0 {
			conversation = fmt.Sprint(asked.Role, e.Step.Round, e.Step.Session)
		}
		now := canonical(request)
		if was := before[conversation]; was != "" {
			p.later, p.earlier, p.repeated = p.later+len(now), p.earlier+len(was), p.repeated+commonPrefix(was, now)
		}
		before[conversation] = now
	}
	return p, nil
}

// canonical returns a request in the order in which providers read it.
func canonical(r model.Request) string {
	var b strings.Builder
	for _, part := range []any{r.Tools, r.System} {
		text, _ := json.Marshal(part)
		b.Write(text)
	}
	for _, m := range r.Messages {
		b.WriteString(string(m.Role))
		for _, part := range m.Parts {
			text, _ := json.Marshal(part)
			b.Write(text)
		}
	}
	return b.String()
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// prefix checks that the newest run repeated at least so many percent of what it could.
func prefix(ts *testscript.TestScript, _ bool, args []string) {
	least, err := strconv.Atoi(args[0])
	ts.Check(err)
	p, err := prefixesOf(ts.MkAbs("."))
	ts.Check(err)
	if ts.Logf("%s", p); p.repeatedPercent() < least || p.later == 0 {
		ts.Fatalf("%s; want %d%%", p, least)
	}
}
