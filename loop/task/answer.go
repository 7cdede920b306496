package task

import (
	"regexp"
	"strings"
)

// status is what an execution agent says of the task. Nothing is taken for
// done on its word alone: it decides only whether the check is asked.
type status string

const (
	unknown    status = ""
	complete   status = "COMPLETE"
	incomplete status = "INCOMPLETE"
)

const tag = "<final_answer>"

// answer is what hone reads in an agent's last text.
type answer struct {
	Status status
	Next   []string // what is said to be left, in order
}

// parseAnswer reads the last text of an execution session (ruling S2). Where
// there are several final answers the last one counts, as models think aloud.
func parseAnswer(text string) answer {
	if i := strings.LastIndex(text, tag); i >= 0 {
		if a := parseLines(text[i+len(tag):]); a.Status != unknown {
			return a
		}
	}
	return parseLines(text)
}

func parseLines(text string) answer {
	var a answer
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for _, line := range lines {
		if a.Status = statusOf(line); a.Status != unknown {
			break
		}
	}
	a.Next = nextSteps(lines)
	return a
}

var (
	// ornament is what may stand before a label: tags, quote marks, headings,
	// list marks and emphasis.
	ornament = regexp.MustCompile("^(?:\\s|</?final_answer>|[>#*_`•–+-]|[0-9]+[.)]\\s)*")
	// statusLabel is followed by what the status is said to be.
	statusLabel = regexp.MustCompile("(?i)^STATUS[*_`\\s]*[:：][*_`\\s]*(INCOMPLETED?|COMPLETED?)(?:[^\\pL\\pN]|$)")
	anyStatus   = regexp.MustCompile("(?i)\\bSTATUS[*_`\\s]*[:：]")
	nextLabel   = regexp.MustCompile("(?i)^NEXT STEPS[*_`\\s]*(?:[:：]|$|[(–—-])")
)

// statusOf is the status that a line states. One that names two, such as the
// instruction itself, states none.
func statusOf(line string) status {
	line = ornament.ReplaceAllString(line, "")
	found := statusLabel.FindStringSubmatch(line)
	switch {
	case found == nil || len(anyStatus.FindAllString(line, 2)) > 1:
		return unknown
	case strings.HasPrefix(strings.ToUpper(found[1]), "IN"):
		return incomplete
	}
	return complete
}

// nextSteps are the items below the first line that is labelled NEXT STEPS, to
// where something else begins.
func nextSteps(lines []string) []string {
	for i, line := range lines {
		label := ornament.ReplaceAllString(line, "")
		if nextLabel.MatchString(label) {
			var items []string
			if _, rest, ok := strings.Cut(label, ":"); ok {
				items = append(items, strings.Trim(rest, "*_` \t"))
			}
			return meant(append(items, itemsIn(lines[i+1:])...))
		}
	}
	return nil
}

// itemsIn are the list items of a text, to where something else begins. What
// comes before the first item is passed over; what runs on below an item
// belongs to it.
func itemsIn(lines []string) []string {
	var items []string
	gap := false
	for _, line := range lines {
		trimmed := strings.TrimSpace(line)
		indented := line != "" && strings.TrimLeft(line, " \t") != line
		text, isItem := item(trimmed)
		switch {
		case isItem:
			items = append(items, text)
		case trimmed == "":
		case len(items) == 0 && !strings.HasPrefix(trimmed, "#"):
		case !indented && (gap || ends(trimmed)):
			return items
		case len(items) == 0 || ends(trimmed):
			return items
		default:
			items[len(items)-1] += " " + trimmed
		}
		gap = trimmed == ""
	}
	return items
}

var (
	// ending begins something else: a heading, a tag, a fence, a rule.
	ending = regexp.MustCompile("^(?:#|</|```|~~~|(?:[-*_] ?){3,}$)")
	// label stands alone on its line above something else.
	label = regexp.MustCompile("^[*_`]*\\pL[^.!?:：]{0,60}[:：][*_`\\s]*$")
)

func ends(line string) bool {
	return ending.MatchString(line) || label.MatchString(line) || statusOf(line) != unknown
}

var (
	numbered = regexp.MustCompile(`^[0-9]+[.)](?:\s+|\b)(\D.*)$`)
	marked   = regexp.MustCompile(`^(?:[-+*•–]\s+|[-•](?:\b))(.*)$`)
	box      = regexp.MustCompile(`^\[([ xX]?)\]\s+`)
	words    = regexp.MustCompile(`[\pL\pN]`)
)

// item is the text of a list item. A mark with no word behind it, such as a
// rule, is none.
func item(line string) (text string, ok bool) {
	found := marked.FindStringSubmatch(line)
	if found == nil {
		found = numbered.FindStringSubmatch(line)
	}
	if found == nil || !words.MatchString(found[1]) {
		return "", false
	}
	return strings.TrimSpace(found[1]), true
}

// meant leaves out what is said for the sake of saying something, and what is
// ticked off; an empty check box is no part of an item.
func meant(items []string) []string {
	var left []string
	for _, text := range items {
		if b := box.FindStringSubmatch(text); b != nil {
			if strings.ToLower(b[1]) == "x" {
				continue
			}
			text = text[len(b[0]):]
		}
		if words.MatchString(text) && !nothing(text) {
			left = append(left, text)
		}
	}
	return left
}

// nothing reports whether a text only says that there is nothing.
func nothing(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .()[]*_`-")) {
	case "none", "nothing", "n/a", "na", "null", "nil", "no", "none remaining", "no blocker", "no blockers":
		return true
	}
	return false
}

// answered says what a text without calls lacks to be a final answer, for the
// model (a text such as "Let me start by …" is none).
func answered(text string) string {
	if strings.Contains(text, tag) || parseLines(text).Status != unknown {
		return ""
	}
	return "That called no tool and is not your final answer either. Go on with tool calls; or, if you are done or cannot go on, " +
		"give your final answer between " + tag + " and </final_answer>."
}
