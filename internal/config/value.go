package config

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// setter takes the value of a leaf into its place, or says what is wrong with
// it.
type setter func(l leaf) error

// judge says what is wrong with a text, and what to write instead; nothing
// where it is right.
type judge func(text string) (problem, hint string)

// text takes a string that a judge does not object to.
func text(into *string, bad judge) setter {
	return func(l leaf) error {
		s, ok := l.value.(string)
		if !ok {
			return l.wrong("it is not a string", "write it in double quotes")
		}
		if problem, hint := bad(s); problem != "" {
			return l.wrong(problem, hint)
		}
		*into = s
		return nil
	}
}

// choice takes one of a few words.
func choice(into *string, words ...string) setter {
	return func(l leaf) error {
		s, ok := l.value.(string)
		if !ok {
			return l.wrong("it is not a string", oneOf(words))
		}
		if !isOne(s, words) {
			return l.wrong(fmt.Sprintf("there is no %q", s), oneOf(words))
		}
		*into = s
		return nil
	}
}

// whole takes a whole number from 1.
func whole[T int | int64](into *T, example string) setter {
	return func(l leaf) error {
		n, ok := l.value.(int64)
		switch {
		case !ok:
			return l.wrong("it is not a whole number", "write a number from 1, such as "+example)
		case n < 1 || int64(T(n)) != n:
			return l.wrong(fmt.Sprintf("%d is not a number from 1", n), "write one, such as "+example)
		}
		*into = T(n)
		return nil
	}
}

// amount takes a finite number of dollars, which may be 0 where free says so.
func amount(into *float64, free bool, example string) setter {
	return func(l leaf) error {
		var usd float64
		switch v := l.value.(type) {
		case float64:
			usd = v
		case int64:
			usd = float64(v)
		default:
			return l.wrong("it is not a number", "write US dollars without a sign, such as "+example)
		}
		if usd < 0 || usd == 0 && !free || math.IsNaN(usd) || math.IsInf(usd, 0) {
			return l.wrong(fmt.Sprintf("%v is no amount of money", usd), "write US dollars, such as "+example)
		}
		*into = usd
		return nil
	}
}

// span takes a time such as "10m".
func span(into *time.Duration) setter {
	return func(l leaf) error {
		const hint = `write a number with its unit, such as "90s", "10m" or "1h30m"`
		s, ok := l.value.(string)
		if !ok {
			return l.wrong("it is not a string", hint)
		}
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return l.wrong(fmt.Sprintf("%q is not a time", s), hint)
		case d <= 0:
			return l.wrong(fmt.Sprintf("%q is not longer than nothing", s), hint)
		}
		*into = d
		return nil
	}
}

// list takes strings that a judge does not object to.
func list(into *[]string, bad judge, example string) setter {
	return func(l leaf) error {
		items, ok := l.value.([]any)
		if !ok {
			return l.wrong("it is not a list", "write a list of strings, such as "+example)
		}
		taken := make([]string, 0, len(items))
		for _, item := range items {
			s, ok := item.(string)
			if !ok {
				return l.wrong("there is something else than a string in the list", "write a list of strings, such as "+example)
			}
			if problem, hint := bad(s); problem != "" {
				return l.wrong(problem, hint)
			}
			taken = append(taken, s)
		}
		*into = taken
		return nil
	}
}

// badModel objects to what is not "provider/name".
func badModel(s string) (problem, hint string) {
	provider, name, ok := strings.Cut(s, "/")
	if !ok || provider == "" || name == "" || strings.ContainsAny(s, " \t\r\n\x00") {
		return fmt.Sprintf("%q names no model", s), `write "provider/name", such as "openai/gpt-5"`
	}
	return "", ""
}

// badURL objects to what is no endpoint, and to one with a password in it,
// which would be shown and journaled.
func badURL(s string) (problem, hint string) {
	u, err := url.Parse(s)
	switch {
	case err != nil, u.User == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == ""):
		return "it is not an http address", `write one, such as "http://localhost:11434/v1"`
	case u.User != nil:
		return "there is a user or a password in the address", "take it out, and set the provider's key variable"
	}
	return "", ""
}

// badCommand objects to a command that does nothing.
func badCommand(s string) (problem, hint string) {
	switch {
	case strings.TrimSpace(s) == "":
		return "it is empty", `write a command, such as "go test ./...", or remove the line`
	case strings.ContainsRune(s, 0):
		return "there is a NUL in it", "remove it"
	}
	return "", ""
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// badVariable objects to what is not the name of an environment variable.
func badVariable(s string) (problem, hint string) {
	if name, _, valued := strings.Cut(s, "="); valued || !variable.MatchString(s) {
		return fmt.Sprintf("%q is not the name of a variable alone", name), `write names without values, such as "DATABASE_URL"`
	}
	return "", ""
}
