package tool

import (
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
		m, err := args.compile()
		if err != nil {
			return Failure(err.Error()), nil
		}
		s := &search{tree: tree, guard: guard, args: args, matcher: m, deadline: time.Now().Add(timeout)}
		if err := s.run(ctx, in); err != nil {
			return Result{}, err
		}
		return Result{Text: s.result()}, nil
	})
}

type matcher struct {
	*regexp.Regexp
	// wholeText means that the pattern matches the beginning or end of the
	// text, so that each line must be matched separately.
	wholeText bool
}

func (a grepArgs) compile() (matcher, error) {
	if len(a.Pattern) > maxPattern {
		return matcher{}, fmt.Errorf("a pattern of %d bytes is longer than %d", len(a.Pattern), maxPattern)
	}
	flags := "(?m)"
	if a.IgnoreCase {
		flags = "(?im)"
	}
	parsed, err := syntax.Parse(flags+a.Pattern, syntax.Perl)
	if fault := (*syntax.Error)(nil); errors.As(err, &fault) {
		return matcher{}, fmt.Errorf("the pattern is invalid: %s: %s. The syntax is RE2: no lookaround, no backreferences. Put \\ before a literal ( [ { . * + or ?",
			fault.Code, clip(fault.Expr, 200))
	}
	if err != nil {
		return matcher{}, fmt.Errorf("the pattern is invalid: %w", err)
	}
	if program, err := syntax.Compile(parsed.Simplify()); err != nil || len(program.Inst) > maxProgram {
		return matcher{}, errors.New("the pattern is too expensive: use fewer or smaller repetitions")
	}
	re, err := regexp.Compile(flags + a.Pattern)
	return matcher{re, anchored(parsed)}, err
}

// It is the beginning or end of the text, rather than of a line.
func anchored(e *syntax.Regexp) bool {
	if e.Op == syntax.OpBeginText || e.Op == syntax.OpEndText {
		return true
	}
	for _, sub := range e.Sub {
		if anchored(sub) {
			return true
		}
	}
	return false
}

type search struct {
	tree     *workspace.Tree
	guard    *secret.Guard
	args     grepArgs
	matcher  matcher
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
		if s.stopped == "" && s.shouldSearch(f) {
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

// It decides without opening the file, and counts the files that are skipped.
func (s *search) shouldSearch(f workspace.File) bool {
	name := f.Path
	if !strings.Contains(s.args.Glob, "/") {
		name = path.Base(name)
	}
	switch {
	case s.args.Glob != "" && !doublestar.MatchUnvalidated(s.args.Glob, name):
	case f.Kind == workspace.Symlink:
		s.links++
	case f.Kind == workspace.Other:
		s.broken++
	case f.Size > maxSearched:
		s.large = append(s.large, f.Path)
	default:
		return true
	}
	return false
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
