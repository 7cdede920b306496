package tool

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"hone/internal/render"
)

// chunk is the size of the pieces of complete lines that are matched at once, in
// bytes.
const chunk = 64 << 10

type hit struct {
	number int // of the line, from 1
	from   int // start of the match in the line
}

// The error is the context's.
func (s *search) searchText(ctx context.Context, name string, content []byte) error {
	s.files++
	content = bytes.TrimPrefix(content, []byte(bom))
	if bytes.Contains(content, []byte("\r\n")) {
		content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	}
	hits, err := s.findHits(ctx, content)
	if err != nil || len(hits) == 0 {
		return err
	}
	if s.args.FilesOnly {
		s.add(validUTF8(name) + "\n")
		return nil
	}
	s.addHits(validUTF8(name), content, hits)
	return nil
}

func (s *search) findHits(ctx context.Context, content []byte) ([]hit, error) {
	var hits []hit
	number := 1
	for at := 0; at < len(content); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if time.Now().After(s.deadline) {
			s.stopped = "the search timed out; narrow it with path or glob, or simplify the pattern"
			return hits, nil
		}
		end, next := wholeLines(content, at)
		if end < next && content[end] != '\n' {
			s.long++
		}
		piece := content[at:end]
		if s.matcher.wholeText || s.matcher.Match(piece) {
			hits = s.matchLines(hits, piece, number)
		}
		if s.hasEnough(len(hits)) {
			return hits, nil
		}
		number += bytes.Count(content[at:next], []byte("\n"))
		at = next
	}
	return hits, nil
}

// One more than the limit shows that there are more.
func (s *search) hasEnough(hits int) bool {
	return s.args.FilesOnly && hits > 0 || s.matches+hits > s.args.Limit
}

// A piece ends at the end of a line. A line longer than a chunk is a piece of its own, and the part beyond maxSearchedLine is
// skipped.
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

// The first line of the piece has the number.
func (s *search) matchLines(hits []hit, piece []byte, number int) []hit {
	for line := range bytes.Lines(piece) {
		if found := s.matcher.FindIndex(bytes.TrimSuffix(line, []byte("\n"))); found != nil {
			hits = append(hits, hit{number, found[0]})
			if s.hasEnough(len(hits)) {
				return hits
			}
		}
		number++
	}
	return hits
}

// It reports whether the text was within the limits.
func (s *search) add(text string) bool {
	switch {
	case s.matches >= s.args.Limit:
		s.stopped = fmt.Sprintf("more than %d matches; narrow the search or increase limit", s.args.Limit)
	case s.found.Len()+len(text) > maxFound:
		s.stopped = "too many matches to show; narrow the search"
	default:
		s.found.WriteString(text)
		s.matches++
		return true
	}
	return false
}

// The context of a hit ends where the next one is.
func (s *search) addHits(name string, content []byte, hits []hit) {
	var b strings.Builder
	number, shown := 0, 0 // of the line, and of the last one that was shown
	for line := range bytes.Lines(content) {
		number++
		h := hits[0]
		if number < h.number-s.args.Context {
			continue
		}
		if b.Len() == 0 && s.args.Context > 0 && s.found.Len() > 0 && (shown == 0 || number > shown+1) {
			b.WriteString("--\n")
		}
		if line = trimLineEnd(line); number == h.number {
			fmt.Fprintf(&b, "%s:%d: %s\n", name, number, excerpt(line, h.from))
		} else {
			fmt.Fprintf(&b, "%s-%d- %s\n", name, number, excerpt(line, 0))
		}
		shown = number
		if number == h.number+s.args.Context || len(hits) > 1 && number == max(h.number, hits[1].number-1) {
			if hits = hits[1:]; !s.add(b.String()) || len(hits) == 0 {
				return
			}
			b.Reset()
		}
	}
	s.add(b.String())
}

// maxShownLine limits the shown part of a line, in bytes.
const maxShownLine = 300

func excerpt(line []byte, from int) string {
	if len(line) <= maxShownLine {
		return validUTF8(string(line))
	}
	text := string(line)
	start := boundary(text, max(0, min(from-maxShownLine/3, len(text)-maxShownLine)))
	end := boundary(text, start+maxShownLine)
	shown := validUTF8(text[start:end])
	if start > 0 {
		shown = "…" + shown
	}
	if end < len(text) {
		shown += "…"
	}
	return shown
}

func (s *search) result() string {
	var b strings.Builder
	b.WriteString(s.found.String())
	if s.matches == 0 && s.stopped == "" {
		fmt.Fprintf(&b, "# no match in %s\n", render.Count(s.files, "file"))
	}
	if s.stopped != "" {
		fmt.Fprintf(&b, "# stopped: %s\n", s.stopped)
	}
	for _, skipped := range []struct {
		n    int
		what string
	}{
		{s.binary, "binary file"}, {s.links, "symlink"}, {s.broken, "unreadable file"},
	} {
		if skipped.n > 0 {
			fmt.Fprintf(&b, "# not searched: %s\n", render.Count(skipped.n, skipped.what))
		}
	}
	if len(s.large) > 0 {
		fmt.Fprintf(&b, "# not searched, over 8 MiB: %s\n", s.guard.Redact(listSome(s.large)))
	}
	if len(s.withheld) > 0 {
		fmt.Fprintf(&b, "# withheld because they may contain secrets: %s\n", s.guard.Redact(listSome(s.withheld)))
	}
	if s.long > 0 {
		fmt.Fprintf(&b, "# searched only the first 64 KiB of %s\n", render.Count(s.long, "long line"))
	}
	return b.String()
}

func listSome(names []string) string {
	const shown = 5
	text := clip(strings.Join(names[:min(len(names), shown)], "; "), 1000)
	if len(names) > shown {
		text += fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return text
}
