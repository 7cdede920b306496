package tool

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/secret"
)

//go:embed read.md
var readText string

const readSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1},
		"offset": {"type": "integer", "minimum": 1, "maximum": 1000000000, "description": "first line to show"},
		"limit": {"type": "integer", "minimum": 1, "maximum": 1000000000, "description": "number of lines, at most 2000 and 32 KiB; default 200 in a larger file"},
		"with_line_numbers": {"type": "boolean", "description": "default true"}
	},
	"required": ["path"],
	"additionalProperties": false
}`

// Limits of one call of read.
const (
	maxReadLines = 2000
	maxReadBytes = 32 << 10
	readLines    = 200  // of a file that exceeds a page, unless a call asks for more
	maxReadLine  = 2000 // bytes of one line
)

// Read returns the tool that shows files of the tree and the outputs of earlier
// calls. The guard decides what is withheld (ruling G8); a nil guard withholds
// nothing.
func Read(tree *workspace.Tree, guard *secret.Guard) Tool {
	// The tool limits its results itself and tells how to continue, so the
	// engine must not shorten them.
	t := Tool{ReadOnly: true, MaxRepeats: 6, MaxText: maxReadBytes + 16<<10}
	return Define(t, "read", readText, readSchema, func(ctx context.Context, in Input, args readArgs) (Result, error) {
		if n, ok := outputNumber(args.Path); ok {
			text, err := redactedOutput(in, guard, n)
			if err != nil {
				return Result{}, err
			}
			shown, _ := args.page(args.Path, []byte(text))
			return Result{Text: shown}, nil
		}
		f, err := ReadFile(ctx, tree, guard, args.Path)
		if err != nil {
			return Result{}, err
		}
		if isBinary(f.Content) {
			return Failure(fmt.Sprintf("%s is binary (%d bytes) and cannot be shown", f.Path, len(f.Content))), nil
		}
		text, shown := args.page(f.Path, f.Content)
		r := Result{Text: text}
		switch {
		case shown == whole || len(f.Content) == 0:
			r.Shown = map[string]string{f.Path: f.Digest}
		case shown == part:
			r.Shown = map[string]string{partOf(f.Path): f.Digest}
		}
		return r, nil
	})
}

type readArgs struct {
	Path    string `json:"path"`
	Offset  int    `json:"offset"`
	Limit   int    `json:"limit"`
	Numbers *bool  `json:"with_line_numbers"`
}

func outputNumber(p string) (n int, ok bool) {
	digits, found := strings.CutPrefix(p, "output:")
	n, err := strconv.Atoi(digits)
	return n, found && err == nil
}

// Secrets are removed before the output is split, because a page could contain only a part of one.
func redactedOutput(in Input, guard *secret.Guard, n int) (string, error) {
	if in.Output != nil {
		if text, ok := in.Output(n); ok {
			return guard.Redact(text), nil
		}
	}
	return "", wrong("there is no output:%d in this session; that of a call exists once you have seen its result", n)
}

// extent is how much of a file a page shows.
type extent int

const (
	nothing extent = iota
	part
	whole
)

func (a readArgs) page(name string, content []byte) (text string, shown extent) {
	a.Offset = max(a.Offset, 1)
	rest := bytes.TrimPrefix(content, []byte(bom))
	if a.Limit == 0 && len(rest) > maxReadBytes {
		a.Limit = readLines // what a session reads is sent again in each of its requests
	}
	a.Limit = min(cmp.Or(a.Limit, maxReadLines), maxReadLines)
	total := countLines(rest)
	for i := 1; i < a.Offset && len(rest) > 0; i++ {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	head := fmt.Sprintf("# path: %s\n", name)
	switch {
	case total == 0:
		return head + "# lines: none (empty)\n", nothing
	case a.Offset > total:
		return fmt.Sprintf("%s# lines: none; the last line is %d\n", head, total), nothing
	}
	return a.lines(head+fileNotes(content), rest, total, content[len(content)-1] == '\n')
}

// A page does not show these properties.
func fileNotes(content []byte) string {
	var b strings.Builder
	if bytes.HasPrefix(content, []byte(bom)) {
		b.WriteString("# starts with a byte order mark\n")
	}
	switch crlf, all := bytes.Count(content, []byte("\r\n")), bytes.Count(content, []byte("\n")); {
	case crlf == 0:
	case crlf == all:
		b.WriteString("# lines end in CRLF\n")
	default:
		fmt.Fprintf(&b, "# %d of %d lines end in CRLF\n", crlf, all)
	}
	if !utf8.Valid(content) {
		b.WriteString("# not UTF-8: invalid bytes are shown as \uFFFD\n")
	}
	return b.String()
}

// rest starts with the line at offset.
func (a readArgs) lines(head string, rest []byte, total int, ended bool) (text string, shown extent) {
	var b strings.Builder
	last := a.Offset - 1
	if shown = whole; last > 0 {
		shown = part
	}
	for len(rest) > 0 && last-a.Offset+1 < a.Limit {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if len(trimLineEnd(line)) > maxReadLine {
			shown = part
		}
		text := a.formatLine(last+1, trimLineEnd(line))
		if b.Len() > 0 && b.Len()+len(text) > maxReadBytes {
			break
		}
		b.WriteString(text)
		last, rest = last+1, after
	}
	switch {
	case last < total:
		shown = part
		fmt.Fprintf(&b, "# %s; continue with offset=%d\n", render.Count(total-last, "more line"), last+1)
	case !ended:
		b.WriteString("# no newline at the end\n")
	}
	return fmt.Sprintf("%s# lines: %d-%d of %d\n%s", head, a.Offset, last, total, b.String()), shown
}

func (a readArgs) formatLine(number int, line []byte) string {
	text := string(line)
	if len(text) > maxReadLine {
		cut := boundary(text, maxReadLine)
		text = fmt.Sprintf("%s […%d more bytes; grep shows parts of long lines]", text[:cut], len(text)-cut)
	}
	if a.Numbers != nil && !*a.Numbers {
		return validUTF8(text) + "\n"
	}
	return fmt.Sprintf("%04d: %s\n", number, validUTF8(text))
}
