package reader

import (
	"path"
	"strconv"
	"strings"

	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
)

func plainText(out string) string {
	return excerpt.Screen(strings.ToValidUTF8(strings.TrimPrefix(out, "\uFEFF"), "\uFFFD"))
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

func forEachLine(text string, f func(line string)) {
	for line := range strings.Lines(text) {
		f(strings.TrimSuffix(line, "\n"))
	}
}

// section is a line that begins one, as head returned it, and the lines up to the next. The first section has no such line.
type section struct {
	head string
	body []string
}

func sections(text string, head func(line string) (head string, ok bool)) []section {
	all := []section{{}}
	forEachLine(text, func(line string) {
		if h, ok := head(line); ok {
			all = append(all, section{head: h})
			return
		}
		last := &all[len(all)-1]
		last.body = append(last.body, line)
	})
	return all
}

func dedent(lines []string) string {
	indent, first := "", true
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		own := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if first {
			indent, first = own, false
		}
		for !strings.HasPrefix(own, indent) {
			indent = indent[:len(indent)-1]
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(strings.TrimPrefix(l, indent), " \t") + "\n")
	}
	return strings.Trim(b.String(), "\n")
}

// The body is without what the head says.
func headed(head, body string) string {
	body = strings.Trim(body, "\n")
	if first, rest, _ := strings.Cut(body, "\n"); first == head || strings.HasSuffix(head, ": "+first) {
		body = rest
	}
	if body == "" {
		return head
	}
	return head + "\n" + body
}

// Findings have paths with slashes, and without "./".
func cleanFile(file string) string {
	file = strings.TrimPrefix(strings.TrimSpace(file), "file://")
	if len(file) > 2 && file[0] == '/' && file[2] == ':' { // file:///C:/x
		file = file[1:]
	}
	if file == "" {
		return ""
	}
	if !strings.Contains(file, "/") {
		file = strings.ReplaceAll(file, `\`, "/")
	} else if len(file) > 2 && file[1] == ':' {
		file = strings.ReplaceAll(file, `\`, "/")
	}
	return path.Clean(file)
}

// The path may be of any system.
func isAbs(file string) bool {
	return strings.HasPrefix(file, "/") || len(file) > 2 && file[1] == ':' && (file[2] == '/' || file[2] == '\\')
}

// valued are lines with what a test got and wanted, in the words of its runner.
type valued struct {
	got, want *lazyregexp.Regexp
	words     [2]string
}

var (
	labels = []valued{
		{lazyregexp.New(`(?im)^[ \t]*(?:got|actual|received(?: \w+)?|found)[ \t]*[:=][ \t]*(\S.*?),?$`), lazyregexp.New(`(?im)^[ \t]*(?:want|wanted|doNotWant|expected(?: \w+)?|snapshot)[ \t]*[:=][ \t]*(\S.*?),?$`), [2]string{"got ", "want "}},
		{lazyregexp.New(`(?m)^ *left: +(\S.*)$`), lazyregexp.New(`(?m)^ *right: +(\S.*)$`), [2]string{"left ", "right "}},
	}
	signs = valued{lazyregexp.New(`(?m)^[ \t]*\+[ \t\x{a0}]*(\S.*?),?$`), lazyregexp.New(`(?m)^[ \t]*-[ \t\x{a0}]*(\S.*?),?$`), [2]string{"got ", "want "}}
	// difference announces a comparison in which - is what was wanted.
	difference = lazyregexp.New(`(?m)^[ \t]*(?:\+ actual - expected.*|--- [Ee]xpected[ \t]*\n[ \t]*\+\+\+ [Aa]ctual.*|- Expected\b.*\n[ \t]*\+ Received\b.*)$|\(-want \+got\)`)
	// oneLine is a diff of one line, as node-tap prints it.
	oneLine = lazyregexp.New(`(?m)^[ \t]*diff: \|\n(?:.*\n){2}.*@@ -1,1 \+1,1 @@\n.*\n.*(?:\n|$)`)
	// generated is what an assertion says if the test says nothing: the values say more.
	generated = lazyregexp.New("(?:\\w*Error(?: \\[\\w+\\])?: )?(?:Expected values to be \\w+ (?:deep-)?equal:.*|expect\\(received\\)\\.to(?:Be|Equal|StrictEqual)\\((?:expected)?\\)(?: // .*)?|Not equal:|assertion `left == right` failed)$")
	// expectation is a first line that has the values in its own words.
	expectation = lazyregexp.New(`\bexpected .+ to \w+ `)
	// openBracket is a value that goes on in the next line.
	openBracket = lazyregexp.New(`^[\w ]*[\[{(]+$`)
)

// maxValue is the length in bytes of the longest value that is not cut in a first line.
const maxValue = 80

// The first line says what the test got and wanted, as far as the lines below do, and does not end with a colon.
func withValues(text string) string {
	head, body, ok := strings.Cut(text, "\n")
	if !ok {
		return text
	}
	said := values(head, body)
	if generated.MatchString(head) && strings.Contains(said, ", ") {
		head = strings.TrimSuffix(generated.ReplaceAllString(head, ""), ": ")
	}
	if strings.HasSuffix(head, ":") {
		next := strings.TrimSpace(firstLine(strings.TrimLeft(body, " \t\n")))
		if next != "" && (said == "" || !labels[0].got.MatchString(next) && !labels[0].want.MatchString(next) && !difference.MatchString(text)) {
			head += " " + cutValue(next)
		}
		head = strings.TrimSuffix(head, ":")
	}
	if said != "" {
		head = strings.TrimRight(head, ".: ") + ": " + said
		if !strings.Contains(said, "…") {
			body = oneLine.ReplaceAllString(body, "")
			for _, v := range labels { // the head has them now
				if got, want := v.got.FindStringSubmatch(body), v.want.FindStringSubmatch(body); got != nil && want != nil && v.say("", got[1], want[1]) == said {
					body += "\n"
					for _, line := range []string{got[0], want[0], got[1] + " !== " + want[1]} {
						body = strings.Replace(body, line+"\n", "", 1)
					}
				}
			}
		}
	}
	return strings.TrimRight(head+"\n"+body, "\n")
}

// It is empty if the body does not say it, or the head does.
func values(head, body string) string {
	all := head + "\n" + body
	at := difference.FindStringIndex(all)
	for _, v := range labels {
		got, want := v.got.FindStringSubmatch(body), v.want.FindStringSubmatch(body)
		switch {
		case got != nil && want != nil:
			if said := v.say(head, got[1], want[1]); said != "" || at == nil {
				return said
			}
		case got != nil && strings.Contains(head, "expect("): // jest's matcher says what it wants
			return "got " + cutValue(got[1])
		case want != nil && strings.Contains(head, "expect("):
			return "want " + cutValue(want[1])
		}
	}
	if at == nil {
		return ""
	}
	got, want := signs.got.FindStringSubmatch(all[at[1]:]), signs.want.FindStringSubmatch(all[at[1]:])
	switch {
	case got == nil && want == nil:
		return ""
	case got == nil:
		got = []string{"", "nothing"}
	case want == nil:
		want = []string{"", "nothing"}
	}
	return signs.say(head, got[1], want[1])
}

// It is empty if a value goes on in the next line, or the head has both.
func (v valued) say(head, got, want string) string {
	if openBracket.MatchString(got) || openBracket.MatchString(want) || expectation.MatchString(head) || inWords(head, got) && inWords(head, want) {
		return ""
	}
	return v.words[0] + cutValue(got) + ", " + v.words[1] + cutValue(want)
}

var quotes = strings.NewReplacer(`"`, "", `'`, "")

// inWords reports whether a text has a value, which is not only part of a word in it.
func inWords(text, value string) bool {
	value = quotes.Replace(value)
	_, after, ok := strings.Cut(" "+quotes.Replace(text)+" ", value)
	before := strings.TrimSuffix(" "+quotes.Replace(text)+" ", value+after)
	return ok && !(wordEnd.MatchString(before) && wordStart.MatchString(value)) && !(wordEnd.MatchString(value) && wordStart.MatchString(after))
}

var wordStart, wordEnd = lazyregexp.New(`^\w`), lazyregexp.New(`\w$`)

func cutValue(value string) string {
	if value = strings.TrimSpace(value); len(value) > maxValue {
		return strings.ToValidUTF8(value[:maxValue], "") + "…"
	}
	return value
}

// Part is the output of one step in the log of a CI system.
type Part struct {
	Text   string
	Failed bool
}

var (
	// logPrefix is what CI systems put before each line: a time, and GitHub's command line also the names of job and step before it.
	logPrefix = lazyregexp.New(`^(?:[^\t]*\t[^\t]*\t)?\x{FEFF}?\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)\]?(?: \d\d[OE][ +]?)?(?: |$)`)
	logMark   = lazyregexp.New(`^(?:##\[\w+\]|section_(?:start|end):\d+:\S*)`)
)

// Log returns the parts of a CI system's log as their programs printed them: without colors,
// and without what the system puts before each line. Another text is one part, which failed.
func Log(text string) []Part {
	plain := plainText(text)
	parts, said, cut, failures := []Part{{}}, 0, 0, 0
	var b strings.Builder
	end := func() { parts[len(parts)-1].Text = b.String() }
	for line := range strings.Lines(plain) {
		if strings.TrimSpace(line) != "" {
			said++
		}
		if at := logPrefix.FindStringIndex(strings.TrimSuffix(line, "\n")); at != nil {
			cut++
			line = line[at[1]:]
		}
		if at := logMark.FindStringIndex(line); at != nil {
			switch mark := line[:at[1]]; {
			case mark == "##[group]", strings.HasPrefix(mark, "section_start"):
				end()
				b.Reset()
				parts = append(parts, Part{})
			case mark == "##[error]":
				failures++
				parts[len(parts)-1].Failed = true
			}
			line = line[at[1]:]
		}
		b.WriteString(line)
	}
	end()
	if 2*cut <= said {
		return []Part{{plain, true}}
	}
	for i := range parts {
		parts[i].Failed = parts[i].Failed || failures == 0 // the system does not say which
	}
	return parts
}
