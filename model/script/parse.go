package script

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"hone/model"
)

// Parse reads a script in either form. Its errors contain name, which should
// be the file's path, the line, and what to write instead.
func Parse(name string, data []byte) (*Script, error) {
	s := &Script{Name: name}
	var err error
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		s.Replies, err = parseJSON(name, data)
	} else {
		s.Replies, err = parseText(name, string(data))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func problem(name string, line int, format string, args ...any) error {
	return fmt.Errorf("script %s:%d: %s", name, line, fmt.Sprintf(format, args...))
}

func (r Reply) check() error {
	if _, err := regexp.Compile(r.When); err != nil {
		return fmt.Errorf("when: %w", err)
	}
	if len(r.Attempts) == 0 {
		return errors.New("attempts is empty; write an error or a reply")
	}
	for i, a := range r.Attempts {
		if a.Error == nil && i < len(r.Attempts)-1 {
			return fmt.Errorf("attempt %d is a reply, so later attempts are never used; put errors first", i+1)
		}
		if err := a.check(); err != nil {
			return err
		}
	}
	return nil
}

func (a Attempt) check() error {
	if a.Delay < 0 || a.Error != nil && a.Error.RetryAfter < 0 {
		return errors.New("a duration is negative")
	}
	if a.Error != nil {
		if a.Text != "" || a.Calls != nil || a.Finish != "" || a.Detail != "" || a.Usage != nil {
			return errors.New("an attempt cannot be both an error and a reply")
		}
		return nil
	}
	for _, c := range a.Calls {
		if c.Name == "" {
			return errors.New("a call has no name")
		}
	}
	return nil
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

func parseFinish(s string) (model.Finish, error) {
	if f := model.Finish(s); slices.Contains(finishes(), f) {
		return f, nil
	}
	return "", fmt.Errorf("unknown finish %q; write %s", s, oneOf(finishes()))
}

// Hyphens may replace the spaces of a kind.
func parseKind(s string) (model.Kind, error) {
	if k := model.Kind(strings.ReplaceAll(s, "-", " ")); slices.Contains(kinds(), k) {
		return k, nil
	}
	return "", fmt.Errorf("unknown kind %q; write %s", s, oneOf(kinds()))
}

func oneOf[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == len(words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strings.ReplaceAll(string(w), " ", "-"))
	}
	return b.String()
}
