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
	"unicode"

	"hone/model"
)

// section is a marker line and the lines below it.
type section struct {
	line  int // of the marker, from 1
	words []word
	body  string
}

// word is a word of a marker line: a name with a value, or a value alone.
type word struct{ name, value string }

func (w word) String() string {
	if w.name == "" {
		return w.value
	}
	return w.name + "=" + w.value
}

const (
	markBegin = "=== "
	markEnd   = " ==="
)

// A marker is such as "=== reply ===".
func isMark(line string) bool {
	inner, ok := strings.CutPrefix(strings.TrimRight(line, " \t\r"), markBegin)
	if !ok {
		return false
	}
	inner, ok = strings.CutSuffix(inner, markEnd)
	fields := strings.Fields(inner)
	return ok && len(fields) > 0 && (fields[0] == "reply" || fields[0] == "call" || fields[0] == "error")
}

// Parse reads a script. Its errors contain name, which should be the file's path,
// the line, and what to write instead.
func Parse(name string, data []byte) (*Script, error) {
	sections, err := splitSections(name, string(data))
	if err != nil {
		return nil, err
	}
	var b builder
	for _, s := range sections {
		if err := b.add(s); err != nil {
			return nil, problem(name, s.line, err)
		}
	}
	if len(b.replies) == 0 {
		return nil, problem(name, 1, fmt.Errorf("no replies; begin one with the line %q", "=== reply ==="))
	}
	return &Script{Name: name, Replies: b.replies}, nil
}

func problem(name string, line int, err error) error {
	return fmt.Errorf("script %s:%d: %w", name, line, err)
}

func splitSections(name, text string) ([]section, error) {
	var sections []section
	var body []string
	flush := func() {
		if len(sections) > 0 {
			sections[len(sections)-1].body = strings.Join(body, "\n")
		}
		body = nil
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if !isMark(line) {
			if rest := strings.TrimLeft(line, `\`); rest != line && isMark(rest) {
				line = line[1:]
			}
			body = append(body, line)
			continue
		}
		flush()
		inner := strings.TrimRight(line, " \t\r")
		words, err := splitWords(inner[len(markBegin) : len(inner)-len(markEnd)])
		if err != nil {
			return nil, problem(name, number, err)
		}
		sections = append(sections, section{line: number, words: words})
	}
	flush()
	return sections, nil
}

// A value may be quoted as a Go string.
func splitWords(s string) ([]word, error) {
	var words []word
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		var w word
		if i := strings.IndexFunc(s, func(r rune) bool { return r == '=' || r == '"' || unicode.IsSpace(r) }); i > 0 && s[i] == '=' {
			w.name, s = s[:i], s[i+1:]
		}
		if strings.HasPrefix(s, `"`) {
			quoted, err := strconv.QuotedPrefix(s)
			if err != nil {
				return nil, errors.New(`a quoted value is not closed; write it as "…", with \" for a quote in it`)
			}
			// Unquote cannot fail for a result of QuotedPrefix.
			w.value, _ = strconv.Unquote(quoted)
			s = s[len(quoted):]
		} else {
			end := strings.IndexFunc(s, unicode.IsSpace)
			if end < 0 {
				end = len(s)
			}
			w.value, s = s[:end], s[end:]
		}
		words = append(words, w)
	}
	return words, nil
}

type builder struct {
	replies []Reply
	open    bool // the last reply has only errors; the next section is its next attempt
}

func (b *builder) add(s section) error {
	kind, words := s.words[0].value, s.words[1:]
	if kind == "call" {
		return b.addCall(words, s.body)
	}
	begins := !b.open
	if begins {
		b.replies = append(b.replies, Reply{})
	}
	r := &b.replies[len(b.replies)-1]
	a := Attempt{Text: s.body}
	if kind == "error" {
		a = Attempt{Error: &model.Error{Message: s.body}}
	}
	b.open = a.Error != nil
	for _, w := range words {
		if a.Error != nil && w == (word{"", "last"}) {
			b.open = false
			continue
		}
		if err := r.set(&a, w, begins); err != nil {
			return err
		}
	}
	if a.Error != nil && a.Error.Kind == "" {
		return fmt.Errorf("an error needs a kind; write kind= and %s", listed(kinds()))
	}
	r.Attempts = append(r.Attempts, a)
	return nil
}

// first means the reply's first attempt.
func (r *Reply) set(a *Attempt, w word, first bool) error {
	switch {
	case w.name == "when" && first:
		r.When = w.value
		if _, err := regexp.Compile(r.When); err != nil {
			return fmt.Errorf("when: %w", err)
		}
		return nil
	case w.name == "when":
		return errors.New("only the first attempt at a reply can have when")
	}
	return a.set(w)
}

func (b *builder) addCall(words []word, body string) error {
	if len(b.replies) == 0 || b.open || b.last().Error != nil {
		return fmt.Errorf("a call must follow a reply; write %q before it", "=== reply ===")
	}
	if len(words) == 0 || words[0].name != "" || words[0].value == "" {
		return fmt.Errorf("a call must begin with the tool's name; write %q", "=== call read ===")
	}
	c := model.Call{Name: words[0].value, Args: body}
	if body == "" {
		c.Args = "{}"
	}
	for _, w := range words[1:] {
		switch {
		case w.name == "id":
			c.ID = w.value
		case w == word{"", "no-args"}:
			c.Args = ""
		default:
			return fmt.Errorf("unknown attribute %q of a call; write id=… or no-args", w)
		}
	}
	a := b.last()
	a.Calls = append(a.Calls, c)
	return nil
}

func (b *builder) last() *Attempt {
	attempts := b.replies[len(b.replies)-1].Attempts
	return &attempts[len(attempts)-1]
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
		*field, err = oneOf(finishes(), w)
	case *model.Kind:
		*field, err = oneOf(kinds(), w)
	default:
		err = fmt.Errorf("unknown attribute %q of %s", w, known)
	}
	return err
}

func finishes() []model.Finish {
	return []model.Finish{model.Stop, model.Calls, model.Length, model.Filtered, model.Other}
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
