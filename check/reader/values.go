package reader

import (
	"strings"

	"hone/internal/lazyregexp"
)

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
