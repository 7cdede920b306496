package report

import (
	"fmt"
	"strings"
	"unicode"

	"hone/internal/render"
)

// Markdown returns what the run did as Markdown, for a summary of CI or a pull request. Texts of
// models and commands are code, in which nothing is markup, a link or a mention.
func (a Account) Markdown() string {
	var b strings.Builder
	b.WriteString("| | round | files | verdict | time | tokens | cost |\n|---|---|---|---|--:|--:|--:|\n")
	for _, r := range a.Rounds() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", r.Outcome, r.Name(), code(r.FilesText(60)), code(r.Verdict), render.Duration(r.Took), r.Numbers().TokensText(), r.Numbers().CostText())
	}
	figures := a.figures(render.Short)
	if a.Numbers.Findings != nil {
		figures = append([]string{render.Count(*a.Numbers.Findings, "finding") + " left"}, figures...)
	}
	fmt.Fprintf(&b, "\n%s\n\n", strings.Join(figures, " · "))
	why, more := a.why()
	lines := []string{why}
	if more != "" {
		lines = append(lines, strings.Split(strings.TrimRight(more, "\n"), "\n")...)
	}
	if lines = append(lines, a.left(0)...); a.End.Said != "" {
		lines = append(lines, a.Said())
	}
	for _, line := range append(lines, a.Notes()...) {
		fmt.Fprintf(&b, "- %s\n", code(line))
	}
	return b.String()
}

// longestCode is where a text in a cell is cut, in columns.
const longestCode = 200

func code(text string) string {
	if text = render.Cut(render.Line(text), longestCode); text == "" {
		return ""
	}
	var b strings.Builder
	for _, c := range text {
		if c < unicode.MaxASCII && (unicode.IsPunct(c) || unicode.IsSymbol(c)) {
			fmt.Fprintf(&b, "&#%d;", c)
		} else {
			b.WriteRune(c)
		}
	}
	return "<code>" + b.String() + "</code>"
}
