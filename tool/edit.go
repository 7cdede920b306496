package tool

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"hone/internal/render"
	"hone/internal/reply"
	"hone/workspace"
	"hone/workspace/secret"
	"hone/workspace/treepath"
)

//go:embed edit.md
var editText string

const editSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1},
		"edits": {
			"type": "array",
			"minItems": 1,
			"maxItems": 200,
			"items": {
				"type": "object",
				"properties": {
					"oldText": {"type": "string", "minLength": 1},
					"newText": {"type": "string"}
				},
				"required": ["oldText", "newText"],
				"additionalProperties": false
			}
		}
	},
	"required": ["path", "edits"],
	"additionalProperties": false
}`

type editArgs struct {
	Path  string        `json:"path"`
	Edits []replacement `json:"edits"`
}

type replacement struct {
	Old string `json:"oldText"`
	New string `json:"newText"`
}

// Edit returns the tool that replaces parts of a file whose current contents the
// model has seen, or exact texts that findings or results of grep have shown. All other bytes of the file are unchanged. The apply function
// decides whether the change is allowed. The guard redacts names in errors; nil
// redacts nothing.
func Edit(tree *workspace.Tree, guard *secret.Guard, apply Apply) Tool {
	return Define(Tool{}, "edit", editText, editSchema, func(ctx context.Context, in Input, args editArgs) (Result, error) {
		p, err := locate(tree, args.Path)
		if err != nil {
			return Result{}, readError(ctx, tree, guard, args.Path, err)
		}
		content, err := originalContent(tree, in, p)
		if err != nil {
			return Result{}, readError(ctx, tree, guard, p, err)
		}
		unread := checkRead(in, p, content)
		if _, withheld := guard.Withheld(p, content); unread != "" && (withheld || !isTold(in, p, args.Edits)) {
			return Failure(unread), nil
		}
		places, fault := place(content, args.Edits)
		switch {
		case fault != "" && unread != "":
			return Failure(unread), nil
		case fault != "":
			return Failure(fault), nil
		}
		changed := applyPlaces(content, places)
		texts := make([]string, len(args.Edits))
		for i, e := range args.Edits {
			texts[i] = e.New
		}
		if err := reply.CheckEdit(p, content, changed, texts); err != nil {
			return Failure(fmt.Sprintf("%v. Nothing was changed", err)), nil
		}
		known := p
		if _, all := in.seenDigest(p); !all {
			known = partOf(p)
			in.Seen = func(string) (string, bool) { return workspace.Digest(content), true }
		}
		v, err := applyContent(ctx, apply, in, p, changed)
		switch {
		case err != nil:
			return Result{}, err
		case v.Ruling == workspace.Drop:
			return Failure(fmt.Sprintf("nothing was changed: these edits do not change %s", p)), nil
		case v.Ruling != workspace.Allow:
			return refusal(v, in.seenDigest), nil
		}
		if v.Edited {
			return editedByUser(p), nil
		}
		result := Result{Text: editReport(p, content, changed, places)}
		if unread == "" {
			result.Shown = knownDigest(known, changed)
		}
		return result, nil
	})
}

// An interrupted run of this call may have changed the file.
func originalContent(tree *workspace.Tree, in Input, p string) ([]byte, error) {
	if in.Original != nil {
		if content, ok := in.Original(p); ok {
			return content, nil
		}
	}
	content, _, err := tree.Read(p)
	return content, err
}

func checkRead(in Input, p string, content []byte) string {
	digest, ok := in.seenDigest(p)
	if !ok {
		digest, ok = in.seenDigest(partOf(p))
	}
	switch {
	case !ok:
		return fmt.Sprintf("%s has not been read in this session; read it first, then edit", p)
	case digest != workspace.Digest(content):
		return fmt.Sprintf("%s has changed since it was read; read it again, then edit", p)
	}
	return ""
}

// The model knows the text from findings or results of grep.
func isTold(in Input, p string, edits []replacement) bool {
	const least = 8 // bytes; less may stand anywhere
	_, read := in.seenDigest(p)
	return !read && !in.hasSeenPart(p) && in.Told != nil && !slices.ContainsFunc(edits, func(e replacement) bool {
		return len(strings.TrimSpace(e.Old)) < least || !in.Told(p, e.Old)
	})
}

func applyPlaces(content []byte, places []placement) []byte {
	var b bytes.Buffer
	at := 0
	for _, p := range places {
		b.Write(content[at:p.start])
		b.Write(p.text)
		at = p.end
	}
	b.Write(content[at:])
	return b.Bytes()
}

// The texts are not repeated: the model has just written them. The lines are those of the new texts, in the order of the edits.
func editReport(p string, content, changed []byte, places []placement) string {
	lines := make([]string, len(places))
	moved := 0
	for _, one := range places {
		first := 1 + bytes.Count(changed[:one.start+moved], []byte("\n"))
		lines[one.index] = strconv.Itoa(first)
		if last := first + countLines(one.text) - 1; last > first {
			lines[one.index] += fmt.Sprintf("-%d", last)
		}
		moved += len(one.text) - (one.end - one.start)
	}
	return fmt.Sprintf("Edited %s (now %s) at line %s\n", p, render.Count(countLines(changed), "line"), strings.Join(lines, ", "))
}

type placement struct {
	index      int // in the call, from 0
	start, end int // byte offsets in the original
	text       []byte
}

const maxFaults = 3

// They are in the order of the file. The text is an explanation for the model.
func place(content []byte, edits []replacement) ([]placement, string) {
	v := viewOf(content)
	var places []placement
	var faults []string
	for i, e := range edits {
		one, fault := v.place(e)
		if fault != "" && len(edits) > 1 {
			fault = fmt.Sprintf("edits[%d]: %s", i, fault)
		}
		if fault != "" {
			faults = append(faults, fault)
		}
		one.index = i
		places = append(places, one)
		if len(faults) == maxFaults {
			break
		}
	}
	if len(faults) == 0 {
		slices.SortFunc(places, func(a, b placement) int { return cmp.Or(a.start-b.start, a.index-b.index) })
		faults = overlaps(places, v)
	}
	if len(faults) > 0 {
		return nil, strings.Join(faults, "\n") + "\nNothing was changed"
	}
	return places, ""
}

func overlaps(places []placement, v view) []string {
	var faults []string
	for i := 1; i < len(places) && len(faults) < maxFaults; i++ {
		a, b := places[i-1], places[i]
		if b.start < a.end {
			faults = append(faults, fmt.Sprintf("edits[%d] and edits[%d] overlap at line %d; combine them into one edit",
				min(a.index, b.index), max(a.index, b.index), 1+bytes.Count(v.original[:b.start], []byte("\n"))))
		}
	}
	return faults
}

// view is a file as read shows it to the model: without a byte order mark, and
// with newlines as line ends.
type view struct {
	original []byte
	skipped  int // bytes before the text
	text     []byte
	returns  []int // offsets in text of newlines that follow a carriage return in the original
}

func viewOf(content []byte) view {
	text := bytes.TrimPrefix(content, []byte(bom))
	v := view{original: content, skipped: len(content) - len(text), text: text}
	if !bytes.Contains(text, []byte("\r\n")) {
		return v
	}
	v.text = make([]byte, 0, len(text))
	for {
		line, rest, found := bytes.Cut(text, []byte("\r\n"))
		v.text = append(v.text, line...)
		if !found {
			return v
		}
		v.returns = append(v.returns, len(v.text))
		v.text = append(v.text, '\n')
		text = rest
	}
}

// The offset of a newline becomes that of the carriage return before it.
func (v view) originalOffset(i int) int {
	before, _ := slices.BinarySearch(v.returns, i)
	return v.skipped + i + before
}

// The text is an explanation for the model.
func (v view) place(e replacement) (placement, string) {
	old := normalizeNewlines(e.Old)
	start := bytes.Index(v.text, []byte(old))
	if start < 0 {
		return placement{}, "oldText must match exactly once; found 0 matches for: " + quoted(e.Old) + "\n" + v.nearest(old)
	}
	if matches := v.countMatches(old, start); matches != "" {
		return placement{}, "oldText must match exactly once; found " + matches + " for: " + quoted(e.Old) +
			"\nInclude more of the surrounding lines to make it unique"
	}
	end := start + len(old)
	return placement{start: v.originalOffset(start), end: v.originalOffset(end), text: v.withLineEnds(normalizeNewlines(e.New), start)}, ""
}

func normalizeNewlines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

func quoted(text string) string { return fmt.Sprintf("%q", clip(text, 200)) }

// Overlapping ones count. It is empty for a single match, which is at start.
func (v view) countMatches(old string, start int) string {
	const most, named = 1000, 10
	count, more, where := 0, "", ""
	for at, next := start, 0; next >= 0; at += next + 1 {
		if count++; count > most {
			count, more = most, "more than "
			break
		}
		switch {
		case count <= named:
			where += fmt.Sprintf(", %d", 1+bytes.Count(v.text[:at], []byte("\n")))
		case count == named+1:
			where += ", …"
		}
		next = bytes.Index(v.text[at+1:], []byte(old))
	}
	if count == 1 {
		return ""
	}
	return fmt.Sprintf("%s%d matches (at lines %s)", more, count, strings.TrimPrefix(where, ", "))
}

// The line ends are those of the line at its place, or of the line before if the last line has none.
func (v view) withLineEnds(text string, start int) []byte {
	if len(v.returns) == 0 || !strings.Contains(text, "\n") {
		return []byte(text)
	}
	end := bytes.IndexByte(v.text[start:], '\n')
	if end >= 0 {
		end += start
	} else {
		end = bytes.LastIndexByte(v.text, '\n')
	}
	if _, crlf := slices.BinarySearch(v.returns, end); crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return []byte(text)
}

// nearBytes limits the search of a file for similar texts.
const nearBytes = 1 << 20

// minSimilarity is the minimum similarity of lines that are shown; 1 is equal.
const minSimilarity = 0.4

// It takes linear time.
func (v view) nearest(old string) string {
	if strings.TrimSpace(old) == "" {
		return "oldText is only white space; include a line with text"
	}
	if bare := regexp.MustCompile(`(?m)^\d{4,}: `).ReplaceAllString(old, ""); bare != old && bytes.Contains(v.text, []byte(bare)) {
		return "oldText contains read's line numbers, which are not part of the file; remove them"
	}
	text := v.text[:min(len(v.text), nearBytes)]
	if differs := lookAlike(string(text), old); differs != "" {
		return differs
	}
	wanted := strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	start, likeness := mostSimilar(lines, wanted)
	if likeness < minSimilarity {
		return "No lines in the file are similar to it; read the file again"
	}
	return showNearest(lines[start:], start, wanted, old)
}

// It says which code points differ; empty if no text looks the same.
func lookAlike(text, old string) string {
	look, at := treepath.Look(text)
	wanted, _ := treepath.Look(old)
	start := strings.Index(look, wanted)
	if start < 0 || strings.TrimSpace(wanted) == "" {
		return ""
	}
	end := len(text)
	if start+len(wanted) < len(at) {
		end = at[start+len(wanted)]
	}
	is := []rune(text[at[start]:end])
	was := []rune(old)
	same := 0
	for same < len(is) && same < len(was) && is[same] == was[same] {
		same++
	}
	line := 1 + strings.Count(text[:at[start]], "\n") + strings.Count(string(is[:same]), "\n")
	return fmt.Sprintf("Line %d of the file looks the same, but has %s where oldText has %s. Copy the file's characters, or leave that part out of oldText",
		line, codePoints(is[same:]), codePoints(was[same:]))
}

// It includes what combines with the first character or cannot be seen.
func codePoints(text []rune) string {
	n := 0
	for n < len(text) && n < 4 && (n == 0 || unicode.Is(unicode.M, text[n]) || treepath.Invisible(text[n-1])) {
		n++
	}
	if n == 0 {
		return "nothing"
	}
	codes := make([]string, n)
	for i, r := range text[:n] {
		codes[i] = fmt.Sprintf("U+%04X", r)
	}
	return fmt.Sprintf("%s (%s)", strconv.QuoteToGraphic(string(text[:n])), strings.Join(codes, " "))
}

// It is the place of the old text whose longest line is the most similar to a line of the text; a likeness of 1 is equal.
func mostSimilar(lines, wanted []string) (start int, likeness float64) {
	longest, parts := 0, map[string]bool{}
	for i, line := range wanted {
		if len(withoutSpace(line)) > len(withoutSpace(wanted[longest])) {
			longest = i
		}
	}
	const length = 3 // of a part; a shorter line is one
	line := withoutSpace(clip(wanted[longest], maxReadLine))
	for at := range max(1, len(line)-length+1) {
		parts[line[at:min(len(line), at+length)]] = true
	}
	for number, line := range lines {
		line = withoutSpace(line[:min(len(line), maxReadLine)])
		common, others := 0, 0
		for at := range max(1, len(line)-length+1) {
			if parts[line[at:min(len(line), at+length)]] {
				common++
			} else {
				others++
			}
		}
		common = min(common, len(parts))
		if like := float64(common) / (float64(len(parts)) + float64(others)/4); like > likeness {
			start, likeness = max(0, number-longest), like
		}
	}
	return start, likeness
}

// The lines begin with the one at start, which is the first of the most similar ones.
func showNearest(lines []string, start int, wanted []string, old string) string {
	like := lines[:min(len(lines), len(wanted))]
	differs, says := 0, "The most similar lines are:"
	if withoutSpace(strings.Join(like, "\n")) == withoutSpace(old) {
		says = "The same text with different white space is here:"
	}
	for differs < len(wanted)-1 && differs < len(like) && wanted[differs] == like[differs] {
		differs++
	}
	const before, shown = 2, 12
	from := max(0, differs-before)
	for i, line := range lines[from:min(len(lines), from+shown)] {
		says += fmt.Sprintf("\n%04d: %s", start+from+i+1, clip(line, 300))
	}
	if differs > 0 {
		says += fmt.Sprintf("\nLine %d of oldText is the first different line: %s", differs+1, quoted(wanted[differs]))
	}
	return says
}

func withoutSpace(text string) string { return strings.Join(strings.Fields(text), "") }
