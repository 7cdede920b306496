package reply

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"

	"hone/internal/lazyregexp"
)

// formFault says in which form a text was sent that its file cannot have, such as a
// diff; empty if there is none, or if the old text has that form too.
func formFault(name, old, text string) string {
	k := kindOf(name)
	lines := func(k fileKind, text string) string { return linesFault(k, old, text) }
	for _, form := range []func(fileKind, string) string{nulFault, fenceFault, diffFault, lines, searchReplaceFault, numberFault, escapeFault} {
		if fault := form(k, text); fault != "" && form(k, old) == "" {
			return fault
		}
	}
	return ""
}

// A text has none, so that a file with one would be withheld from the model.
func nulFault(_ fileKind, text string) string {
	if at := strings.IndexByte(text, 0); at >= 0 {
		return fmt.Sprintf("line %d contains a NUL character, which no text has", 1+strings.Count(text[:at], "\n"))
	}
	return ""
}

// number is that of the first, from 1.
func edges(text string) (first, last string, number int) {
	for line := range strings.Lines(text) {
		number++
		if first = strings.TrimRight(line, " \t\n"); first != "" {
			break
		}
	}
	text = strings.TrimRight(text, " \t\n")
	return first, strings.TrimRight(text[strings.LastIndexByte(text, '\n')+1:], " \t"), number
}

var (
	fenceOpens  = lazyregexp.New("^(?:```+|~~~+)[ \t]*([A-Za-z0-9_+#.-]*)[ \t]*$")
	fenceCloses = lazyregexp.New("^(?:```+|~~~+)$")
)

// A document may be a fence, unless the fence says that it contains the document. In any other
// file one may not end the text, and in a program it may be in strings and comments only.
func fenceFault(k fileKind, text string) string {
	first, last, _ := edges(text)
	whole, closes := fenceOpens.FindStringSubmatch(first), fenceCloses.MatchString(last)
	markdown := whole != nil && slices.Contains([]string{"markdown", "md", "mdx"}, strings.ToLower(whole[1]))
	anywhere := slices.Contains(programs, k.ext) && !slices.Contains(heredocs, k.ext)
	if k.fixture || k.prose && !(markdown && closes) || !closes && !anywhere {
		return ""
	}
	opened := 0
	lines := visible(k, strings.TrimRight(text, " \t\n"))
	for at, line := range lines {
		m := fenceOpens.FindStringSubmatch(line)
		switch {
		case m == nil:
		case opened == 0:
			opened = at + 1
		case m[1] == "" && (anywhere || at == len(lines)-1):
			return fmt.Sprintf("line %d, %s, opens a Markdown fence around the contents", opened, brief(strings.TrimSpace(lines[opened-1])))
		}
	}
	return ""
}

var (
	diffOpens = lazyregexp.New(`^(?:diff --git |--- \S|\+\+\+ \S|Index: \S|@@ |\*\*\* \S|From [0-9a-f]{40} |\d+(?:,\d+)?[acd]\d+(?:,\d+)?$)`)
	hunk      = lazyregexp.New(`(?m)^(?:@@(?: -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|$| )|\*\*\* End Patch|\*{15}$|[<>] )`)
)

func diffFault(k fileKind, text string) string {
	first, _, number := edges(text)
	if k.fixture || !diffOpens.MatchString(first) || !hunk.MatchString(text) {
		return ""
	}
	return fmt.Sprintf("from line %d, %s, it is a diff", number, brief(first))
}

// linesFault recognizes a diff without headers: each line begins with a blank, + or -, and most
// of those that should be in the old text are there without that sign.
func linesFault(k fileKind, old, text string) string {
	if k.fixture || strings.Trim(text[:min(1, len(text))], " +-\n") != "" {
		return ""
	}
	known := map[string]bool{}
	for line := range strings.SplitSeq(old, "\n") {
		known[line] = true
	}
	signs, there, expected := 0, 0, 0
	for line := range strings.Lines(text) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.TrimSpace(line) == "":
			continue
		case strings.IndexByte(" +-", line[0]) < 0:
			return ""
		case line[0] != ' ':
			signs++
		}
		if line[0] != '+' {
			expected++
			if known[line[1:]] {
				there++
			}
		}
	}
	if signs == 0 || there == 0 || there*2 < expected {
		return ""
	}
	return "it is a diff: each line begins with a blank, + or -"
}

var conflictEnds = lazyregexp.New(`^>{7}(?: |$)`)

// Such blocks, or the markers of a conflict, may be in strings and comments, and in the middle of a document.
func searchReplaceFault(k fileKind, text string) string {
	if k.fixture || !strings.Contains(text, "=======") {
		return ""
	}
	first, _, _ := edges(text)
	search := ""
	for at, line := range visible(k, text) {
		line = strings.TrimRight(line, " \t")
		switch {
		case strings.HasPrefix(line, "<<<<<<<") || strings.HasPrefix(line, "------- SEARCH"):
			if k.prose && line != first {
				return ""
			}
			search = fmt.Sprintf("from line %d, %s, it", at+1, brief(line))
		case search != "" && (conflictEnds.MatchString(line) || strings.HasSuffix(line, "REPLACE")):
			return search + " consists of SEARCH/REPLACE blocks or has the markers of a conflict"
		}
	}
	return ""
}

var number = lazyregexp.New(`^ *(\d{1,7})(: ?|\||\t| \| ?|→| → ?)`)

// Tools show files with the number before each line.
func numberFault(k fileKind, text string) string {
	count, before := 0, -1
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") { // most texts end the loop at the first line
		count++
		m := number.FindStringSubmatch(line)
		if bare := strings.TrimSpace(line); m == nil && before >= 0 && strings.TrimLeft(bare, "0") == strconv.Itoa(before+1) {
			m = []string{bare, bare} // the separator of an empty line may be missing
		}
		if m == nil {
			return ""
		}
		n, _ := strconv.Atoi(m[1])
		if before >= 0 && n != before+1 {
			return ""
		}
		before = n
	}
	first, _, _ := strings.Cut(text, "\n")
	m := number.FindStringSubmatch(first)
	padded := m != nil && len(m[1]) >= 4 && m[1][0] == '0'
	data := k.prose || k.fixture || slices.Contains([]string{"", ".yaml", ".yml", ".tsv", ".csv", ".dat", ".tab", ".data"}, k.ext)
	if !padded && (data || count < 2 || m == nil) {
		return ""
	}
	return fmt.Sprintf("each line begins with a number, such as %s", brief(first))
}

func escapeFault(k fileKind, text string) string {
	text = strings.TrimRight(text, "\n")
	settings := slices.Contains([]string{".properties", ".ini", ".env", ".conf", ".cfg", ".strings"}, k.ext) // a value may have line breaks
	if k.fixture || settings || strings.Contains(text, "\n") || strings.Count(text, `\n`) < 2 || !strings.HasSuffix(text, `\n`) {
		return ""
	}
	return `it is one line with \n as two characters in place of line breaks`
}

// entity matches what becomes another character in HTML.
var entity = lazyregexp.New(`&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,20});`)

// entityFault recognizes a text whose characters were replaced by HTML entities: in a
// program, any that no string and no comment precedes in its line, unless the old text has
// one; in another file, lines that the old text has without them, and no < or > at all.
func entityFault(name, old, text string) string {
	k := kindOf(name)
	if k.fixture || !entity.MatchString(text) || slices.Contains(entities(k, old), true) {
		return ""
	}
	lines := lineSet(old)
	inCode := entities(k, text)
	escaped := !strings.ContainsAny(text, "<>") && (strings.ContainsAny(old, "<>") || strings.HasPrefix(text, "&lt;"))
	for at, line := range strings.Split(text, "\n") {
		t := strings.TrimSpace(line)
		plain := html.UnescapeString(t)
		whole := escaped && plain != t && !k.prose && (lines[plain] || old == "")
		if !lines[t] && (whole || inCode != nil && inCode[at]) {
			return fmt.Sprintf("line %d, %s, has HTML entities in place of characters", at+1, brief(t))
		}
	}
	return ""
}

var (
	programs = strings.Fields(".py .go .c .h .cc .cpp .cxx .hpp .hh .rs .java .kt .kts .swift .js .mjs .cjs .jsx .ts .mts .cts .tsx .rb .sh .bash .zsh .pl .pm .lua .cs .fs .scala .dart .zig .nim " +
		".ex .exs .erl .hs .ml .r .jl .sql .m .mm .groovy .gradle .clj .el .lisp .d .pas .f90 .v .sv .vhd .s .css .scss .less .proto .ps1")
	// heredocs are programs whose texts of several lines need no quotation marks.
	heredocs = strings.Fields(".sh .bash .zsh .rb .pl .pm .ps1")
	// said matches the beginning of a comment or a string, but for Rust's lifetimes.
	said = lazyregexp.New("^(?:\\*|--|;|%|#(?:[^a-z]|$))|//|/\\*|(?:^|\\s)(?:#|--)\\s|[\"`]|(?:^|[^<&])'")
	tag  = lazyregexp.New(`</[\w>]|/>`)
)

// entities tells which lines of a program have an entity for a character of ASCII, or a no-break
// space, before any string and comment. It is nil for other files, and for programs that contain
// markup, where any line may be text.
func entities(k fileKind, text string) []bool {
	if !slices.Contains(programs, k.ext) {
		return nil
	}
	lines := visible(k, text)
	found := make([]bool, len(lines))
	for i, line := range lines {
		code := strings.TrimSpace(line)
		if at := said.FindStringIndex(code); at != nil {
			code = code[:at[0]]
		}
		if tag.MatchString(code) {
			return nil
		}
		found[i] = slices.ContainsFunc(entity.FindAllString(code, -1), func(e string) bool {
			c := html.UnescapeString(e)
			return len(c) == 1 || c == "\u00a0"
		})
	}
	return found
}

// visible returns the lines of a text. Those that begin in a string of several lines, or in a
// comment of a program, are empty.
func visible(k fileKind, text string) []string {
	quoted := stringTracker{ext: k.ext}
	program, inComment := slices.Contains(programs, k.ext), false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !inComment && quoted.count%2 == 0 && fenceOpens.MatchString(line) {
			continue // its backticks are no quotation marks
		}
		hidden := quoted.next(line) || inComment
		if at := strings.LastIndex(line, "/*"); program && (at >= 0 || inComment) {
			inComment = strings.LastIndex(line, "*/") <= at
		}
		if hidden {
			lines[i] = ""
		}
	}
	return lines
}

func lineSet(text string) map[string]bool {
	lines := map[string]bool{}
	for _, line := range filled(text) {
		lines[line] = true
	}
	return lines
}

// refers matches the beginning of a line that refers to another file.
var refers = lazyregexp.New(`^(?:import|use|using|include|require|from|export|package|module|mod)\b`)

// fragmentFault recognizes a part of the old text that was sent in place of it: it
// begins in the middle of the old text, or more indented than that, most of it
// is lost, and something is new. Without that it says nothing but that lines are removed.
func fragmentFault(old, text string) string {
	first, _, _ := edges(text)
	oldFirst, _, _ := edges(old)
	was, now := filled(old), filled(text)
	if first == "" || refers.MatchString(first) || len(was) < 4 || len(now)*2 > len(was) || slices.Contains(now, strings.TrimSpace(oldFirst)) {
		return ""
	}
	at := slices.Index(was, strings.TrimSpace(first))
	indented := strings.TrimLeft(first, " \t") != first && strings.TrimLeft(oldFirst, " \t") == oldFirst
	before := lineSet(old)
	if at < 1 && !indented || !indented && !slices.ContainsFunc(now, func(line string) bool { return !before[line] }) {
		return ""
	}
	return fmt.Sprintf("it is a part of the file, which has %d lines: it begins with %s. If the other lines are to be removed, begin with a comment that says so; otherwise", strings.Count(old, "\n"), brief(first))
}

func filled(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if t := strings.TrimSpace(line); t != "" {
			lines = append(lines, t)
		}
	}
	return lines
}
