package task

import (
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
)

// status is what an execution agent reports about the task. It only decides whether
// the check runs; it does not make the task done.
type status string

const (
	unknown    status = ""
	complete   status = "COMPLETE"
	incomplete status = "INCOMPLETE"
)

const tag = "<final_answer>"

type answer struct {
	Status status
	Next   []string // the steps that remain according to the agent, in order
}

func parseAnswer(text string) answer {
	text, _ = finalText(text)
	return answer{statusIn(text), nextSteps(strings.Split(text, "\n"))}
}

// If there are several final answers the last one counts, because models think aloud (ruling S2). tagged means that the text
// begins after its tag.
func finalText(text string) (final string, tagged bool) {
	text = strings.ReplaceAll(reply.Answer(text, nil), "\r\n", "\n")
	if i := strings.LastIndex(text, tag); i >= 0 && statusIn(text[i+len(tag):]) != unknown {
		return text[i+len(tag):], true
	}
	return text, false
}

// The tags and the status are for hone.
func said(text string) string {
	text, tagged := finalText(text)
	if tagged {
		text, _, _ = strings.Cut(text, "</"+tag[1:])
	}
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return statusOf(line) != unknown })
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func statusIn(text string) status {
	for line := range strings.SplitSeq(text, "\n") {
		if s := statusOf(line); s != unknown {
			return s
		}
	}
	return unknown
}

var (
	// ornament matches what may precede a label: tags, quote marks, headings, list
	// marks and emphasis.
	ornament = lazyregexp.New("^(?:\\s|</?final_answer>|[>#*_`•–+-]|[0-9]+[.)]\\s)*")
	// statusLabel matches the label and the status.
	statusLabel = lazyregexp.New("(?i)^STATUS[*_`\\s]*[:：][*_`\\s]*(IN)?COMPLETED?(?:[^\\pL\\pN]|$)")
	anyStatus   = lazyregexp.New("(?i)\\bSTATUS[*_`\\s]*[:：]")
	nextLabel   = lazyregexp.New("(?i)^NEXT STEPS[*_`\\s]*(?:[:：]|$|[(–—-])")
	// item matches an item of a list. The groups are what is in a check box, and the text.
	item = lazyregexp.New(`^(?:(?:[-+*•–]\s+|[-•]|[0-9]+[.)]\s+)(?:\[([ xX]?)\]\s+)?|[0-9]+[.)])(\D.*)$`)
	// ending matches what ends a list: a heading, a tag, a fence, a rule, a label alone on its line.
	ending = lazyregexp.New("^(?:#|</|```|~~~|(?:[-*_] ?){3,}$|[*_`]*\\pL[^.!?:：]{0,60}[:：][*_`\\s]*$)")
	words  = lazyregexp.New(`[\pL\pN]`)
)

// A line that names two, such as the instruction itself, states none.
func statusOf(line string) status {
	line = ornament.ReplaceAllString(line, "")
	found := statusLabel.FindStringSubmatch(line)
	switch {
	case found == nil || len(anyStatus.FindAllString(line, 2)) > 1:
		return unknown
	case found[1] != "":
		return incomplete
	}
	return complete
}

// Lines before the list are ignored; lines that continue an item belong to it. Items that are ticked off or say only that nothing
// is left are left out.
func nextSteps(lines []string) (left []string) {
	at := slices.IndexFunc(lines, func(line string) bool { return nextLabel.MatchString(ornament.ReplaceAllString(line, "")) })
	if at < 0 {
		return nil
	}
	_, rest, _ := strings.Cut(ornament.ReplaceAllString(lines[at], ""), ":")
	items, ticked, gap := []string{strings.Trim(rest, "*_` \t")}, []bool{false}, false
list:
	for _, line := range lines[at+1:] {
		text := strings.TrimSpace(line)
		m := item.FindStringSubmatch(text)
		switch {
		case m != nil && words.MatchString(m[2]):
			items, ticked = append(items, strings.TrimSpace(m[2])), append(ticked, strings.EqualFold(m[1], "x"))
		case text == "", len(items) == 1 && !strings.HasPrefix(text, "#"):
		case len(items) == 1, ending.MatchString(text), statusOf(text) != unknown, gap && strings.TrimLeft(line, " \t") == line:
			break list
		default:
			items[len(items)-1] += " " + text
		}
		gap = text == ""
	}
	for i, text := range items {
		if !ticked[i] && words.MatchString(text) && !meansNone(text) {
			left = append(left, text)
		}
	}
	return left
}

func meansNone(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .()[]*_`-")) {
	case "none", "nothing", "n/a", "na", "null", "nil", "no", "none remaining", "no blocker", "no blockers":
		return true
	}
	return false
}

// A text without calls, such as "Let me start by …", is not a final answer yet.
func answerProblem(text string) string {
	if strings.Contains(text, tag) || statusIn(text) != unknown {
		return ""
	}
	return "That reply calls no tool, but it is not your final answer either. Continue with tool calls; or, if you are done or cannot continue, " +
		"give your final answer between " + tag + " and </final_answer>."
}
