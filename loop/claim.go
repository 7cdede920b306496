package loop

import (
	"fmt"
	"slices"
	"strings"

	"hone/check"
	"hone/internal/lazyregexp"
	"hone/internal/render"
)

var (
	sentenceEnd = lazyregexp.New(`[.!?]+(?:\s+|$)|\n+|, and said: `)
	// claim matches a sentence that says that a check passes.
	claim = lazyregexp.New(`(?i)\bexit(?:s|ed)?(?:[ _:=]|with|status|code)*\b0\b|\b(?:checks?|tests?|suite|build)\b.*\bpass(?:es|ed|ing)?\b`)
	// doubt matches what such a sentence has if it says something else, or speaks of some tests only.
	doubt = lazyregexp.New(`(?i)n't\b|\b(?:not|no|never|cannot|fail\w*|should|would|will|may|might|could|if|when|once|until|unless|must|needs?|want\w*|to pass|only|previously|before|\d+ of \d+` +
		`|packages?|modules?|files?|folders?|director(?:y|ies)|these|those|others?|new|unit|both|remaining|\w+_\w+)\b`)
	exited = lazyregexp.New(`^The check command failed: exit status (\d+)`)
)

// FalseClaim answers a model that says that the check passes: it quotes the claim, and says
// what hone saw when it ran the check afterwards. A line, or empty if the model did not say so, or
// if no finding is of the check in this tree.
func FalseClaim(said string, findings []check.Finding) string {
	found := slices.DeleteFunc(check.BlockingOf(findings), func(f check.Finding) bool { return f.Source != check.SourceCommand || f.Broken })
	if len(found) == 0 {
		return ""
	}
	for sentence := range strings.SplitSeq(sentenceEnd.ReplaceAllString(said, "\x00"), "\x00") {
		if !claim.MatchString(sentence) || doubt.MatchString(sentence) {
			continue
		}
		saw := "it reports " + check.Tally(found)
		if m := exited.FindStringSubmatch(found[0].Text); m != nil {
			saw = "it exits with status " + m[1]
		}
		return fmt.Sprintf("You wrote %q. hone ran the check after that: %s.\n", render.Cut(strings.TrimSpace(sentence), 200), saw)
	}
	return ""
}
