package config

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
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

// count takes a whole number, which may be 0.
func count(into *int, example string) setter {
	return func(l leaf) error {
		n, ok := l.value.(int64)
		switch {
		case !ok:
			return l.wrong("it is not a whole number", "write a number from 0, such as "+example)
		case n < 0 || int64(int(n)) != n:
			return l.wrong(fmt.Sprintf("%d is not a number from 0", n), "write one, such as "+example)
		}
		*into = int(n)
		return nil
	}
}

// truth takes true or false.
func truth(into *bool) setter {
	return func(l leaf) error {
		b, ok := l.value.(bool)
		if !ok {
			return l.wrong("it is neither true nor false", "write true or false, without quotes")
		}
		*into = b
		return nil
	}
}

// size takes a number of bytes, or a text that [ParseSize] reads.
func size(into *int64) setter {
	return func(l leaf) error {
		const hint = `write bytes, or a number with its unit, such as "4GB"`
		n, ok := l.value.(int64)
		if s, isText := l.value.(string); isText {
			var err error
			if n, err = ParseSize(s); err != nil {
				return l.wrong(err.Error(), hint)
			}
		} else if !ok {
			return l.wrong("it is no size", hint)
		}
		if n < 1 {
			return l.wrong(fmt.Sprintf("%d is no size", n), hint)
		}
		*into = n
		return nil
	}
}

// sizeOrNone takes what size takes, and 0, which stands for no limit.
func sizeOrNone(into *int64) setter {
	sized := size(into)
	return func(l leaf) error {
		if n, ok := l.value.(int64); ok && n == 0 {
			*into = 0
			return nil
		}
		return sized(l)
	}
}

var sizeText = regexp.MustCompile(`^([0-9]+)\s*([kmgt]?)(i?b)?$`)

// ParseSize reads a number of bytes as people write it: "4GB", "512 MiB",
// "64k" or "1048576". The units are powers of 1024, whatever the spelling, as
// memory is counted; one that is not more than nothing, or past what a number
// of 64 bits holds, is an error.
func ParseSize(s string) (int64, error) {
	m := sizeText.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s)))
	if m == nil {
		return 0, fmt.Errorf("%q is no size", s)
	}
	unit := int64(1) << (10 * (1 + strings.Index("kmgt", cmp.Or(m[2], "-"))))
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size", s)
	}
	return n * unit, nil
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

// badLine objects to what is not one line of text that can be read.
func badLine(s string) (problem, hint string) {
	switch {
	case strings.TrimSpace(s) == "":
		return "it is empty", "write it in one line, or remove it"
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "there is something in it that cannot be printed", "write it in one line of plain text"
	}
	return "", ""
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

// badPath objects to what names no file, and to another person's home.
func badPath(s string) (problem, hint string) {
	switch {
	case strings.TrimSpace(s) == "":
		return "there is an empty path in the list", "remove it"
	case strings.ContainsRune(s, 0):
		return "there is a NUL in a path", "remove it"
	case s[0] == '~' && len(s) > 1 && s[1] != '/':
		return fmt.Sprintf("%q: only ~ and ~/ mean a home", s), "write the path whole, or ./ before it"
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
