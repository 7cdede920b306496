package script

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hone/internal/lazyregexp"
	"hone/model"
)

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
