// Package tool is what a model can do in a conversation: read, glob, grep,
// write, edit, bash. A [Tool] is data with one func; its description for the
// model lies in a .md file beside it, and its arguments are checked against
// their JSON Schema before it runs.
//
// Tools reach nothing but what they were built with: a [workspace.Tree] to
// read, an apply function to change it, a [sandbox.Runner] to run commands.
// They remember nothing: what a session has seen is in their recorded results,
// and comes back to them in [Input].
package tool

import (
	"context"
	"encoding/json"

	"hone/model"
	"hone/workspace"
)

// Tool is one thing that a model can ask for.
type Tool struct {
	model.Spec
	// Looks says that it changes nothing and runs nothing, so that neighbouring
	// calls of such tools run at the same time.
	Looks bool
	// Commands says that it runs commands, whose effects nobody knows before:
	// one that was cut off is not run again by itself.
	Commands bool
	// Repeats is how often the same call is answered in a session; 0 means 2
	// (ruling S11).
	Repeats int
	// MaxText is how many bytes of a result the model is sent; 0 means 16 KiB.
	MaxText int
	// Run does it.
	// Contract: Args fit the schema. What is wrong with a call is a Result that
	// Failed, worded for the model; an error means that nothing is to be
	// remembered, and stops the run. It may be called from many goroutines
	// where Looks is set.
	Run func(ctx context.Context, in Input) (Result, error)
}

// Input is a call, with what the session knows.
type Input struct {
	Args json.RawMessage
	// Seen tells which contents of a file the model was shown in this session,
	// by digest; nil means none.
	Seen func(path string) (digest string, ok bool)
	// Output is the whole output of an earlier call of this session, by the
	// call's number; nil means that there is none.
	Output func(call int) (text string, ok bool)
	// Was is what a file held before this very call changed it, where the call
	// was cut off after it had begun to and is run again; ok is false for a
	// file that it had not begun to change. Nil means that the call was not cut
	// off.
	Was func(path string) (content []byte, ok bool)
}

// Result is what came of a call.
type Result struct {
	// Text is for the model, whole; the engine cuts what is too long in the
	// middle and says how to get the rest.
	Text string `json:"text"`
	// Failed says that the call did not do what it was asked for.
	Failed bool `json:"failed,omitempty"`
	// Saw are the files whose contents the model knows by this result, by path,
	// with their digests.
	Saw map[string]string `json:"saw,omitempty"`
	// Exit is a command's exit status, nil for what is none.
	Exit *int `json:"exit,omitempty"`
}

// Apply changes the tree as the engine lets it; see hone.Run.Apply. seen is
// [Input.Seen].
type Apply func(ctx context.Context, ch workspace.Change, seen func(path string) (digest string, ok bool)) ([]workspace.Verdict, error)

// Failure is a result that tells the model what was wrong with its call.
func Failure(text string) Result { return Result{Text: "Error: " + text, Failed: true} }
