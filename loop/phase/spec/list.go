package spec

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"hone/internal/render"
)

// List returns the specs of the phases up to one as plain text for a terminal: the
// contracts and flows of each phase with their lines, what is superseded and where,
// and at the end the warnings of [Check]. Control characters are escaped.
func List(specs []Phase, phase int) string {
	specs = upTo(specs, phase)
	resolved, _ := resolve(specs)
	var b strings.Builder
	for i, s := range resolved {
		if i > 0 {
			b.WriteByte('\n')
		}
		listPhase(&b, s)
	}
	if warnings := Check(specs); len(warnings) > 0 {
		b.WriteString("\nWarnings\n")
		for _, w := range warnings {
			fmt.Fprintf(&b, "  %s\n", w)
		}
	}
	return b.String()
}

func listPhase(b *strings.Builder, s Phase) {
	title := ""
	if s.Title != "" {
		title = ": " + s.Title
	}
	fmt.Fprintln(b, render.Line(fmt.Sprintf("Phase %d%s (%s)", s.Number, title, s.Path)))
	width := 0
	for _, i := range s.Items {
		for _, c := range i.Steps {
			if n := utf8.RuneCountInString(render.Line(c.Action)); n <= 64 {
				width = max(width, n)
			}
		}
	}
	for _, i := range s.Items {
		if i.flow() {
			fmt.Fprintf(b, "  %4d  %s%s\n", i.Line, render.Line(i.String()), note(i.By))
		}
		for n, c := range i.Steps {
			lead := fmt.Sprintf("  %4d", c.Line)
			if i.flow() {
				lead += fmt.Sprintf("  %d.", n+1)
			}
			action := render.Line(c.Action)
			pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(action)))
			fmt.Fprintf(b, "%s  %s%s → %s%s\n", lead, action, pad, render.Line(c.Expected), note(c.By))
		}
		for _, target := range i.Supersedes {
			fmt.Fprintf(b, "        supersedes %s\n", render.Line(target))
		}
	}
}

// note returns the end of a line that is superseded.
func note(by string) string {
	if by == "" {
		return ""
	}
	return "  [superseded by " + render.Line(by) + "]"
}
