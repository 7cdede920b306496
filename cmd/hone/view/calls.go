// Package view prepares what a page says of a run: all of it ([RunPage]), its row in the list
// ([Row]), and what the user can do ([Question], [Limits]). Beyond what package report says on
// a terminal, a page has model calls ([Calls]), contracts ([Contracts]) and walls ([Walls]).
//
// It only reads. Texts are as they were recorded; package page escapes them.
package view

import (
	"cmp"
	"fmt"
	"strings"

	"hone/cmd/hone/page"
	"hone/cmd/hone/rounds"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/excerpt"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
)

// Calls lists the model calls of a run, also repeatedly while the run continues: it reads each
// request once.
type Calls struct {
	// Most is how many bytes of a request the round shows. Calls leaves out the middle of a
	// longer one.
	Most int
	// Clean removes secrets from a text; nil removes nothing.
	Clean func(string) string
	// Link returns the address of the page of the call that an event begins; nil if calls
	// have no pages.
	Link func(seq int64) string

	texts map[string][]page.Fact // by the request's object
}

// ByRound returns the calls of each round.
func (c *Calls) ByRound(events []history.Event, get history.Get) (map[int][]page.Call, error) {
	calls, at := map[int][]page.Call{}, map[journal.Identity]int{}
	for _, e := range events {
		switch p := e.Payload.(type) {
		case history.Asked:
			one := callOf(e, p)
			var err error
			if one.Texts, err = c.added(p.Request, get); err != nil {
				return nil, err
			}
			if c.Link != nil {
				one.Link = c.Link(e.Seq)
			}
			at[*e.Step] = len(calls[e.Step.Round])
			calls[e.Step.Round] = append(calls[e.Step.Round], one)
		case history.Replied:
			if i, ok := at[*e.Step]; ok {
				call := &calls[e.Step.Round][i]
				call.Replied, call.Used = true, useOf(p.Usage)
			}
		}
	}
	return calls, nil
}

// callOf returns a call without its texts.
func callOf(e history.Event, asked history.Asked) page.Call {
	name := cmp.Or(asked.Role, "model")
	if e.Step.Turn > 0 {
		name += fmt.Sprintf(", turn %d", e.Step.Turn)
	}
	return page.Call{Seq: e.Seq, Name: name, Model: screen.ModelName(asked.Model), Size: render.Bytes(asked.Bytes)}
}

// useOf returns the tokens of a call; nil if the provider did not report them.
func useOf(u *model.Usage) *page.Use {
	if u == nil {
		return nil
	}
	return &page.Use{Sent: u.Input + u.CacheRead + u.CacheWrite, Cached: u.CacheRead, Received: u.Output}
}

// added returns what a request adds to the one before it, shortened.
func (c *Calls) added(object string, get history.Get) ([]page.Fact, error) {
	if texts, ok := c.texts[object]; ok {
		return texts, nil
	}
	request, err := history.ReadRequest(object, get)
	if err != nil {
		return nil, err
	}
	if request.Repeated > 0 {
		request.Messages = append(request.Messages, model.Message{Role: model.User, Parts: request.Parts})
	}
	texts := requestTexts(request.Request, false)
	if request.After != "" {
		texts = append([]page.Fact{{Name: "the previous request, followed by:"}}, texts...)
	}
	room := c.Most
	for i := range texts {
		if c.Clean != nil { // before a cut can split a secret
			texts[i].Text = c.Clean(texts[i].Text)
		}
		texts[i].Text = excerpt.Middle(texts[i].Text, max(room, c.Most/8))
		room -= len(texts[i].Text)
	}
	if c.texts == nil {
		c.texts = map[string][]page.Fact{}
	}
	c.texts[object] = texts
	return texts, nil
}

// requestTexts returns the texts of a request. Unless whole, it only names tools, calls and
// results, because the page shows them elsewhere.
func requestTexts(r model.Request, whole bool) (texts []page.Fact) {
	add := func(name, text string) {
		text = strings.TrimRight(text, "\n")
		switch last := len(texts) - 1; {
		case strings.TrimSpace(text) == "":
		case last >= 0 && texts[last].Name == name && !whole:
			texts[last].Text += "\n" + text
		default:
			texts = append(texts, page.Fact{Name: name, Text: text})
		}
	}
	add("system", r.System)
	var tools []string
	for _, t := range r.Tools {
		if tools = append(tools, t.Name); whole {
			add("tool "+t.Name, strings.TrimSpace(t.Description+"\n\n"+string(t.Schema)))
		}
	}
	if !whole {
		add("tools", strings.Join(tools, ", "))
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			add(string(m.Role), p.Text)
			switch {
			case p.Result != nil && whole:
				add("result of "+p.Result.Name, p.Result.Text)
			case p.Result != nil:
				add(string(m.Role), fmt.Sprintf("(the result of %s, %s)", p.Result.Name, render.Bytes(int64(len(p.Result.Text)))))
			case p.Call != nil && whole:
				add("call of "+p.Call.Name, p.Call.Args)
			case p.Call != nil:
				add(string(m.Role), fmt.Sprintf("(a call of %s, %s)", p.Call.Name, render.Bytes(int64(len(p.Call.Args)))))
			}
		}
	}
	return texts
}

// CallAddress returns the address of the call that an event begins: a place on the page of the
// run, or on the page of the round if the run has too many rounds for one page.
func CallAddress(run string, events []history.Event, seq int64) string {
	address := "/run/" + run
	if last := len(rounds.Of(events, nil, nil)); last >= maxRounds { // and perhaps what came before
		address += fmt.Sprintf("/round/%d", events[seq-1].Step.Round)
	}
	return fmt.Sprintf("%s#c%d", address, seq)
}

// WholeCall returns the call that an event begins, with the full request and reply. ok is
// false if the event begins no call.
func WholeCall(events []history.Event, seq int64, get history.Get) (call page.Call, ok bool, err error) {
	if seq < 1 || seq > int64(len(events)) {
		return call, false, nil
	}
	e := events[seq-1]
	asked, ok := e.Payload.(history.Asked)
	if !ok {
		return call, false, nil
	}
	call = callOf(e, asked)
	call.Round = e.Step.Round
	request, err := history.ReadWholeRequest(asked.Request, get)
	if err != nil {
		return call, true, err
	}
	call.Texts = requestTexts(request, true)
	for record, p := range history.Of[history.Replied](events[seq:]) {
		if *record.Step != *e.Step {
			continue
		}
		reply, err := history.ReadReply(p, get)
		call.Replied, call.Used = true, useOf(p.Usage)
		call.Replies = requestTexts(model.Request{Messages: []model.Message{{Role: "text", Parts: reply.Parts}}}, true)
		return call, true, err
	}
	return call, true, nil
}
