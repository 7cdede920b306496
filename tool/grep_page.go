package tool

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

// chunk is how many bytes of whole lines are tried at once.
const chunk = 64 << 10

// hit is one matching line.
type hit struct {
	number     int // from 1
	start, end int // of the line, without what ends it
	from       int // where the match begins in the line
}

// text searches one text and adds what it finds. The error is the context's.
func (s *search) text(ctx context.Context, name string, content []byte) error {
	s.files++
	content = bytes.TrimPrefix(content, []byte(bom))
	if bytes.Contains(content, []byte("\r\n")) {
		content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	}
	hits, err := s.hits(ctx, content)
	if err != nil || len(hits) == 0 {
		return err
	}
	if s.args.FilesOnly {
		s.add(valid(name) + "\n")
		return nil
	}
	s.show(valid(name), content, hits)
	return nil
}

// hits finds the matching lines of a text, as many as may still be shown.
func (s *search) hits(ctx context.Context, content []byte) ([]hit, error) {
	var hits []hit
	number := 1
	for at := 0; at < len(content); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if time.Now().After(s.until) {
			s.stopped = "the search took too long; narrow it by path or glob, or use a simpler pattern"
			return hits, nil
		}
		end, next := wholeLines(content, at)
		if end < next && content[end] != '\n' {
			s.long++
		}
		piece := content[at:end]
		if s.matcher.apart || s.matcher.Match(piece) {
			hits = s.lines(hits, piece, at, number)
		}
		if s.full(len(hits)) {
			return hits, nil
		}
		number += bytes.Count(content[at:next], []byte("\n"))
		at = next
	}
	return hits, nil
}

// full reports whether no more hits are needed: one more than may be shown
// tells that there are more.
func (s *search) full(hits int) bool {
	return s.args.FilesOnly && hits > 0 || s.matches+hits > s.args.Limit
}

// wholeLines is where the piece ends that is tried next, and where the one
// after it begins. A piece ends with a line; a line that is longer than a
// piece is cut, and the rest of it left out.
func wholeLines(content []byte, at int) (end, next int) {
	if len(content)-at <= chunk {
		return len(content), len(content)
	}
	if i := bytes.LastIndexByte(content[at:at+chunk], '\n'); i >= 0 {
		return at + i + 1, at + i + 1
	}
	if i := bytes.IndexByte(content[at+maxSearchedLine:], '\n'); i >= 0 {
		return at + maxSearchedLine, at + maxSearchedLine + i + 1
	}
	return at + maxSearchedLine, len(content)
}

// lines tries every line of a piece, which begins at a place of the text and
// with the line of a number.
func (s *search) lines(hits []hit, piece []byte, at, number int) []hit {
	for line := range bytes.Lines(piece) {
		text := bytes.TrimSuffix(line, []byte("\n"))
		if found := s.matcher.FindIndex(text); found != nil {
			hits = append(hits, hit{number: number, start: at, end: at + len(text), from: found[0]})
			if s.full(len(hits)) {
				return hits
			}
		}
		at += len(line)
		number++
	}
	return hits
}

// add adds lines to the answer and counts one match; it reports whether there
// was room.
func (s *search) add(text string) bool {
	switch {
	case s.matches >= s.args.Limit:
		s.stopped = fmt.Sprintf("there are more than %d; narrow the search or raise limit", s.args.Limit)
	case s.found.Len()+len(text) > maxFound:
		s.stopped = "there are more than fit into an answer; narrow the search"
	default:
		s.found.WriteString(text)
		s.matches++
		return true
	}
	return false
}

// show adds the hits of one text with their context.
func (s *search) show(name string, content []byte, hits []hit) {
	shown := 0 // the last line that was
	for i, h := range hits {
		after := h.number + s.args.Context
		if i+1 < len(hits) {
			after = min(after, hits[i+1].number-1)
		}
		var b strings.Builder
		if s.args.Context > 0 && s.found.Len() > 0 && (shown == 0 || h.number-s.args.Context > shown+1) {
			b.WriteString("--\n")
		}
		linesBefore(&b, name, content, h, max(shown+1, h.number-s.args.Context))
		fmt.Fprintf(&b, "%s:%d: %s\n", name, h.number, around(content[h.start:h.end], h.from))
		shown = linesAfter(&b, name, content, h, after)
		if !s.add(b.String()) {
			return
		}
	}
}

// linesBefore adds the lines from one number to the hit.
func linesBefore(b *strings.Builder, name string, content []byte, h hit, from int) {
	start := h.start
	for n := h.number; n > from && start > 0; n-- {
		start = bytes.LastIndexByte(content[:start-1], '\n') + 1
	}
	number := from
	for line := range bytes.Lines(content[start:h.start]) {
		fmt.Fprintf(b, "%s-%d- %s\n", name, number, around(bare(line), 0))
		number++
	}
}

// linesAfter adds the lines from the hit to a number, and returns the last one.
func linesAfter(b *strings.Builder, name string, content []byte, h hit, to int) int {
	number := h.number
	_, rest, _ := bytes.Cut(content[h.end:], []byte("\n"))
	for ; number < to && len(rest) > 0; number++ {
		line, next, _ := bytes.Cut(rest, []byte("\n"))
		fmt.Fprintf(b, "%s-%d- %s\n", name, number+1, around(line, 0))
		rest = next
	}
	return number
}

// maxShownLine is how many bytes of a line are shown.
const maxShownLine = 300

// around is the part of a line in which a match begins.
func around(line []byte, from int) string {
	if len(line) <= maxShownLine {
		return valid(string(line))
	}
	text := string(line)
	start := boundary(text, max(0, min(from-maxShownLine/3, len(text)-maxShownLine)))
	end := boundary(text, start+maxShownLine)
	shown := valid(text[start:end])
	if start > 0 {
		shown = "…" + shown
	}
	if end < len(text) {
		shown += "…"
	}
	return shown
}

// answer is what was found, and what was left out.
func (s *search) answer() string {
	var b strings.Builder
	b.WriteString(s.found.String())
	if s.matches == 0 && s.stopped == "" {
		fmt.Fprintf(&b, "# no match in %d files\n", s.files)
	}
	if s.stopped != "" {
		fmt.Fprintf(&b, "# stopped: %s\n", s.stopped)
	}
	for _, left := range []struct {
		n    int
		what string
	}{
		{s.binary, "binary files"}, {s.links, "symlinks"}, {s.broken, "files that cannot be read"},
	} {
		if left.n > 0 {
			fmt.Fprintf(&b, "# not searched: %d %s\n", left.n, left.what)
		}
	}
	if len(s.large) > 0 {
		fmt.Fprintf(&b, "# not searched, over 8 MiB: %s\n", few(s.large))
	}
	if len(s.withheld) > 0 {
		fmt.Fprintf(&b, "# withheld, because they may hold secrets: %s\n", few(s.withheld))
	}
	if s.long > 0 {
		fmt.Fprintf(&b, "# of %d lines only the first 64 KiB were searched\n", s.long)
	}
	return b.String()
}

// few names the first of many.
func few(names []string) string {
	const shown = 5
	text := clip(strings.Join(names[:min(len(names), shown)], "; "), 1000)
	if len(names) > shown {
		text += fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return text
}
