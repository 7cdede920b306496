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
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hone/internal/artifact"
	"hone/internal/lazyregexp"
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

var (
	// marker matches a line such as "=== reply ===".
	marker = lazyregexp.New(`^=== (reply|call|error)( .*)? ===[ \t\r]*$`)
	// attribute matches a word of a marker: a name with a value, or a value alone, which may be quoted as a Go string.
	attribute = lazyregexp.New(`^\s*(?:([\w-]+)=)?("(?:[^"\\]|\\.)*"|[^\s"]\S*|)`)
)

// word is a word of a marker line.
type word struct{ name, value string }

func (w word) String() string { return strings.TrimPrefix(w.name+"="+w.value, "=") }

// Parse reads a script. Its errors contain name, which should be the file's path,
// the line, and what to write instead.
func Parse(name string, data []byte) (*Script, error) {
	b := builder{text: new(string)} // before the first marker is a comment
	var lines []string
	flush := func() {
		*b.text = cmp.Or(strings.Join(lines, "\n"), *b.text)
		lines = nil
	}
	number := 0
	problem := func(err error) (*Script, error) {
		return nil, fmt.Errorf("script %s:%d: %w", name, max(1, number), err)
	}
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		m := marker.FindStringSubmatch(line)
		if m == nil {
			if rest := strings.TrimLeft(line, `\`); rest != line && marker.MatchString(rest) {
				line = line[1:]
			}
			lines = append(lines, line)
			continue
		}
		flush()
		words, err := wordsOf(m[2])
		if err == nil && m[1] == "call" {
			err = b.addCall(words)
		} else if err == nil {
			err = b.addAttempt(m[1] == "error", words)
		}
		if err != nil {
			return problem(err)
		}
	}
	flush()
	if number = 1; len(b.replies) == 0 {
		return problem(fmt.Errorf("no replies; begin one with the line %q", "=== reply ==="))
	}
	return &Script{Name: name, Replies: b.replies}, nil
}

func wordsOf(s string) (words []word, err error) {
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		m := attribute.FindStringSubmatch(s)
		if m[0] == "" || m[2] == "" && strings.HasPrefix(s[len(m[0]):], `"`) {
			return nil, errors.New(`a quoted value is not closed; write it as "…", with \" for a quote in it`)
		}
		w := word{m[1], m[2]}
		if strings.HasPrefix(w.value, `"`) {
			if w.value, err = strconv.Unquote(w.value); err != nil {
				return nil, fmt.Errorf("%s is not quoted as in Go: %w", m[2], err)
			}
		}
		words, s = append(words, w), s[len(m[0]):]
	}
	return words, nil
}

type builder struct {
	replies []Reply
	open    bool    // the last reply has only errors; the next section is its next attempt
	text    *string // gets the lines below the last marker
}

func (b *builder) last() *Attempt {
	attempts := b.replies[len(b.replies)-1].Attempts
	return &attempts[len(attempts)-1]
}

func (b *builder) addCall(words []word) error {
	if len(b.replies) == 0 || b.last().Error != nil {
		return fmt.Errorf("a call must follow a reply; write %q before it", "=== reply ===")
	}
	if len(words) == 0 || words[0].name != "" || words[0].value == "" {
		return fmt.Errorf("a call must begin with the tool's name; write %q", "=== call read ===")
	}
	c := model.Call{Name: words[0].value, Args: "{}"}
	for _, w := range words[1:] {
		if w.name != "id" {
			return fmt.Errorf("unknown attribute %q of a call; write id=…", w)
		}
		c.ID = w.value
	}
	a := b.last()
	a.Calls = append(a.Calls, c)
	b.text = &a.Calls[len(a.Calls)-1].Args
	return nil
}

func (b *builder) addAttempt(failed bool, words []word) error {
	first := !b.open
	if first {
		b.replies = append(b.replies, Reply{})
	}
	r := &b.replies[len(b.replies)-1]
	r.Attempts = append(r.Attempts, Attempt{})
	a := b.last()
	if b.open, b.text = failed, &a.Text; failed {
		a.Error = &model.Error{}
		b.text = &a.Error.Message
	}
	for _, w := range words {
		var err error
		switch {
		case failed && w == word{"", "last"}:
			b.open = false
		case w.name == "when" && !first:
			err = errors.New("only the first attempt at a reply can have when")
		case w.name == "when":
			if _, err = regexp.Compile(w.value); err != nil {
				err = fmt.Errorf("when: %w", err)
			}
			r.When = w.value
		default:
			err = a.set(w)
		}
		if err != nil {
			return err
		}
	}
	if failed && a.Error.Kind == "" {
		return fmt.Errorf("an error needs a kind; write kind= and %s", listed(kinds()))
	}
	return nil
}

func (a *Attempt) set(w word) (err error) {
	usage := cmp.Or(a.Usage, &model.Usage{})
	fields := map[string]any{"finish": &a.Finish, "detail": &a.Detail, "delay": &a.Delay, "input": &usage.Input, "output": &usage.Output,
		"reasoning": &usage.Reasoning, "cache_read": &usage.CacheRead, "cache_write": &usage.CacheWrite}
	known := "a reply; write finish, detail, delay, when, input, output, reasoning, cache_read or cache_write, with ="
	if e := a.Error; e != nil {
		fields = map[string]any{"kind": &e.Kind, "status": &e.Status, "after": &e.RetryAfter, "hint": &e.Hint, "delay": &a.Delay}
		known = "an error; write kind, status, after, hint, delay or when with =, or last"
	}
	switch field := fields[w.name].(type) {
	case *string:
		*field = w.value
	case *int:
		*field, err = strconv.Atoi(w.value)
	case *int64:
		a.Usage = usage
		*field, err = strconv.ParseInt(w.value, 10, 64)
	case *time.Duration:
		if *field, err = time.ParseDuration(w.value); *field < 0 {
			err = errors.New("a duration is negative")
		}
	case *model.Finish:
		*field, err = oneOf([]model.Finish{model.Stop, model.Calls, model.Length, model.Filtered, model.Other}, w)
	case *model.Kind:
		*field, err = oneOf(kinds(), w)
	default:
		err = fmt.Errorf("unknown attribute %q of %s", w, known)
	}
	return err
}

func kinds() []model.Kind {
	return []model.Kind{
		model.Auth, model.Invalid, model.TooLong, model.OutputLimit, model.Quota, model.NoModel, model.RateLimited,
		model.Overloaded, model.Unreachable, model.Cut, model.Garbage, model.Silent, model.Blocked, model.Malformed,
	}
}

// Hyphens may replace spaces.
func oneOf[T ~string](all []T, w word) (T, error) {
	if one := T(strings.ReplaceAll(w.value, "-", " ")); slices.Contains(all, one) {
		return one, nil
	}
	return "", fmt.Errorf("unknown %s %q; write %s", w.name, w.value, listed(all))
}

func listed[T ~string](words []T) string {
	var names []string
	for _, w := range words {
		names = append(names, strings.ReplaceAll(string(w), " ", "-"))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
