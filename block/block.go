// Package block reads and writes the replies of a model that has no tools:
// blocks of lines between marker lines.
//
//	reply   = { block | other line }
//	block   = opening { line } closing
//	opening = "&&&start"   a thought for the user
//	        | "%%%start"   a thought for later rounds, if the build fails
//	        | "^^^" path   a complete file
//	        | "$$$start"   the reason why no file needs to change
//	closing = "&&&end" | "%%%end" | "^^^end" | "$$$end"
//	        | "^^^delete"  in place of "^^^end": the file is to be deleted
//
// [Parse] reads a reply and returns all its problems; [Format] writes one.
// Parse(Format(r)) equals r for every r that Parse returned.
//
// # Markers
//
// A marker counts only alone on its line (ruling C3). White space around it and
// after its three signs is ignored, and so are the case of "start" and "end"
// and a byte order mark at the start. A sentence that contains a marker is not
// one, and neither is a sign repeated more than three times, as in compilers'
// underlines and in rulers.
//
// Lines outside blocks are ignored, including Markdown fences around a reply. Three
// signs followed by nothing, or by another word, are text, because Erlang's comments and
// compilers' underlines look like this.
//
// # Blocks
//
// A block is closed by the next marker of its kind. A marker of another kind in it is
// a problem, even in a file that documents this syntax: there is no escape, so
// such a line must change or the file must be left alone. A block that is not
// closed is one problem, and the blocks after it are still read.
//
// A file's content is everything between its marker lines, byte for byte,
// including carriage returns and the last line break; no lines make an empty
// file (ruling C4). So a file without a final line break cannot be written. The
// text of other blocks is the same without its last line break.
//
// A path is everything that follows "^^^", without backticks around it. This package
// does not decide which paths are forbidden. A file called "end" or "delete" is
// written as `^^^./end`. A file is deleted by its path and "^^^delete", with nothing
// between; a "^^^end" after that is ignored.
package block

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hone/internal/reply"
	"hone/workspace/treepath"
)

// Reply is the content of a model's reply, each kind in the order of the reply.
// The zero Reply is empty.
type Reply struct {
	Thoughts []string // &&&: for the user
	Debug    []string // %%%: for the model's own later rounds
	Files    []File   // ^^^: files to write or delete
	Done     []string // $$$: why no file needs to change
}

// File is one complete file.
type File struct {
	Path    string // as written, without white space around it
	Content []byte // nil means an empty file; Parse returns nil for one
	Delete  bool   // the file is to be deleted; Content is nil
}

// Problem is one problem of a reply, worded for the model that wrote it.
type Problem struct {
	// Line is the line to change, starting at 1; 0 means the complete reply.
	Line int
	// Marker is the marker in question as written, shortened if long; empty if
	// there is none.
	Marker string
	// Text says what is wrong and what to write instead.
	Text string
}

// String returns the problem as one line with line number and marker.
func (p Problem) String() string {
	switch {
	case p.Line == 0:
		return p.Text
	case p.Marker == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return fmt.Sprintf("line %d: %s %s", p.Line, p.Marker, p.Text)
}

// Format writes a reply: thoughts, debugging thoughts, files and $$$ blocks,
// separated by empty lines and ending in a line break. The zero Reply is the
// empty text. Format adds a missing final line break to a file. It does not
// check whether Parse would read the same reply.
func Format(r Reply) string {
	var blocks []string
	write := func(first, content, last string) {
		blocks = append(blocks, first+"\n"+content+last+"\n")
	}
	say := func(k kind, texts []string) {
		for _, s := range texts {
			if s != "" {
				s += "\n"
			}
			write(openings[k], s, closings[k])
		}
	}
	say(thought, r.Thoughts)
	say(debug, r.Debug)
	for _, f := range r.Files {
		mark := "^^^"
		if strings.HasPrefix(f.Path, "^") {
			mark += " " // with a fourth sign in a row the line would not be a marker
		}
		content := string(f.Content)
		if content != "" && !strings.HasSuffix(content, "\n") {
			content += "\n"
		}
		if f.Delete {
			write(mark+f.Path, "", "^^^delete")
		} else {
			write(mark+f.Path, content, closings[file])
		}
	}
	say(done, r.Done)
	return strings.Join(blocks, "\n")
}

type kind uint8

const (
	thought kind = iota
	debug
	file
	done
	kinds // their number
)

// signs has the sign of each kind; three of them make a marker.
const signs = "&%^$"

var (
	openings = [kinds]string{thought: "&&&start", debug: "%%%start", file: "^^^ and the file's path", done: "$$$start"}
	closings = [kinds]string{thought: "&&&end", debug: "%%%end", file: "^^^end", done: "$$$end"}
)

type role uint8

const (
	text    role = iota // not a marker
	opening             // opens a block
	closing             // closes a block
)

// marker is a line that is not text.
type marker struct {
	kind  kind
	role  role
	line  int    // from 1
	start int    // offset of the line in the text
	text  string // the line
	next  int    // index of the next marker of the kind; the number of markers if there is none
}

func classify(line string) (kind, role) {
	s := strings.TrimSpace(line)
	if len(s) < 3 || s[1] != s[0] || s[2] != s[0] || len(s) > 3 && s[3] == s[0] || strings.IndexByte(signs, s[0]) < 0 {
		return 0, text
	}
	k, rest := kind(strings.IndexByte(signs, s[0])), strings.TrimSpace(s[3:])
	switch {
	case strings.EqualFold(rest, "end"), k == file && strings.EqualFold(rest, "delete"):
		return k, closing
	case k == file && rest != "", strings.EqualFold(rest, "start"):
		return k, opening
	}
	return 0, text
}

// word is what follows the signs: a file's path, or such as "end".
func (m marker) word() string {
	return reply.Unquoted(strings.TrimSpace(strings.TrimSpace(m.text)[3:]))
}

func (m marker) deletes() bool { return m.role == closing && strings.EqualFold(m.word(), "delete") }

func (m marker) end() int { return m.start + len(m.text) }

// String returns the line trimmed, shortened, and escaped if it contains anything unprintable.
func (m marker) String() string {
	const longest = 120
	s := strings.TrimSpace(m.text)
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strings.Trim(strconv.Quote(s), `"`)
	}
	return s
}

func markersOf(text string) []marker {
	var all []marker
	at, number := 0, 0
	for line := range strings.Lines(text) {
		number++
		if k, r := classify(line); r != 0 {
			all = append(all, marker{kind: k, role: r, line: number, start: at, text: line})
		}
		at += len(line)
	}
	next := [kinds]int{len(all), len(all), len(all), len(all)}
	for i := len(all) - 1; i >= 0; i-- {
		all[i].next, next[all[i].kind] = next[all[i].kind], i
	}
	return all
}

// Parse reads a reply. It returns every block that is well formed, even if
// another part of the reply is wrong (rulings C7 and C8), and all problems:
// those of the complete reply first, then in line order. Apply only a reply
// without problems.
//
// A problem that only follows from another one is not reported. After the first
// 50 problems one more states how many are omitted.
func Parse(text string) (Reply, []Problem) {
	p := parser{text: strings.TrimPrefix(text, "\ufeff"), lines: map[string]int{}}
	p.read()
	problems := p.problems
	switch {
	case !p.tried[file] && !p.tried[done]:
		problems = append([]Problem{{Text: "the reply has neither a file nor a $$$ block: write each file to change, complete, between ^^^ with its path and ^^^end, or explain between $$$start and $$$end why no file needs to change; each marker must be alone on its line"}}, problems...)
	case p.opened[file] && p.opened[done]:
		problems = append([]Problem{{Marker: "$$$", Text: "the reply has a $$$ block, which says that no file needs to change, but also files: remove one or the other"}}, problems...)
	}
	if p.more > 0 {
		problems = append(problems, Problem{Text: fmt.Sprintf("and %d more problems", p.more)})
	}
	return p.reply, problems
}

// Spans returns the contents of the blocks of a text that are well formed, as offsets in order.
func Spans(text string) [][2]int {
	p := parser{text: text, lines: map[string]int{}}
	p.read()
	return p.spans
}

type parser struct {
	text     string
	reply    Reply
	spans    [][2]int
	lines    map[string]int // of each path
	tried    [kinds]bool    // there is a marker of the kind
	opened   [kinds]bool    // there is an opening outside of other blocks
	reported [kinds]int     // openings that were reported: the same number of closings follow from them
	problems []Problem
	more     int // problems that are only counted
}

// maxProblems is how many problems of a reply are reported individually.
const maxProblems = 50

// The text is only made for what is reported, so that a reply with an error in every line costs no more than reading it.
func (p *parser) add(m marker, format string, args ...any) {
	if len(p.problems) == maxProblems {
		p.more++
		return
	}
	p.problems = append(p.problems, Problem{Line: m.line, Marker: m.String(), Text: fmt.Sprintf(format, args...)})
}

func (p *parser) read() {
	marks := markersOf(p.text)
	for i := 0; i < len(marks); i++ {
		m, k := marks[i], marks[i].kind
		p.tried[k] = true
		p.opened[k] = p.opened[k] || m.role == opening
		switch {
		case m.role == closing && p.reported[k] > 0:
			p.reported[k]--
		case m.role == closing:
			p.add(m, "closes a block that was not opened; %s must be alone on a line before the text", openings[k])
		case m.next < len(marks) && marks[m.next].role == closing:
			end := marks[m.next]
			if inside := marks[i+1 : m.next]; p.isWhole(m, end, inside) {
				p.take(m, end)
			}
			i = m.next
			// After a deletion, ^^^end is ignored.
			if end.deletes() && i+1 < len(marks) && marks[i+1].kind == file && marks[i+1].role == closing && !marks[i+1].deletes() &&
				strings.TrimSpace(p.text[end.end():marks[i+1].start]) == "" {
				i++
			}
		case m.next == len(marks):
			p.reported[k]++
			p.add(m, "is not closed; write %s alone on a line after its text", closings[k])
		default:
			p.reported[k]++
			p.add(m, "is not closed before line %d (%s) opens another; blocks must not nest: write %s alone on a line before that one", marks[m.next].line, marks[m.next], closings[k])
		}
	}
}

// isWhole reports whether there are no markers inside of a block, and reports those that there are.
func (p *parser) isWhole(m, end marker, inside []marker) bool {
	whole := true
	for _, other := range inside {
		switch k := other.kind; {
		case other.role == closing && p.reported[k] > 0:
			p.reported[k]--
		default:
			if p.tried[k] = true; other.role == opening {
				p.reported[k]++
			}
			p.add(other, "is inside the block of lines %d to %d (%s); blocks must not nest or overlap, and their text must not contain marker lines: close that block first, or change the start of this line",
				m.line, end.line, m)
		}
		whole = false
	}
	return whole
}

func (p *parser) take(m, end marker) {
	p.spans = append(p.spans, [2]int{m.end(), end.start})
	content := p.text[m.end():end.start]
	said := strings.TrimRight(strings.TrimSuffix(content, "\n"), "\r")
	switch m.kind {
	case thought:
		p.reply.Thoughts = append(p.reply.Thoughts, said)
	case debug:
		p.reply.Debug = append(p.reply.Debug, said)
	case done:
		p.reply.Done = append(p.reply.Done, said)
	case file:
		f := File{Path: m.word(), Delete: end.deletes()}
		if f.Delete && strings.TrimSpace(content) != "" {
			p.add(end, "deletes a file, but there is text before it; write ^^^ and the path and then ^^^delete, each alone on its line, or ^^^end to write the text to the file")
			return
		}
		if content != "" && !f.Delete {
			f.Content = []byte(content)
		}
		p.reply.Files = append(p.reply.Files, f)
		cleaned := clean(f.Path)
		if first, found := p.lines[cleaned]; found {
			p.add(m, "is the same file as in line %d; write each file once and complete", first)
		} else {
			p.lines[cleaned] = m.line
		}
	}
}

// All paths that name the same file get the same spelling.
func clean(name string) string {
	if cleaned, err := treepath.Clean(name); err == nil {
		return cleaned
	}
	return path.Clean(name)
}
