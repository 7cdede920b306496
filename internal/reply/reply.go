// Package reply decides what a model plainly means by a reply, in one place for
// all loops, tools and providers (ruling G15).
//
//   - [Answer] removes reasoning, and [EndProblem] explains a reply that did not end
//     normally.
//   - [CheckContent] and [CheckEdit] check what a model wants to write to a file; [Style]
//     gives the text the file's line ends.
//   - [Object], [ToolName] and [Arguments] read JSON, names and arguments of tool
//     calls in the dialects of other programs.
//
// A reply with only one possible meaning is read; for any other, the error tells the
// model what to send instead. The functions keep no state and never panic.
package reply

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"hone/internal/lazyregexp"
	"hone/model"
)

// closing matches what ends a model's reasoning: the tags of DeepSeek, Qwen and
// most others, Magistral, Seed, Kimi, and the final channel of gpt-oss.
var closing = lazyregexp.New(`(?i)</think(?:ing)?>|</seed:think>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>`)

// opening matches what begins it.
var opening = lazyregexp.New(`(?i)^(?:<think(?:ing)?>|<seed:think>|\[THINK\]|◁think▷|<\|channel\|>analysis<\|message\|>)`)

// Answer returns the part of a reply's text after its reasoning, which ends with
// the last tag such as </think>, whether or not it was opened. A tag between
// quotation marks does not count, and neither does one in a covered range of
// offsets: it is part of the answer, such as of a file. The ranges are in order.
// Reasoning that is not closed has no answer: it is empty.
func Answer(text string, covered [][2]int) string {
	for _, tag := range slices.Backward(closing.FindAllStringIndex(text, -1)) {
		at, end := tag[0], tag[1]
		quoted := at > 0 && end < len(text) && text[at-1] == text[end] && strings.IndexByte("\"'`", text[end]) >= 0
		if !quoted && !inRanges(covered, at) {
			text = text[end:]
			break
		}
	}
	if opening.MatchString(strings.TrimSpace(text)) {
		return ""
	}
	return text
}

// The ranges are in order.
func inRanges(ranges [][2]int, at int) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i][1] > at })
	return i < len(ranges) && ranges[i][0] <= at
}

// EndProblem explains why a reply that did not end normally is not used (ruling G3),
// and what to send instead. It is empty for a reply that ended normally.
func EndProblem(r model.Reply) string {
	switch {
	case r.Finish.Normal():
		return ""
	case r.Finish == model.Length:
		return "it reached the output limit. Make a smaller change in one reply, and leave out files that stay as they are"
	case r.Detail == "" || r.Detail == string(r.Finish):
		return fmt.Sprintf("it did not end normally (%s). Send the complete reply again", r.Finish)
	}
	return fmt.Sprintf("it did not end normally (%s: %s). Send the complete reply again", r.Finish, r.Detail)
}

// Unquoted returns a path without a pair of backticks around it.
func Unquoted(name string) string {
	if len(name) > 2 && name[0] == '`' && name[len(name)-1] == '`' && strings.Count(name, "`") == 2 {
		return strings.TrimSpace(name[1 : len(name)-1])
	}
	return name
}
