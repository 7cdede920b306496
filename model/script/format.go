package script

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Format returns the script in its text form, from which [Parse] reads the
// same replies. The usage of errors is lost, because a script cannot hold it.
func Format(s *Script) []byte {
	var b strings.Builder
	for _, r := range s.Replies {
		for i, a := range r.Attempts {
			mark := "reply"
			if a.Error != nil {
				mark = "error"
			}
			var words []string
			if i == 0 {
				words = appendWord(words, "when", r.When)
			}
			words = append(words, a.words()...)
			if a.Error != nil && i == len(r.Attempts)-1 {
				words = append(words, "last")
			}
			a.write(&b, mark, words)
		}
	}
	return []byte(b.String())
}

func (a Attempt) words() []string {
	var words []string
	if e := a.Error; e != nil {
		words = appendWord(words, "kind", strings.ReplaceAll(string(e.Kind), " ", "-"))
		words = appendCount(words, "status", int64(e.Status))
		words = appendTime(words, "after", e.RetryAfter)
		words = appendWord(words, "hint", e.Hint)
		return appendTime(words, "delay", a.Delay)
	}
	words = appendWord(words, "finish", string(a.Finish))
	words = appendWord(words, "detail", a.Detail)
	words = appendTime(words, "delay", a.Delay)
	if u := a.Usage; u != nil {
		// Even a usage of zero needs one count, because none means nil.
		words = append(words, fmt.Sprintf("input=%d", u.Input))
		words = appendCount(words, "output", u.Output)
		words = appendCount(words, "reasoning", u.Reasoning)
		words = appendCount(words, "cache_read", u.CacheRead)
		words = appendCount(words, "cache_write", u.CacheWrite)
	}
	return words
}

func (a Attempt) write(b *strings.Builder, mark string, words []string) {
	body := a.Text
	if a.Error != nil {
		body = a.Error.Message
	}
	writeSection(b, append([]string{mark}, words...), body)
	for _, c := range a.Calls {
		words := appendWord([]string{"call", quote(c.Name)}, "id", c.ID)
		body := c.Args
		switch body {
		case "":
			words = append(words, "no-args")
		case "{}":
			body = ""
		}
		writeSection(b, words, body)
	}
}

// writeSection writes a marker and the lines below it, and escapes lines that
// look like markers.
func writeSection(b *strings.Builder, words []string, body string) {
	fmt.Fprintf(b, "%s%s%s\n", markBegin, strings.Join(words, " "), markEnd)
	if body == "" {
		return
	}
	for line := range strings.SplitSeq(body, "\n") {
		if isMark(strings.TrimLeft(line, `\`)) {
			b.WriteByte('\\')
		}
		b.WriteString(line + "\n")
	}
}

func appendWord(words []string, name, value string) []string {
	if value == "" {
		return words
	}
	return append(words, name+"="+quote(value))
}

func appendCount(words []string, name string, n int64) []string {
	if n == 0 {
		return words
	}
	return append(words, fmt.Sprintf("%s=%d", name, n))
}

func appendTime(words []string, name string, d time.Duration) []string {
	if d == 0 {
		return words
	}
	return append(words, name+"="+d.String())
}

// quote returns a value as it is written in a marker, without quotes if
// possible.
func quote(value string) string {
	unsafe := func(r rune) bool {
		return r == '=' || r == '"' || r == '\\' || r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsPrint(r)
	}
	if value == "" || strings.ContainsFunc(value, unsafe) {
		return strconv.Quote(value)
	}
	return value
}
