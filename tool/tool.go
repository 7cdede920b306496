// Package tool provides the tools that a model can call in a conversation:
// [Read], [Glob], [Grep], [Write], [Edit] and [Bash]. A [Tool] is data and one
// function. Its description for the model is in a .md file of its name, and its
// arguments are checked against a JSON Schema before it runs.
//
// A tool can access only what it was built with: a [workspace.Tree] to read, an
// [Apply] function to change files, a [sandbox.Runner] to run commands. Tools
// keep no state: their recorded results tell which files a session has seen,
// and the engine passes that back in [Input].
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"hone/model"
	"hone/workspace"
	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// Tool is a tool that a model can call.
type Tool struct {
	model.Spec
	// ReadOnly means that the tool changes nothing and runs nothing, so that
	// consecutive calls of such tools may run concurrently.
	ReadOnly bool
	// RunsCommands means that the tool runs commands, which may have any effect: an
	// interrupted call is not repeated automatically.
	RunsCommands bool
	// MaxRepeats limits how often an identical call is answered in a session; 0
	// means 2 (ruling S11).
	MaxRepeats int
	// MaxText limits the text of a result that the model receives, in bytes; 0
	// means 16 KiB.
	MaxText int
	// Run executes a call. If the call is wrong, it returns a failed Result
	// that explains this to the model. An error stops the run, and nothing is
	// recorded. Run must be safe for concurrent use if ReadOnly is set.
	Run func(ctx context.Context, in Input) (Result, error)
}

// Input is a call with the state of its session.
type Input struct {
	Args json.RawMessage
	// Seen returns the digest of a file's contents that the model has seen in
	// this session; nil means that it has seen none.
	Seen func(path string) (digest string, ok bool)
	// Told reports whether one message of this session to the model names a file and
	// contains each line of a text, such as a finding or a result of grep; nil means that
	// none does.
	Told func(path, text string) bool
	// Output returns the complete output of an earlier call in this session, by
	// the call's number; nil means that there is none.
	Output func(call int) (text string, ok bool)
	// Original is set if this call was interrupted and now runs again. It
	// returns the contents of a file before the call changed it; ok is false
	// for a file that the call had not started to change.
	Original func(path string) (content []byte, ok bool)
}

// Result is the result of a call.
type Result struct {
	// Text is the complete text for the model. The engine omits the middle of a
	// text that is too long, and tells the model how to get the rest.
	Text string `json:"text"`
	// Head is the length in bytes of the start of Text that says what the rest means. Of a
	// longer text the model receives only that, and can read the rest as an output. 0 means
	// that no part says so.
	Head int `json:"head,omitempty"`
	// Failed means that the call did not do what was requested.
	Failed bool `json:"failed,omitempty"`
	// Refused means that it failed because the model may not do it.
	Refused bool `json:"refused,omitempty"`
	// Ends means that the call asked to end the session, and may. It does if no call of the
	// reply failed, and the reply has a text, which is then the answer.
	Ends bool `json:"ends,omitempty"`
	// Shown contains the digests of the files whose contents the model knows from
	// this result, by path; with a slash after it, if it knows only a part.
	Shown map[string]string `json:"saw,omitempty"`
	// Exit is a command's exit status; nil if no command ran.
	Exit *int `json:"exit,omitempty"`
}

// Parts returns the head, which is empty if no part of the text is one, and the rest.
func (r Result) Parts() (head, rest string) {
	at := min(r.Head, len(r.Text)) // an export may have replaced the text
	return r.Text[:at], r.Text[at:]
}

// Add adds to what the model receives.
func (r *Result) Add(text string) {
	head, rest := r.Parts()
	if head == "" {
		r.Text += text
		return
	}
	r.Text, r.Head = head+text+rest, len(head+text)
}

// Apply changes files, if the engine allows it; see hone.Run.Apply. The seen
// function is [Input.Seen].
type Apply func(ctx context.Context, ch workspace.Change, seen func(path string) (digest string, ok bool)) ([]workspace.Verdict, error)

// Failure returns a failed result with an explanation for the model. Its Text is
// the explanation after the prefix "Error: ", so text must not start with it.
func Failure(text string) Result { return Result{Text: "Error: " + text, Failed: true} }

// refused is Failure for what the model may not do.
func refused(text string) Result { return Result{Text: "Error: " + text, Failed: true, Refused: true} }

// CallError is an error in a call that the model can correct. A function of [Define]
// that returns it does not stop the run: the model receives [Failure] of the text.
type CallError struct {
	Text    string
	Refused bool // as in [Result]
}

func (e *CallError) Error() string { return e.Text }

func wrong(format string, args ...any) error { return &CallError{Text: fmt.Sprintf(format, args...)} }

const bom = "\uFEFF"

// A NUL, or more than 30 % of bytes that are not UTF-8, is no text. Text in older encodings is below that.
func isBinary(content []byte) bool {
	if bytes.IndexByte(content, 0) >= 0 {
		return true
	}
	if utf8.Valid(content) {
		return false
	}
	wrong := 0
	for rest := content; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			wrong++
		}
		rest = rest[size:]
	}
	return wrong*10 > len(content)*3
}

// A last line without a newline counts.
func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

func trimLineEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// It is the last position up to n that is not inside a character.
func boundary(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for back := 0; back < utf8.UTFMax && n-back > 0; back++ {
		if utf8.RuneStart(text[n-back]) {
			return n - back
		}
	}
	return n
}

// JSON cannot encode other bytes.
func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func clip(text string, limit int) string {
	if len(text) <= limit {
		return validUTF8(text)
	}
	return validUTF8(text[:boundary(text, limit)]) + "…"
}

// maxPath limits a path or a pattern, in bytes.
const maxPath = 4096

// It refuses every path outside the tree, even if nothing exists there (ruling G5).
func locate(tree *workspace.Tree, p string) (string, error) {
	rel, err := relPath(tree, p)
	if err != nil {
		return "", err
	}
	return cleanPath(tree, rel)
}

// The tree may have closed the path, or another one is meant.
func cleanPath(tree *workspace.Tree, rel string) (string, error) {
	p, err := treepath.Clean(rel)
	if err == nil {
		err = tree.Refusal(p)
	}
	if err == nil {
		err = tree.CheckNew(rel)
	}
	return p, err
}

// It returns "" for the tree's root.
func locateDir(tree *workspace.Tree, p string) (string, error) {
	if p == "" {
		return "", nil
	}
	rel, err := relPath(tree, p)
	if err != nil {
		return "", err
	}
	for strings.HasSuffix(rel, "/") || strings.HasSuffix(rel, "/.") {
		rel = strings.TrimSuffix(strings.TrimSuffix(rel, "."), "/")
	}
	if rel == "" || path.Clean(rel) == "." {
		return "", nil
	}
	return cleanPath(tree, rel)
}

// It keeps a final slash.
func relPath(tree *workspace.Tree, p string) (string, error) {
	p = filepath.ToSlash(p)
	refuse := func(reason string) error { return &treepath.RefusedError{Path: clip(p, 200), Reason: reason} }
	switch {
	case len(p) > maxPath:
		return "", refuse(fmt.Sprintf("a path of %d bytes is longer than %d", len(p), maxPath))
	case slices.Contains(strings.Split(p, "/"), ".."):
		return "", refuse(`".." is not allowed, because files outside the working directory cannot be used; use a path relative to it`)
	case !filepath.IsAbs(filepath.FromSlash(p)):
		return p, nil
	}
	rel, err := filepath.Rel(tree.Dir(), filepath.FromSlash(p))
	rel = filepath.ToSlash(rel)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", refuse("it is outside the working directory, and files there cannot be used; use a path relative to it")
	}
	if strings.HasSuffix(p, "/") {
		rel += "/"
	}
	return rel, nil
}

// It is a [*CallError], or that of the context.
func readError(ctx context.Context, tree *workspace.Tree, guard *secret.Guard, p string, err error) error {
	var refused *treepath.RefusedError
	var large *workspace.TooLargeError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused):
		return &CallError{Text: clip(refused.Error(), 400), Refused: true}
	case errors.As(err, &large):
		return wrong("%s is too large: it has %d bytes, the limit is %d", p, large.Size, large.Max)
	case errors.Is(err, fs.ErrNotExist):
		return wrong("file not found: %s%s", p, guard.Redact(sameNames(ctx, tree, p)))
	}
	return wrong("%v", err)
}

// Up to three files have the path's name in another directory.
func sameNames(ctx context.Context, tree *workspace.Tree, p string) string {
	files, err := tree.Files(ctx)
	if err != nil {
		return ""
	}
	var found []string
	for _, f := range files {
		if treepath.Fold(path.Base(f.Path)) == treepath.Fold(path.Base(p)) && len(found) < 3 {
			found = append(found, f.Path)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "; similar files: " + strings.Join(found, ", ")
}

// File is a file that a model named.
type File struct {
	Path    string // clean, relative to the tree
	Content []byte
	Digest  string // of the contents; a result that shows them reports it in Shown
}

// ReadFile reads a file that a model named, by the rules of the tool read: the path
// is relative to the tree or absolute in it, symlinks are not followed, and the guard
// decides what is withheld (ruling G8). A nil guard withholds nothing.
//
// The error is a [*CallError] if the model may not read the file, or if it cannot be
// read; otherwise it is the context's.
func ReadFile(ctx context.Context, tree *workspace.Tree, guard *secret.Guard, name string) (File, error) {
	p, err := locate(tree, name)
	if err != nil {
		return File{}, readError(ctx, tree, guard, name, err)
	}
	content, image, err := tree.Read(p)
	if err != nil {
		return File{}, readError(ctx, tree, guard, p, err)
	}
	if reason, ok := guard.Withheld(p, content); ok {
		return File{}, wrong("%s is withheld because it may contain secrets: %s. Work without its contents", p, reason)
	}
	return File{Path: p, Content: content, Digest: image.Digest}, nil
}
