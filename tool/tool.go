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
	"context"
	"encoding/json"
	"fmt"

	"hone/model"
	"hone/workspace"
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
