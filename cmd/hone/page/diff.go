package page

import (
	"html/template"
	"slices"
	"strconv"
	"strings"

	"hone/internal/lazyregexp"
)

type file struct {
	Name           string
	Added, Removed int
	Lines          []line
}

type line struct {
	Class string // "head", "hunk", "add", "del" or empty
	Text  string // with the sign
}

// Only the lines of a hunk are added or removed ones: those of a header begin with the same signs.
func files(diff string) []file {
	var list []file
	inHunk := false
	for text := range strings.Lines(diff) {
		l := line{Text: strings.TrimSuffix(text, "\n")}
		begins := strings.HasPrefix(text, "diff --git ")
		if begins || len(list) == 0 {
			list, inHunk = append(list, file{Name: nameOf(l.Text)}), false
		}
		f := &list[len(list)-1]
		switch {
		case !inHunk && slices.ContainsFunc([]string{"diff --git ", "index ", "--- ", "+++ "}, func(start string) bool { return strings.HasPrefix(text, start) }):
			continue // it only repeats the file name, or tells a reader nothing
		case strings.HasPrefix(text, "@@"):
			inHunk, l.Class = true, "hunk"
		case begins || !inHunk:
			l.Class = "head"
			if strings.Contains(l.Text, " file mode ") {
				l.Text = strings.TrimSuffix(l.Text, " mode 100644")
			}
		case text[0] == '+':
			l.Class = "add"
			f.Added++
		case text[0] == '-':
			l.Class = "del"
			f.Removed++
		}
		f.Lines = append(f.Lines, l)
	}
	return list
}

// The line contains the name twice, each time after "a/" or "b/". Git quotes names with unusual characters.
func nameOf(line string) string {
	twice, ok := strings.CutPrefix(line, "diff --git ")
	if !ok {
		return line
	}
	name := twice[:len(twice)/2]
	if plain, err := strconv.Unquote(name); err == nil {
		name = plain
	}
	return name[min(len("a/"), len(name)):]
}

// Code reports whether the text is a line of the file.
func (l line) Code() bool { return l.Class == "" || l.Class == "add" || l.Class == "del" }

// Sides returns the file's hunks with the old lines beside the new ones.
func (f file) Sides() (rows [][2]line) {
	var olds, news []line
	flush := func() {
		for i := range max(len(olds), len(news)) {
			row := [2]line{{Class: "none"}, {Class: "none"}}
			if i < len(olds) {
				row[0] = olds[i]
			}
			if i < len(news) {
				row[1] = news[i]
			}
			rows = append(rows, row)
		}
		olds, news = nil, nil
	}
	for _, l := range f.Lines {
		switch l.Class {
		case "head":
		case "del":
			olds = append(olds, l)
		case "add":
			news = append(news, l)
		default:
			flush()
			rows = append(rows, [2]line{l, l})
		}
	}
	flush()
	return rows
}

// token finds what has a colour in a line of any usual language: comments, strings,
// numbers and keywords. It does not know that a comment or string continues from the line
// before.
var token = lazyregexp.New("(//.*|(?:^|\\s)#.*|/\\*.*?(?:\\*/|$)|--\\s.*)" +
	"|(\"(?:[^\"\\\\]|\\\\.)*\"?|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`?)" +
	`|(\b[0-9][0-9a-fA-FxX_.]*\b)` +
	`|(\b[A-Za-z_]+\b)`)

func highlighted(l line) template.HTML {
	if !l.Code() || l.Text == "" {
		return template.HTML(template.HTMLEscapeString(l.Text))
	}
	var b strings.Builder
	b.WriteString(template.HTMLEscapeString(l.Text[:1]))
	text, at := l.Text[1:], 0
	for _, m := range token.FindAllStringSubmatchIndex(text, -1) {
		kind := ""
		for i, name := range []string{"rem", "str", "num"} {
			if m[2*i+2] >= 0 {
				kind = name
			}
		}
		if kind == "" && slices.Contains(keywords, text[m[0]:m[1]]) {
			kind = "key"
		}
		if kind == "" {
			continue
		}
		b.WriteString(template.HTMLEscapeString(text[at:m[0]]))
		b.WriteString(`<i class="` + kind + `">` + template.HTMLEscapeString(text[m[0]:m[1]]) + "</i>")
		at = m[1]
	}
	b.WriteString(template.HTMLEscapeString(text[at:]))
	return template.HTML(b.String())
}

var keywords = strings.Fields(`abstract as async await bool break case catch chan class const continue def default defer del do elif else enum except export
	extends false False final finally fn for from func function go goto if impl import in int interface is lambda let map match mod mut new nil None not null
	or and package pass private protected pub public raise range return select self static string struct super switch this throw trait true True try type
	typeof undefined use var void when where while with yield`)
