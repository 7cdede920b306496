package screen

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone/internal/render"
)

// short is a text on one line, safe to print, and cut in the middle to so many
// characters. What it costs does not depend on the text's length.
func short(text string, most int) string {
	if len(text) > 8*most {
		// Each piece holds at least so many characters: what is torn between
		// them is cut away.
		text = text[:4*most] + text[len(text)-4*most:]
	}
	runes := []rune(strings.ReplaceAll(render.Line(text), "\t", `\t`))
	if len(runes) <= most {
		return string(runes)
	}
	tail := most / 3
	return string(runes[:most-tail-1]) + "…" + string(runes[len(runes)-tail:])
}

// telling is what says most of a call's arguments: the command, the pattern
// and where, the path; of a tool that has none of these, all. Numbers follow,
// as they tell the calls that read a file piece by piece from each other.
func telling(args string) string {
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
