package spec

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"hone/internal/render"
)

// List returns the specs of the phases up to upTo as plain text for a terminal: the
// contracts and flows of each phase with their lines, what is superseded and
// where, and at the end the warnings of [Check]. Control characters are escaped.
// The text ends with a line feed and is never empty.
func List(specs []Phase, upTo int) string {
	specs = upToPhase(specs, upTo)
	if len(specs) == 0 {
		return fmt.Sprintf("there is no spec for any phase up to %d\n", upTo)
	}
	l := lister{history: readHistory(specs)}
	for i, s := range specs {
		if i > 0 {
			l.out.WriteByte('\n')
		}
		l.spec(s)
	}
	if warnings := Check(specs); len(warnings) > 0 {
		l.out.WriteString("\nWarnings\n")
		for _, w := range warnings {
			fmt.Fprintf(&l.out, "  %s\n", w)
		}
	}
	return l.out.String()
}

type lister struct {
	history *statements
	out     strings.Builder
}

func (l *lister) spec(s Phase) {
	title := ""
	if s.Title != "" {
		title = ": " + s.Title
	}
	fmt.Fprintf(&l.out, "%s\n", render.Line(fmt.Sprintf("Phase %d%s (%s)", s.Number, title, s.Path)))
	claims := l.of(s.Path)
	width := actionWidth(claims)
	lone, flows := split(claims)
	l.section("Contracts", len(lone))
	for _, c := range lone {
		l.contract(fmt.Sprintf("%6d", c.contract.Line), c, width)
	}
	for _, f := range flows {
		l.flow(f, width)
	}
}

// section writes the heading of a list that is not empty.
func (l *lister) section(name string, count int) {
	if count > 0 {
		fmt.Fprintf(&l.out, "  %s\n", name)
	}
}

// flow writes a flow's name and its steps in their order.
func (l *lister) flow(f []*claim, width int) {
	head := f[0]
	fmt.Fprintf(&l.out, "  Flow %s (line %d)%s\n", render.Line(head.contract.Action), head.contract.Line, supersededNote(head))
	l.replaced(head)
	for i, c := range f[1:] {
		l.contract(fmt.Sprintf("%6d  %d.", c.contract.Line, i+1), c, width)
	}
}

func (l *lister) contract(lead string, c *claim, width int) {
	action := render.Line(c.contract.Action)
	pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(action)))
	fmt.Fprintf(&l.out, "%s  %s%s → %s%s\n", lead, action, pad, render.Line(c.contract.Expected), supersededNote(c))
	l.replaced(c)
}

func (l *lister) replaced(c *claim) {
	for _, target := range c.contract.Supersedes {
		fmt.Fprintf(&l.out, "          supersedes %s\n", render.Line(target))
	}
}

// supersededNote returns the note at the end of a superseded claim's line.
func supersededNote(c *claim) string {
	if c.by == nil {
		return ""
	}
	return render.Line(fmt.Sprintf("  [superseded by phase %d, %s]", c.by.contract.Phase, c.by.at()))
}

// of returns the claims of one spec.
func (l *lister) of(path string) []*claim {
	var own []*claim
	for _, c := range l.history.claims {
		if c.path == path {
			own = append(own, c)
		}
	}
	return own
}

// split separates a spec's claims into contracts and flows. A flow is its own claim
// followed by its steps.
func split(claims []*claim) (lone []*claim, flows [][]*claim) {
	at := map[*claim]int{}
	for _, c := range claims {
		if c.kind == flowClaim {
			at[c] = len(flows)
			flows = append(flows, []*claim{c})
		}
	}
	for _, c := range claims {
		switch c.kind {
		case loneClaim:
			lone = append(lone, c)
		case stepClaim:
			flows[at[c.flow]] = append(flows[at[c.flow]], c)
		}
	}
	return lone, flows
}

// actionWidth returns the column, in characters, of a spec's arrows. Very long
// actions do not count.
func actionWidth(claims []*claim) int {
	const most = 64
	width := 0
	for _, c := range claims {
		n := utf8.RuneCountInString(render.Line(c.contract.Action))
		if c.kind != flowClaim && n <= most {
			width = max(width, n)
		}
	}
	return width
}
