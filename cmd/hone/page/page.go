// Package page writes a run as one HTML page, which needs nothing else: no script, no
// network, no other file. Its policy forbids all of them, so that nothing in the page
// that came from a model or a command can do anything.
package page

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"hone/internal/render"
)

// Page is what the page of a run says. Every text may come from a model: [Write]
// escapes it.
type Page struct {
	Title        string
	Version      string // of the program
	Mark, Result string
	Loop, About  string
	Why          string
	Notes        []string
	Facts        []Fact
	Rounds       []Round
}

// Fact is something about a run, with its name.
type Fact struct{ Name, Text string }

// Round is one round, or what came before the first.
type Round struct {
	Name, Mark, Verdict, Files string
	Took, Tokens, Cost         string
	Findings                   []Fact // where each is, and its text
	Diff                       string // unified
	NoDiff                     []string
	Events                     []Event
}

// Event is something that happened. Its first line is shown, the rest can be opened.
type Event struct {
	Line  string
	Rest  string
	Parts []Fact // such as the arguments of a call, and its result
}

//go:embed page.html
var source string

// maxText is where a long text is cut, in bytes.
const maxText = 256 << 10

// Write writes the page. clean removes secrets from a text; nil removes nothing.
func (p Page) Write(w io.Writer, clean func(string) string) error {
	text := func(s string) string {
		if clean != nil {
			s = clean(s)
		}
		if more := len(s) - maxText; more > 0 {
			s = s[:maxText] + "\n[" + render.Bytes(int64(more)) + " more]"
		}
		return render.Escape(strings.ReplaceAll(s, "\r\n", "\n"))
	}
	t, err := template.New("page").Funcs(template.FuncMap{
		"text":  text,
		"class": class,
		"diff":  func(s string) []line { return lines(text(s)) },
		"mild":  func(e Event) bool { return e.Rest == "" && len(e.Parts) == 0 },
	}).Parse(source)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// class returns the class of a mark, which gives it its colour.
func class(mark string) string {
	switch mark {
	case "✓":
		return "good"
	case "✗":
		return "bad"
	case "!":
		return "warn"
	}
	return "dim"
}

// line is a line of a diff, or the contents of a part of it.
type line struct{ Class, Text string }

// lines returns the lines of a diff. Only the lines of a hunk are added or removed ones:
// those of a header begin with the same signs.
func lines(diff string) []line {
	var list []line
	inHunk := false
	for text := range strings.Lines(diff) {
		l := line{Text: strings.TrimSuffix(text, "\n")}
		switch {
		case strings.HasPrefix(text, "diff --git "):
			inHunk, l.Class = false, "file"
		case strings.HasPrefix(text, "@@"):
			inHunk, l.Class = true, "hunk"
		case !inHunk:
			l.Class = "head"
		case text[0] == '+':
			l.Class = "add"
		case text[0] == '-':
			l.Class = "del"
		}
		list = append(list, l)
	}
	return list
}
