package reply

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

const bom = "\uFEFF"

// CheckContent checks the contents that a model sent for a file. old is nil if there is
// no such file.
//
// The error says why the contents cannot be meant, and what to send instead: a line
// stands for omitted code, or the contents are only a part of the file, a Markdown fence,
// a diff, SEARCH/REPLACE blocks, numbered lines or escaped text. A form that the old
// contents have too is accepted. A document, such as .md or .txt, may be a single fence,
// and test data (such as .golden, or below testdata) may be anything.
func CheckContent(name string, old, content []byte) error {
	const instead = "write the complete file"
	before, after := normalized(old), normalized(content)
	if fault := formFault(name, before, after); fault != "" {
		return fmt.Errorf("%s; write only the complete contents of the file", fault)
	}
	if fault := entityFault(name, before, after); fault != "" {
		return fmt.Errorf("%s; write the characters themselves", fault)
	}
	if fault := fragmentFault(before, after); fault != "" {
		return fmt.Errorf("%s %s", fault, instead)
	}
	o := omission(name, before, after)
	words := onlyWords(name, before, after)
	switch {
	case o != nil && o.missing == 0:
		return fmt.Errorf("line %d, %s, stands for omitted code; %s, with the lines that it stands for", o.line, brief(o.text), instead)
	case words != "":
		return fmt.Errorf("%s; %s, or delete it if it is not needed", words, instead)
	case o != nil:
		return fmt.Errorf("line %d, %s, stands where %d lines of the file were; %s, with these lines, or without this one if they are to be removed", o.line, brief(o.text), o.missing, instead)
	}
	return nil
}

// CheckEdit checks the new texts of edits; changed is what they make of the old contents.
// The error is like that of [CheckContent].
func CheckEdit(name string, old, changed []byte, texts []string) error {
	before, after := normalized(old), normalized(changed)
	for _, text := range texts {
		if fault := formFault(name, before, normalized([]byte(text))); fault != "" {
			return fmt.Errorf("newText: %s; write only the new text", fault)
		}
	}
	if fault := entityFault(name, before, after); fault != "" {
		return fmt.Errorf("newText: %s; write the characters themselves", fault)
	}
	if o := omission(name, before, after); o != nil && o.missing == 0 {
		return fmt.Errorf("newText: the line %s stands for omitted code; write out the lines that it stands for, or shorten oldText so that they stay", brief(o.text))
	}
	return nil
}

func normalized(content []byte) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(content), bom), "\r\n", "\n")
}

// Style is how the lines of a file end. The zero Style changes nothing.
type Style struct {
	CRLF  bool `json:"crlf,omitempty"`  // all lines end in CRLF
	LF    bool `json:"lf,omitempty"`    // no line ends in CRLF
	Final bool `json:"final,omitempty"` // the last line has a line end
	BOM   bool `json:"bom,omitempty"`   // a byte order mark precedes the text
	// Mixed are the line ends of a file that has both kinds: sums of its lines, and whether
	// they end in CRLF.
	Mixed map[uint64]bool `json:"mixed,omitempty"`
}

// StyleOf returns the style of contents. Mixed line ends, lines that end in more than one
// carriage return, and contents without line ends have neither CRLF nor LF.
func StyleOf(content []byte) Style {
	lines, returns := bytes.Count(content, []byte("\n")), bytes.Count(content, []byte("\r\n"))
	var mixed map[uint64]bool
	if returns > 0 && returns < lines && !bytes.Contains(content, []byte("\r\r\n")) {
		mixed = mixedEnds(content)
	}
	return Style{
		Mixed: mixed,
		CRLF:  lines > 0 && returns == lines && !bytes.Contains(content, []byte("\r\r\n")),
		LF:    lines > 0 && returns == 0,
		Final: bytes.HasSuffix(content, []byte("\n")),
		BOM:   bytes.HasPrefix(content, []byte(bom)),
	}
}

// Apply returns new contents of a file whose old contents have the style, in the
// same style. Empty contents and those with a NUL stay as they are.
func (s Style) Apply(content []byte) []byte {
	if len(content) == 0 || bytes.IndexByte(content, 0) >= 0 {
		return content
	}
	newline, crlf := []byte("\n"), []byte("\r\n")
	if s.CRLF || s.LF {
		if s.Final && !bytes.HasSuffix(content, newline) {
			content = slices.Concat(content, newline) // first, because a carriage return may precede it
		}
		content = []byte(crlfs.ReplaceAllString(string(content), "\n"))
	}
	if s.CRLF {
		content = bytes.ReplaceAll(content, newline, crlf)
	}
	if s.Mixed != nil && !bytes.Contains(content, crlf) {
		content = s.mix(content)
	}
	if s.BOM && !bytes.HasPrefix(content, []byte(bom)) {
		content = append([]byte(bom), content...)
	}
	return content
}

func mixedEnds(content []byte) map[uint64]bool {
	ends := map[uint64]bool{}
	for line := range bytes.Lines(content) {
		if text, ended := bytes.CutSuffix(line, []byte("\n")); ended {
			text, crlf := bytes.CutSuffix(text, []byte("\r"))
			ends[sumOf(text)] = crlf
		}
	}
	return ends
}

// A line that the file did not have gets the end of the line before it.
func (s Style) mix(content []byte) []byte {
	var out []byte
	crlf := false
	for line := range bytes.Lines(content) {
		text, ended := bytes.CutSuffix(line, []byte("\n"))
		if had, known := s.Mixed[sumOf(text)]; known {
			crlf = had
		}
		out = append(out, text...)
		if ended && crlf {
			out = append(out, '\r')
		}
		out = append(out, line[len(text):]...)
	}
	return out
}

func sumOf(line []byte) uint64 {
	h := fnv.New64a()
	h.Write(line)
	return h.Sum64()
}

// crlfs matches a line end with any number of carriage returns.
var crlfs = lazyregexp.New(`\r+\n`)

func brief(line string) string {
	const longest = 80
	if runes := []rune(line); len(runes) > longest {
		line = string(runes[:longest]) + "…"
	}
	return fmt.Sprintf("%q", line)
}

// fileKind groups files by what may be in them.
type fileKind struct {
	ext     string
	prose   bool // a document, which may show code, fences and diffs
	fixture bool // test data, which may be anything
}

func kindOf(name string) fileKind {
	k := fileKind{ext: strings.ToLower(path.Ext(name))}
	k.prose = slices.Contains([]string{".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".asciidoc", ".org", ".qmd", ".rmd", ".mdc", ".pod"}, k.ext)
	k.fixture = slices.Contains([]string{".txtar", ".golden", ".snap", ".patch", ".diff", ".rej", ".out", ".log"}, k.ext)
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		k.fixture = k.fixture || slices.Contains([]string{"testdata", "test-data", "fixtures", "__fixtures__", "__snapshots__", "golden"}, part)
	}
	return k
}
