package task

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"hone"
	"hone/history"
	"hone/internal/artifact"
	"hone/journal"
	"hone/model"
	"hone/tool"
	"hone/workspace/treepath"
)

// reviewOutput is where a reviewer writes its review.
const reviewOutput = artifactsFolder + "/review_output.toml"

// maxReview limits the size of a review, in bytes.
const maxReview = 256 << 10

// stepClearReview removes the review of an earlier loop.
const stepClearReview = "clear review"

type reviewed struct {
	// Counts is true if there is a valid review of this loop. If not, Why is the
	// reason.
	Counts  bool     `json:"counts"`
	Why     string   `json:"why,omitempty"`
	Summary string   `json:"summary,omitempty"`
	Pending []string `json:"pending,omitempty"`
	Blocker string   `json:"blocker,omitempty"`
	history.Report
}

// What the reviewer wrote counts, not the file, which is the user's copy. A missing or invalid one is none (ruling S4).
func readReview(ctx context.Context, r *hone.Run) (reviewed, error) {
	return hone.Step(ctx, r, "read review", nil, func(context.Context) (reviewed, error) {
		cleared, _ := r.Taken(stepClearReview)
		text, ok := writtenReview(r, cleared)
		if !ok {
			return reviewed{Why: "none was written"}, nil
		}
		said, err := parseReview([]byte(text), r.Round())
		if err != nil {
			return reviewed{Why: err.Error()}, nil
		}
		if said.Summary != "" {
			said.Said = "the reviewer says: " + said.Summary
		}
		return said, nil
	})
}

// The error is for the model that wrote the review.
func parseReview(text []byte, loop int) (reviewed, error) {
	if len(text) > maxReview {
		return reviewed{}, fmt.Errorf("the review is longer than %d bytes", maxReview)
	}
	var doc struct {
		Loop             int
		Summary, Blocker string
		Pending          []any
	}
	if err := toml.Unmarshal(text, &doc); err != nil {
		line, problem := tomlFault(err)
		return reviewed{}, fmt.Errorf("line %d is not TOML of this form: %s", line, problem)
	}
	said := reviewed{Counts: true, Summary: strings.TrimSpace(doc.Summary), Blocker: strings.TrimSpace(doc.Blocker)}
	if doc.Loop != loop {
		return reviewed{}, fmt.Errorf("loop must be %d, the number of this loop", loop)
	}
	if said.Blocker != "" && meansNone(said.Blocker) {
		return reviewed{}, fmt.Errorf(`blocker = %q does not say what is in the way; write blocker = "" if nothing is`, said.Blocker)
	}
	for i, v := range doc.Pending { // tables with an item, or plain strings
		if table, ok := v.(map[string]any); ok {
			v = table["item"]
		}
		item, ok := v.(string)
		if !ok {
			return reviewed{}, fmt.Errorf("pending item %d has no item = \"…\"", i+1)
		}
		if item = strings.TrimSpace(item); item != "" {
			said.Pending = append(said.Pending, item)
		}
	}
	return said, nil
}

//go:embed write.md
var writeDescription string

// It accepts one path, and only a valid review of this loop (ruling S6). It bypasses Run.Apply, because the file is the loop's
// own.
func reviewWrite(dir string, loop int) tool.Tool {
	return tool.Tool{
		Spec: model.Spec{
			Name:        toolWrite,
			Description: strings.TrimSpace(writeDescription),
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"always ` + reviewOutput + `"},` +
				`"content":{"type":"string","description":"the complete review, as TOML"}},` +
				`"required":["path","content"],"additionalProperties":false}`),
		},
		Run: func(_ context.Context, in tool.Input) (tool.Result, error) {
			path, content, fault := writeArgs(in.Args)
			if fault != "" {
				return tool.Failure(fault), nil
			}
			if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsAbs(path) {
				path = filepath.ToSlash(rel)
			}
			if cleaned, err := treepath.Clean(path); err != nil || cleaned != reviewOutput {
				return tool.Failure(fmt.Sprintf("path: a reviewer can write only %s. Nothing was written.", reviewOutput)), nil
			}
			if _, err := parseReview([]byte(content), loop); err != nil {
				return tool.Failure(fmt.Sprintf("content: %v. Nothing was written; fix it and write it again.", err)), nil
			}
			if err := artifact.Write(dir, reviewOutput, strings.NewReader(content)); err != nil {
				return tool.Result{}, err
			}
			return tool.Result{Text: fmt.Sprintf("Wrote %s (%d bytes). Now end with one line that says what you wrote.", reviewOutput, len(content))}, nil
		},
	}
}

// The reviewer is reminded once. Any text ends a review whose file is written.
func reviewProblem(r *hone.Run) func(text string) string {
	cleared, _ := r.Taken(stepClearReview)
	reminded := false // by this function alone: a resumed session calls it for each of its replies again
	return func(text string) string {
		if _, written := writtenReview(r, cleared); reminded || written {
			return ""
		}
		reminded = true
		return "Your review is missing. Write it to " + reviewOutput + " with the `write` tool now, in the form described above, then end."
	}
}

// The reviewer may have written several in this loop: the last one counts.
func writtenReview(r *hone.Run, cleared journal.Identity) (text string, ok bool) {
	get := r.Journal.Home().Get
	for e := range history.Of[history.ToolResult](r.Past().Since(cleared)) {
		if turn := r.Turn(); turn > 0 && e.Step.Turn > turn {
			break // a resumed session knows it before the model did
		}
		begin, _ := r.Past().Begin(*e.Step)
		call, _ := begin.Payload.(history.ToolCall)
		got, err := history.ReadResult[tool.Result](e.Event, get)
		if call.Tool != toolWrite || err != nil || got.Failed {
			continue
		}
		if args, err := call.Arguments(get); err == nil {
			_, text, _ = writeArgs(json.RawMessage(args))
			ok = true
		}
	}
	return text, ok
}

// fault tells the model what is wrong with the arguments.
func writeArgs(args json.RawMessage) (path, content, fault string) {
	var a struct{ Path, Content *string }
	if err := json.Unmarshal(args, &a); err != nil || a.Path == nil || a.Content == nil {
		return "", "", `the arguments must be {"path": "…", "content": "…"}, two strings. Nothing was written.`
	}
	return *a.Path, *a.Content, ""
}
