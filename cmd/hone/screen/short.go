package screen

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone/internal/render"
)

// short returns a text on one line, safe to print, and shortened in the middle
// to limit characters. Its cost does not depend on the length of the text.
func short(text string, limit int) string {
	if len(text) > 8*limit {
		// Each half contains at least limit characters. A character that is
		// split at the seam is omitted below.
		text = text[:4*limit] + text[len(text)-4*limit:]
	}
	runes := []rune(strings.ReplaceAll(render.Line(text), "\t", `\t`))
	if len(runes) <= limit {
		return string(runes)
	}
	tail := limit / 3
	return string(runes[:limit-tail-1]) + "…" + string(runes[len(runes)-tail:])
}

// mainArgs returns the most important arguments of a call: the command, the
// pattern with its path, or the path. If a tool has none of these, it returns
// all arguments. Numbers follow, because they distinguish the calls that read a
// file piece by piece.
func mainArgs(args string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &fields) != nil {
		return args
	}
	var words, numbers []string
	for _, key := range []string{"command", "pattern", "path", "query", "url"} {
		var s string
		if json.Unmarshal(fields[key], &s) == nil && s != "" {
			words = append(words, s)
		}
	}
	if len(words) == 0 && len(fields) > 0 {
		return args
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		var n json.Number
		if b := fields[key]; b[0] != '"' && json.Unmarshal(b, &n) == nil && n != "" {
			numbers = append(numbers, fmt.Sprintf(", %s %s", key, n))
		}
	}
	return strings.Join(words, " in ") + strings.Join(numbers, "")
}
