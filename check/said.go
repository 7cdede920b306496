package check

import (
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

var (
	// leadingPlace matches a file and a line before a message.
	leadingPlace = lazyregexp.New(`^\S+:\d+(?::\d+)?:? +`)
	// leadingSeverity matches what a compiler calls a message. Readers remove it.
	leadingSeverity = lazyregexp.New(`^(?i:fatal error|error|err|failure|warning|warn|note|info|hint|style|remark|\w*Error)(?: ?[\[(][\w./@-]+[\])]| [A-Z]{1,6}\d{1,5})?: +`)
	// stackLine matches the lines of a Go program's stack.
	stackLine = lazyregexp.New(`^(?:goroutine \d+ .*\[.*\]:|created by \S+(?: in goroutine \d+)?|\S+\.(?:go|s):\d+(?: \+0x[0-9a-f]+)?|[\pL\w./*()\[\]\-·]+\((?:\.\.\.|[0-9a-fx?, {}.]*)\))$`)
)

// said is what findings say, to recognize the lines of the output that say it again.
type said struct {
	text  string   // all of it
	heads []string // the first lines, without place and severity
	crash bool     // a Go program's stack is in a finding
}

// maxHeads is how many findings a line is compared with.
const maxHeads = 2000

func newSaid(found []Finding) said {
	var s said
	var text strings.Builder
	for _, f := range found {
		if text.Len() <= maxBytes {
			text.WriteString(f.Text + "\n" + f.Place() + "\n")
		}
		if len(s.heads) < maxHeads {
			head, _, _ := strings.Cut(f.Text, "\n")
			s.heads = append(s.heads, withoutPlace(head))
			s.crash = s.crash || strings.Contains(head, "panic: ") || strings.Contains(head, "fatal error: ")
		}
	}
	s.text = text.String()
	return s
}

func withoutPlace(line string) string {
	return leadingSeverity.ReplaceAllString(leadingPlace.ReplaceAllString(line, ""), "")
}

// The line is trimmed. It may lack the place and the severity, or have more before the message. A short text counts only if
// it is the complete message.
func (s said) has(line string) bool {
	if s.crash {
		line, _, _ = strings.Cut(line, " [recovered")
	}
	message := withoutPlace(line)
	return strings.Contains(s.text, line) || s.crash && stackLine.MatchString(line) ||
		message == "" || len(message) > 3 && strings.Contains(s.text, message) ||
		slices.ContainsFunc(s.heads, func(head string) bool {
			return head == message || strings.HasPrefix(head, message+" (") || len(head) > 3 && strings.HasSuffix(line, head)
		})
}
