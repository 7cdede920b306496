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
)

//go:embed grep.md
var grepText string

const grepSchema = `{
	"type": "object",
	"properties": {
		"pattern": {"type": "string", "minLength": 1, "description": "regular expression (RE2), matched line by line"},
		"path": {"type": "string", "description": "file or folder to search; or output:N"},
		"glob": {"type": "string", "description": "only files that match, such as *.go or src/**/*.ts"},
		"ignore_case": {"type": "boolean"},
		"context": {"type": "integer", "minimum": 0, "maximum": 20, "description": "lines shown before and after each match"},
		"files_only": {"type": "boolean", "description": "list the files that match instead of the lines"},
		"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "most matching lines, or files; 100 if not given"}
	},
	"required": ["pattern"],
	"additionalProperties": false
}`

// What one search looks at and shows at most.
const (
	maxSearched     = 8 << 20  // bytes of a file
	maxSearchedLine = 64 << 10 // bytes of a line
	maxFound        = 24 << 10 // bytes of the answer, notes apart
	maxPattern      = 1000     // bytes
	maxProgram      = 2000     // instructions that the pattern is compiled to
)

// patience is how long a search goes on.
const patience = 20 * time.Second

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignore_case"`
	Context    int    `json:"context"`
	FilesOnly  bool   `json:"files_only"`
	Limit      int    `json:"limit"`
}

// Grep searches the tree's files, and the outputs of earlier calls. The guard
// says which are withheld (ruling G8), whether they match or not, so that the
// answer tells nothing of what they hold; nil withholds nothing.
func Grep(tree *workspace.Tree, guard *workspace.Guard) Tool {
	return grepFor(tree, guard, patience)
}

func grepFor(tree *workspace.Tree, guard *workspace.Guard, patience time.Duration) Tool {
	t := Tool{Looks: true, MaxText: maxFound + 16<<10}
	return define(t, "grep", grepText, grepSchema, func(ctx context.Context, in Input, args grepArgs) (Result, error) {
		if args.Limit == 0 {
			args.Limit = 100
		}
		m, err := args.compile()
		if err != nil {
			return Failure(err.Error()), nil
		}
		s := &search{tree: tree, guard: guard, args: args, matcher: m, until: time.Now().Add(patience)}
		fault, err := s.run(ctx, in)
		switch {
		case err != nil:
			return Result{}, err
		case fault != nil:
			return *fault, nil
		}
		return Result{Text: s.answer()}, nil
	})
}

// matcher finds a pattern in lines.
type matcher struct {
	*regexp.Regexp
	// apart says that a line has to be cut out before it is matched, because
	// the pattern asks for the beginning or end of the text.
	apart bool
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
	if err != nil {
		return matcher{}, unreadablePattern(err)
	}
	if program, err := syntax.Compile(parsed.Simplify()); err != nil || len(program.Inst) > maxProgram {
		return matcher{}, errors.New("the pattern is too costly: use fewer or smaller repetitions")
	}
	re, err := regexp.Compile(flags + a.Pattern)
	return matcher{re, anchored(parsed)}, err
}

// unreadablePattern says what RE2 does not take.
func unreadablePattern(err error) error {
	var fault *syntax.Error
	if !errors.As(err, &fault) {
		return fmt.Errorf("the pattern cannot be read: %w", err)
	}
	return fmt.Errorf("the pattern cannot be read: %s: %s. It is RE2: no lookaround, no backreferences; to find ( [ { . * + ? as they stand put \\ before them",
		fault.Code, clip(fault.Expr, 200))
}

// anchored reports whether an expression asks for the beginning or end of the
// text, rather than of a line.
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

// search is one call under way.
type search struct {
	tree    *workspace.Tree
	guard   *workspace.Guard
	args    grepArgs
	matcher matcher
	until   time.Time

	found    strings.Builder
	matches  int // lines, or files where only those are asked for
	files    int // that were searched
	stopped  string
	withheld []string
	large    []string
	binary   int
	links    int
	broken   int // files that could not be read
	long     int // lines of which only the beginning was searched
}

// run searches what was asked for; a fault is what was wrong with that.
func (s *search) run(ctx context.Context, in Input) (fault *Result, err error) {
	if n, ok := outputNumber(s.args.Path); ok {
		text, ok := output(in, s.guard, n)
		if !ok {
			return failure(Failure(fmt.Sprintf("there is no output:%d in this session", n)))
		}
		return nil, s.text(ctx, s.args.Path, []byte(text))
	}
	if s.args.Glob != "" {
		pattern, err := globPattern(s.tree, s.args.Glob)
		if err != nil {
			return failure(Failure(err.Error()))
		}
		s.args.Glob = pattern
	}
	dir, err := locateDir(s.tree, s.args.Path)
	if err != nil {
		return failure(unreadable(ctx, s.tree, s.args.Path, err))
	}
	return s.below(ctx, dir)
}

func failure(r Result) (*Result, error) { return &r, nil }

// below searches the listed files at and below a path.
func (s *search) below(ctx context.Context, dir string) (fault *Result, err error) {
	files, err := s.tree.Files(ctx)
	if err != nil {
		return nil, err
	}
	listed := dir == ""
	for _, f := range files {
		if _, ok := below(dir, f.Path); !ok && f.Path != dir {
			continue
		}
		listed = true
		if s.stopped == "" && s.wanted(f) {
			if err := s.file(ctx, f.Path); err != nil {
				return nil, err
			}
		}
	}
	if listed {
		return nil, nil
	}
	// A file that git ignores is searched where it is named.
	if _, _, err := s.tree.Read(dir); err != nil {
		r := unreadable(ctx, s.tree, dir, err)
		r.Text += ". If it is a folder, it is empty, or git ignores what it holds"
		return &r, nil
	}
	return nil, s.file(ctx, dir)
}

// wanted reports whether a listed file is to be searched, by what is known
// without opening it, and counts what is left out.
func (s *search) wanted(f workspace.File) bool {
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

// file searches one file. The error is the context's.
func (s *search) file(ctx context.Context, p string) error {
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
	return s.text(ctx, p, content)
}
