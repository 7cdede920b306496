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
	return parseLines(text)
}

// If there are several final answers the last one counts, because models think aloud (ruling S2). tagged means that the text
// begins after its tag.
func finalText(text string) (final string, tagged bool) {
	text = reply.Answer(text, nil)
	if i := strings.LastIndex(text, tag); i >= 0 && parseLines(text[i+len(tag):]).Status != unknown {
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
	// ornament matches what may precede a label: tags, quote marks, headings, list
	// marks and emphasis.
	ornament = lazyregexp.New("^(?:\\s|</?final_answer>|[>#*_`•–+-]|[0-9]+[.)]\\s)*")
	// statusLabel matches the label and the status.
	statusLabel = lazyregexp.New("(?i)^STATUS[*_`\\s]*[:：][*_`\\s]*(INCOMPLETED?|COMPLETED?)(?:[^\\pL\\pN]|$)")
	anyStatus   = lazyregexp.New("(?i)\\bSTATUS[*_`\\s]*[:：]")
	nextLabel   = lazyregexp.New("(?i)^NEXT STEPS[*_`\\s]*(?:[:：]|$|[(–—-])")
)

// A line that names two, such as the instruction itself, states none.
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

// Lines before the list are ignored; lines that continue an item belong to it. Items that are ticked off or say only that nothing
// is left are left out, and empty check boxes.
func nextSteps(lines []string) (left []string) {
	at := slices.IndexFunc(lines, func(line string) bool { return nextLabel.MatchString(ornament.ReplaceAllString(line, "")) })
	if at < 0 {
		return nil
	}
	_, rest, _ := strings.Cut(ornament.ReplaceAllString(lines[at], ""), ":")
	items, gap := []string{strings.Trim(rest, "*_` \t")}, false
	for _, line := range lines[at+1:] {
		trimmed := strings.TrimSpace(line)
		indented := line != "" && strings.TrimLeft(line, " \t") != line
		text, isItem := item(trimmed)
		if !isItem && trimmed != "" && (len(items) > 1 || strings.HasPrefix(trimmed, "#")) {
			if len(items) == 1 || ends(trimmed) || gap && !indented {
				break
			}
			items[len(items)-1] += " " + trimmed
		}
		if isItem {
			items = append(items, text)
		}
		gap = trimmed == ""
	}
	for _, text := range items {
		b := box.FindStringSubmatch(text)
		if b != nil {
			text = text[len(b[0]):]
		}
		if (b == nil || strings.ToLower(b[1]) != "x") && words.MatchString(text) && !meansNone(text) {
			left = append(left, text)
		}
	}
	return left
}

var (
	// ending matches what ends a list: a heading, a tag, a fence, a rule.
	ending = lazyregexp.New("^(?:#|</|```|~~~|(?:[-*_] ?){3,}$)")
	// label matches a label alone on its line.
	label = lazyregexp.New("^[*_`]*\\pL[^.!?:：]{0,60}[:：][*_`\\s]*$")
)

func ends(line string) bool {
	return ending.MatchString(line) || label.MatchString(line) || statusOf(line) != unknown
}

var (
	numbered = lazyregexp.New(`^[0-9]+[.)](?:\s+|\b)(\D.*)$`)
	marked   = lazyregexp.New(`^(?:[-+*•–]\s+|[-•](?:\b))(.*)$`)
	box      = lazyregexp.New(`^\[([ xX]?)\]\s+`)
	words    = lazyregexp.New(`[\pL\pN]`)
)

// A mark without a word after it, such as a rule, is not an item.
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

func meansNone(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .()[]*_`-")) {
	case "none", "nothing", "n/a", "na", "null", "nil", "no", "none remaining", "no blocker", "no blockers":
		return true
	}
	return false
}

// A text without calls, such as "Let me start by …", is not a final answer yet.
func answerProblem(text string) string {
	if strings.Contains(text, tag) || parseLines(text).Status != unknown {
		return ""
	}
	return "That reply calls no tool, but it is not your final answer either. Continue with tool calls; or, if you are done or cannot continue, " +
		"give your final answer between " + tag + " and </final_answer>."
}
