// Package script is a model whose replies are written down: for tests, for
// the demonstration and for playing a run again without a provider.
//
// It remembers nothing. Which reply comes next follows from the request: its
// Seq, which counts the run's replies, its Attempt, and what its last user
// message says. So a run that was stopped goes on with the right reply.
//
// A script is JSON or text. As text, replies stand between marker lines:
//
//	Whatever comes before the first marker is a comment.
//	=== reply ===
//	The text of the first reply, word for word, without the line feed
//	before the next marker.
//	=== call read ===
//	{"path": "main.go"}
//	=== error kind=overloaded status=503 after=1s ===
//	An error is an attempt at the reply that follows it.
//	=== reply finish=length when="(?i)review" input=100 output=5 ===
//	This one answers questions that match.
//
// A comment must not begin with a bracket, which would make the script JSON.
// The markers are none of the txtar format's, so that a script can be a file
// of such an archive. A line of text that would be a marker is written with a
// backslash before it. The marks are:
//
//	reply  begins a reply: finish, detail, delay, when, and usage as input,
//	       output, reasoning, cache_read, cache_write
//	call   a tool call of the reply before it: its name, and id; the lines
//	       below are its arguments, {} where there are none, and nothing at
//	       all with no-args
//	error  a failed attempt: kind, status, after, hint, delay, when; the
//	       lines below are its message; last: no reply follows, every
//	       further attempt fails too
//
// As JSON it is a list of replies, or an object that holds it as "replies":
//
//	{"replies": [
//	  {"text": "…", "calls": [{"name": "read", "args": {"path": "main.go"}}]},
//	  {"attempts": [{"error": {"kind": "overloaded", "status": 503, "after": "1s"}}, {"text": "…"}]},
//	  {"when": "(?i)review", "text": "…", "finish": "length", "usage": {"input": 100, "output": 5}}
//	]}
package script

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"hone/model"
)

// Script is a model that answers from its replies. The zero Script has none
// and answers with an error.
type Script struct {
	// Name is what its errors call it, such as its file's path.
	Name    string
	Replies []Reply
}

// Reply is what one call is answered with.
type Reply struct {
	// When, if not empty, is a regular expression (package regexp): the reply
	// answers every question whose last user message it matches, whatever
	// its number. See [Script.Generate].
	When string
	// Attempts are errors, and then the reply if one is to come. The last one
	// stands for all further attempts.
	Attempts []Attempt
}

// Attempt is a reply, or an error where Error is set.
type Attempt struct {
	Text   string
	Calls  []Call
	Finish model.Finish // empty: Calls where there are calls, else Stop
	Detail string
	// Usage is what the attempt is said to have used; nil: a token for every
	// four bytes of the request and of the reply.
	Usage *model.Usage
	Error *model.Error
	Delay time.Duration // silence before the answer
}

// Call is a tool call. An empty ID is numbered by the reply and the call.
type Call struct{ ID, Name, Args string }

// New reads the script at path.
func New(path string) (model.Model, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return Parse(path, data)
}

// Generate answers with the reply number req.Seq, unless the question is one
// that another reply waits for by its When: that one is preferred, the one at
// the number itself before the first of the others.
func (s *Script) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, err
	}
	reply, err := s.choose(req)
	if err != nil {
		return model.Reply{}, err
	}
	if len(reply.Attempts) == 0 {
		return model.Reply{}, s.invalid("reply %d has no attempts", req.Seq+1)
	}
	attempt := reply.Attempts[min(max(0, req.Attempt), len(reply.Attempts)-1)]
	if err := wait(ctx, attempt.Delay); err != nil {
		return model.Reply{}, err
	}
	if attempt.Error != nil {
		fault := *attempt.Error
		return model.Reply{}, &fault
	}
	return attempt.reply(req)
}

// choose finds the reply for a request.
func (s *Script) choose(req model.Request) (Reply, error) {
	question := lastQuestion(req)
	var waiting []Reply
	for i, r := range s.Replies {
		if r.When == "" {
			continue
		}
		when, err := regexp.Compile(r.When)
		if err != nil {
			return Reply{}, s.invalid("reply %d: %v", i+1, err)
		}
		if when.MatchString(question) {
			if i == req.Seq {
				return r, nil
			}
			waiting = append(waiting, r)
		}
	}
	switch {
	case len(waiting) > 0:
		return waiting[0], nil
	case req.Seq < 0 || req.Seq >= len(s.Replies):
		return Reply{}, s.invalid("has %d replies, the run asked for %d", len(s.Replies), req.Seq+1)
	case s.Replies[req.Seq].When != "":
		return Reply{}, s.invalid("reply %d is for a question that matches %q, the run asked %q",
			req.Seq+1, s.Replies[req.Seq].When, model.OneLine(question))
	}
	return s.Replies[req.Seq], nil
}

func (s *Script) invalid(format string, args ...any) error {
	return &model.Error{
		Kind:    model.Invalid,
		Message: model.OneLine("script " + s.Name + " " + fmt.Sprintf(format, args...)),
	}
}

// lastQuestion is the text of the last user message, results included.
func lastQuestion(req model.Request) string {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if req.Messages[i].Role != model.User {
			continue
		}
		var texts []string
		for _, p := range req.Messages[i].Parts {
			if p.Result != nil {
				texts = append(texts, p.Result.Text)
			} else {
				texts = append(texts, p.Text)
			}
		}
		return strings.Join(texts, "\n")
	}
	return ""
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a Attempt) reply(req model.Request) (model.Reply, error) {
	r := model.Reply{Finish: a.Finish, Detail: a.Detail}
	if a.Text != "" {
		r.Parts = append(r.Parts, model.Part{Text: a.Text})
		stream(a.Text, req.Stream)
	}
	for i, c := range a.Calls {
		call := model.Call(c)
		if call.ID == "" {
			call.ID = fmt.Sprintf("call_%d_%d", req.Seq+1, i+1)
		}
		r.Parts = append(r.Parts, model.Part{Call: &call})
	}
	if r.Finish == "" {
		r.Finish = model.Stop
		if len(a.Calls) > 0 {
			r.Finish = model.Calls
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return model.Reply{}, fmt.Errorf("encode the scripted reply: %w", err)
	}
	r.Raw = raw
	if a.Usage != nil {
		usage := *a.Usage
		r.Usage = &usage
		return r, nil
	}
	r.Usage, err = estimate(req, a)
	return r, err
}

// stream gives the text line by line.
func stream(text string, to func(string)) {
	if to == nil {
		return
	}
	for line := range strings.Lines(text) {
		to(line)
	}
}

// estimate counts a token for every four bytes, as a rule of thumb does.
func estimate(req model.Request, a Attempt) (*model.Usage, error) {
	sent, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("measure the request: %w", err)
	}
	written := len(a.Text)
	for _, c := range a.Calls {
		written += len(c.Name) + len(c.Args)
	}
	return &model.Usage{Input: int64(len(sent)+3) / 4, Output: int64(written+3) / 4}, nil
}
