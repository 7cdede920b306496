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
		{lazyregexp.New(`(?im)^[ \t]*(?:got|actual|received|found)[ \t]*[:=][ \t]*(\S.*?),?$`), lazyregexp.New(`(?im)^[ \t]*(?:want|wanted|expected|snapshot)[ \t]*[:=][ \t]*(\S.*?),?$`), [2]string{"got ", "want "}},
		{lazyregexp.New(`(?m)^ *left: +(\S.*)$`), lazyregexp.New(`(?m)^ *right: +(\S.*)$`), [2]string{"left ", "right "}},
	}
	signs = valued{lazyregexp.New(`(?m)^[ \t]*\+[ \t\x{a0}]*(\S.*?),?$`), lazyregexp.New(`(?m)^[ \t]*-[ \t\x{a0}]*(\S.*?),?$`), [2]string{"got ", "want "}}
	// difference announces a comparison in which - is what was wanted.
	difference = lazyregexp.New(`(?m)^[ \t]*(?:\+ actual - expected.*|--- [Ee]xpected[ \t]*\n[ \t]*\+\+\+ [Aa]ctual.*|- Expected\b.*\n[ \t]*\+ Received\b.*)$|\(-want \+got\)`)
	// oneLine is a diff of one line, as node-tap prints it.
	oneLine = lazyregexp.New(`(?m)^[ \t]*diff: \|\n(?:.*\n){2}.*@@ -1,1 \+1,1 @@\n.*\n.*(?:\n|$)`)
	// generated is what an assertion says if the test says nothing: the values say more.
	generated = lazyregexp.New("(?:\\w*Error(?: \\[\\w+\\])?: )?(?:Expected values to be \\w+ (?:deep-)?equal:.*|expect\\(received\\)\\.(?:not\\.)?to\\w+\\((?:expected)?\\)(?: // .*)?|assertion `left == right` failed)$")
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
	if generated.MatchString(head) && said != "" {
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
		}
	}
	return strings.TrimRight(head+"\n"+body, "\n")
}

// It is empty if the body does not say it, or the head does.
func values(head, body string) string {
	all := head + "\n" + body
	for _, v := range labels {
		if said := v.in(body, head); said != "" {
			return said
		}
	}
	if at := difference.FindStringIndex(all); at != nil {
		return signs.in(all[at[1]:], head)
	}
	return ""
}

// It is empty if one is missing, or the head has both.
func (v valued) in(text, head string) string {
	got, want := v.got.FindStringSubmatch(text), v.want.FindStringSubmatch(text)
	if got == nil || want == nil || openBracket.MatchString(got[1]) || openBracket.MatchString(want[1]) || expectation.MatchString(head) {
		return ""
	}
	quotes := strings.NewReplacer(`"`, "", `'`, "")
	if bare := quotes.Replace(head); strings.Contains(bare, quotes.Replace(got[1])) && strings.Contains(bare, quotes.Replace(want[1])) {
		return ""
	}
	return v.words[0] + cutValue(got[1]) + ", " + v.words[1] + cutValue(want[1])
}

func cutValue(value string) string {
	if value = strings.TrimSpace(value); len(value) > maxValue {
		return strings.ToValidUTF8(value[:maxValue], "") + "…"
	}
	return value
}
