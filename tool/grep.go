package tool

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/secret"
)

//go:embed grep.md
var grepText string

const grepSchema = `{
	"type": "object",
	"properties": {
		"pattern": {"type": "string", "minLength": 1},
		"path": {"type": "string", "description": "directory, file, or output:N"},
		"glob": {"type": "string", "description": "search only these files: *.go, src/**/*.ts"},
		"ignore_case": {"type": "boolean"},
		"context": {"type": "integer", "minimum": 0, "maximum": 20},
		"files_only": {"type": "boolean"},
		"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "default 100"}
	},
	"required": ["pattern"],
	"additionalProperties": false
}`

// Limits of one search.
const (
	maxSearched     = 8 << 20  // bytes of a file
	maxSearchedLine = 64 << 10 // bytes of a line
	maxFound        = 24 << 10 // bytes of the result without notes
	maxPattern      = 1000     // bytes
	maxProgram      = 2000     // instructions of the compiled pattern

	searchTimeout = 20 * time.Second
)

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignore_case"`
	Context    int    `json:"context"`
	FilesOnly  bool   `json:"files_only"`
	Limit      int    `json:"limit"`
}

// Grep returns the tool that searches the tree's files and the outputs of
// earlier calls. It names the files that the guard withholds (ruling G8) even
// if they do not match, so that the result reveals nothing about their
// contents. A nil guard withholds none.
func Grep(tree *workspace.Tree, guard *secret.Guard) Tool {
	return newGrep(tree, guard, searchTimeout)
}

func newGrep(tree *workspace.Tree, guard *secret.Guard, timeout time.Duration) Tool {
	t := Tool{ReadOnly: true, MaxText: maxFound + 16<<10}
	return Define(t, "grep", grepText, grepSchema, func(ctx context.Context, in Input, args grepArgs) (Result, error) {
		if args.Limit == 0 {
			args.Limit = 100
		}
		re, err := args.compile()
		if err != nil {
			return Failure(err.Error()), nil
		}
		s := &search{tree: tree, guard: guard, args: args, pattern: re, deadline: time.Now().Add(timeout)}
		if err := s.run(ctx, in); err != nil {
			return Result{}, err
		}
		return Result{Text: s.result()}, nil
	})
}

func (a grepArgs) compile() (*regexp.Regexp, error) {
	if len(a.Pattern) > maxPattern {
		return nil, fmt.Errorf("a pattern of %d bytes is longer than %d", len(a.Pattern), maxPattern)
	}
	flags := "(?m)"
	if a.IgnoreCase {
		flags = "(?im)"
	}
	parsed, err := syntax.Parse(flags+a.Pattern, syntax.Perl)
	if fault := (*syntax.Error)(nil); errors.As(err, &fault) {
		return nil, fmt.Errorf("the pattern is invalid: %s: %s. The syntax is RE2: no lookaround, no backreferences. Put \\ before a literal ( [ { . * + or ?",
			fault.Code, clip(fault.Expr, 200))
	}
	if err != nil {
		return nil, fmt.Errorf("the pattern is invalid: %w", err)
	}
	if program, err := syntax.Compile(parsed.Simplify()); err != nil || len(program.Inst) > maxProgram {
		return nil, errors.New("the pattern is too expensive: use fewer or smaller repetitions")
	}
	return regexp.Compile(flags + a.Pattern)
}

type search struct {
	tree     *workspace.Tree
	guard    *secret.Guard
	args     grepArgs
	pattern  *regexp.Regexp
	deadline time.Time

	found    strings.Builder
	matches  int // lines, or files with files_only
	files    int // searched files
	stopped  string
	withheld []string
	large    []string
	binary   int
	links    int
	broken   int // unreadable files
	long     int // lines of which only the beginning was searched
}

func (s *search) run(ctx context.Context, in Input) error {
	if n, ok := outputNumber(s.args.Path); ok {
		text, err := redactedOutput(in, s.guard, n)
		if err != nil {
			return err
		}
		return s.searchText(ctx, s.args.Path, []byte(text))
	}
	if s.args.Glob != "" {
		pattern, err := globPattern(s.tree, s.args.Glob)
		if err != nil {
			return err
		}
		s.args.Glob = pattern
	}
	dir, err := locateDir(s.tree, s.args.Path)
	if err != nil {
		return readError(ctx, s.tree, s.guard, s.args.Path, err)
	}
	return s.searchDir(ctx, dir)
}

func (s *search) searchDir(ctx context.Context, dir string) error {
	files, err := s.tree.Files(ctx)
	if err != nil {
		return err
	}
	listed := dir == ""
	for _, f := range files {
		if _, ok := relBelow(dir, f.Path); !ok && f.Path != dir {
			continue
		}
		listed = true
		name := f.Path
		if !strings.Contains(s.args.Glob, "/") {
			name = path.Base(name)
		}
		switch {
		case s.stopped != "", s.args.Glob != "" && !doublestar.MatchUnvalidated(s.args.Glob, name):
		case f.Kind == workspace.Symlink:
			s.links++
		case f.Kind == workspace.Other:
			s.broken++
		case f.Size > maxSearched:
			s.large = append(s.large, f.Path)
		default:
			if err := s.searchFile(ctx, f.Path); err != nil {
				return err
			}
		}
	}
	if listed {
		return nil
	}
	// A file that git ignores is searched only if the path names it.
	if _, _, err := s.tree.Read(dir); err != nil {
		err := readError(ctx, s.tree, s.guard, dir, err)
		if fault, ok := errors.AsType[*CallError](err); ok {
			fault.Text += ". If it is a directory, it is empty or git ignores its files"
		}
		return err
	}
	return s.searchFile(ctx, dir)
}

// The error is the context's.
func (s *search) searchFile(ctx context.Context, p string) error {
	if reason, ok := s.guard.WithheldName(p); ok {
		s.withheld = append(s.withheld, p+": "+reason)
		return nil
	}
	content, _, err := s.tree.Read(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		s.broken++
		return nil
	case len(content) > maxSearched:
		s.large = append(s.large, p)
		return nil
	}
	if reason, ok := s.guard.Withheld(p, content); ok {
		s.withheld = append(s.withheld, p+": "+reason)
		return nil
	}
	if isBinary(content) {
		s.binary++
		return nil
	}
	return s.searchText(ctx, p, content)
}

// The error is the context's.
func (s *search) searchText(ctx context.Context, name string, content []byte) error {
	s.files++
	name = validUTF8(name)
	hits, err := s.findHits(ctx, bytes.TrimPrefix(content, []byte(bom)))
	switch {
	case err != nil || len(hits) == 0:
		return err
	case s.args.FilesOnly:
		s.add(name + "\n")
	default:
		s.addHits(name, bytes.TrimPrefix(content, []byte(bom)), hits)
	}
	return nil
}

type hit struct {
	number int // of the line, from 1
	from   int // start of the match in the line
}

// It finds one more than the limit, if there are more.
func (s *search) findHits(ctx context.Context, content []byte) (hits []hit, err error) {
	number := 0
	for line := range bytes.Lines(content) {
		if number%256 == 0 && time.Now().After(s.deadline) {
			s.stopped = "the search timed out; narrow it with path or glob, or simplify the pattern"
			return hits, nil
		}
		if number%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		number++
		if line = trimLineEnd(line); len(line) > maxSearchedLine {
			line = line[:maxSearchedLine]
			s.long++
		}
		found := s.pattern.FindIndex(line)
		if found == nil {
			continue
		}
		hits = append(hits, hit{number, found[0]})
		if s.args.FilesOnly || s.matches+len(hits) > s.args.Limit {
			break
		}
	}
	return hits, nil
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
	lines := bytes.Split(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
	shown := 0 // the last line that is
	for i, h := range hits {
		from, to := max(shown+1, h.number-s.args.Context), min(len(lines), h.number+s.args.Context)
		if i+1 < len(hits) {
			to = min(to, hits[i+1].number-1)
		}
		var b strings.Builder
		if s.args.Context > 0 && s.found.Len() > 0 && (shown == 0 || from > shown+1) {
			b.WriteString("--\n")
		}
		for number := from; number <= to; number++ {
			if shown == 0 && number == from {
				b.WriteString(name + ":")
			}
			if line := trimLineEnd(lines[number-1]); number == h.number {
				fmt.Fprintf(&b, "%d: %s\n", number, excerpt(line, h.from))
			} else {
				fmt.Fprintf(&b, "%d- %s\n", number, excerpt(line, 0))
			}
		}
		if shown = to; !s.add(b.String()) {
			return
		}
	}
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
