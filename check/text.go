package check

import (
	"fmt"
	"strings"
)

// notUTF8 replaces a text of a checker's that is not UTF-8 (ruling B11).
const notUTF8 = "<non-UTF8 output>"

// MaxText is the length in bytes above which the middle of an output that no [Reader]
// understands is omitted from a finding: that of a command which a model runs is cut there, too.
const MaxText = 16 << 10

// tailText is how many bytes of standard error are shown of a check that could
// not run.
const tailText = 8 << 10

func section(title, text string) string {
	if strings.TrimSpace(text) == "" {
		return fmt.Sprintf("\n%s: (empty)\n", title)
	}
	return fmt.Sprintf("\n%s:\n\n%s\n", title, strings.Trim(text, "\n"))
}

func applyRedact(redact func(string) string, text string) string {
	if redact == nil {
		return text
	}
	return redact(text)
}
