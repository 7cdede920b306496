// Package script implements [model.Model] with replies from a file, for tests,
// demonstrations and replays without a provider. [New] reads a script from a
// file, [Parse] from memory.
//
// A script keeps no state. The request decides which reply is returned: its
// Seq, which counts the run's replies, its Attempt, and the text of its last
// user message. A resumed run therefore receives the right reply.
//
// Replies are used in turn: request n gets reply n. A reply with when is
// different: it answers every request that matches, however often, before the
// reply in turn. Such a request still takes a turn, so the reply in turn is
// then skipped. The results of tools are user messages too. Match words of
// your prompt that no result contains; otherwise the reply answers the
// requests that follow its own calls, again and again.
//
// A script is text, in which marker lines separate replies:
//
//	Text before the first marker is a comment.
//	=== reply ===
//	The text of the first reply, without the line feed before the next
//	marker.
//	=== call read ===
//	{"path": "main.go"}
//	=== error kind=overloaded status=503 after=1s ===
//	A failed attempt at the reply that follows.
//	=== reply finish=length when="(?i)review" input=100 output=5 ===
//	This reply answers requests that match "when".
//
// The markers differ from those of txtar, so that a txtar archive can contain
// a script. In a reply's text, a backslash escapes a line that looks like a
// marker. These are the markers and their attributes:
//
//	reply  begins a reply: finish, detail, delay, when, and usage as input,
//	       output, reasoning, cache_read, cache_write
//	call   a tool call of the preceding reply: the tool's name, and id. The
//	       lines below are the arguments; without lines they are {}
//	error  a failed attempt: kind, status, after, hint, delay, when. The
//	       lines below are the message. With last no reply follows: all
//	       further attempts fail too
package script

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"hone/internal/artifact"
	"hone/model"
)

// Script is a model that returns the given replies. It is safe for concurrent
// use. The zero Script has no replies and always returns an error.
type Script struct {
	// Name identifies the script in errors, for example by its path.
	Name    string
	Replies []Reply
}

// Reply is the response to one call.
type Reply struct {
	// When, if not empty, is a regular expression (package regexp). The reply
	// then answers every request whose last user message matches it, however
	// often, and no other request. See [Script.Generate].
	When string
	// Attempts are errors, followed by at most one reply. The last one is
	// repeated for all further attempts.
	Attempts []Attempt
}

// Attempt is an error if Error is set, otherwise a reply.
type Attempt struct {
	Text   string
	Calls  []model.Call // an empty ID becomes one with the numbers of the reply and the call
	Finish model.Finish // empty means Calls if there are calls, otherwise Stop
	Detail string
	// Usage is the reported usage; nil means one token for every four bytes
	// of the request and the reply.
	Usage *model.Usage
	Error *model.Error
	Delay time.Duration // wait before the response
}

// New reads the script at path.
func New(path string) (model.Model, error) {
	data, err := artifact.Input(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return Parse(path, data)
}

// Generate returns the reply at index req.Seq, unless a reply has a When that
// matches the request. Then it returns that reply. If several match, it returns
// the one at index req.Seq if it is one of them, otherwise the first of them.
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
	select {
	case <-time.After(attempt.Delay):
	case <-ctx.Done():
		return model.Reply{}, ctx.Err()
	}
	if attempt.Error != nil {
		e := *attempt.Error
		return model.Reply{}, &e
	}
	return attempt.reply(req)
}

func (s *Script) choose(req model.Request) (Reply, error) {
	question, conditional, found := lastQuestion(req), false, -1
	for i, r := range s.Replies {
		if r.When == "" {
			continue
		}
		conditional = true
		when, err := regexp.Compile(r.When)
		if err != nil {
			return Reply{}, s.invalid("reply %d: %v", i+1, err)
		}
		if when.MatchString(question) && (found < 0 || i == req.Seq) {
			found = i
		}
	}
	switch {
	case found >= 0:
		return s.Replies[found], nil
	case req.Seq < 0 || req.Seq >= len(s.Replies):
		why := ""
		if conditional {
			why = "; a reply with when answers every request that matches, and each takes a turn"
		}
		return Reply{}, s.invalid("ends after reply %d, but the run requested reply %d%s", len(s.Replies), req.Seq+1, why)
	case s.Replies[req.Seq].When != "":
		return Reply{}, s.invalid("reply %d requires a request that matches %q, but the run sent %q",
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

// It is the text of the last user message, with results of tools.
func lastQuestion(req model.Request) string {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role != model.User {
			continue
		}
		var texts []string
		for _, p := range m.Parts {
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

func (a Attempt) reply(req model.Request) (model.Reply, error) {
	r := model.Reply{Finish: a.Finish, Detail: a.Detail}
	if a.Text != "" {
		r.Parts = append(r.Parts, model.Part{Text: a.Text})
		for line := range strings.Lines(a.Text) {
			if req.Stream != nil {
				req.Stream(line)
			}
		}
	}
	for i, c := range a.Calls {
		c.ID = cmp.Or(c.ID, fmt.Sprintf("call_%d_%d", req.Seq+1, i+1))
		r.Parts = append(r.Parts, model.Part{Call: &c})
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
	sent, err := json.Marshal(req)
	if err != nil {
		return model.Reply{}, fmt.Errorf("measure the request: %w", err)
	}
	written := len(a.Text)
	for _, c := range a.Calls {
		written += len(c.Name) + len(c.Args)
	}
	// One token for every four bytes is a common rule of thumb.
	r.Usage = &model.Usage{Input: int64(len(sent)+3) / 4, Output: int64(written+3) / 4}
	return r, nil
}
