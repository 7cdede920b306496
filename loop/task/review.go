package task

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"hone"
	"hone/internal/artifact"
	"hone/model"
	"hone/tool"
	"hone/workspace/treepath"
)

// reviewOutput is where a reviewer writes its review.
const reviewOutput = artifactsFolder + "/review_output.toml"

// mostReview is how large a review can be, in bytes.
const mostReview = 256 << 10

// done is the record of a step that has nothing to say.
type done struct{}

// clearReview removes the review of an earlier loop or run, so that it cannot pass
// for this one's (ruling S4).
func clearReview(ctx context.Context, r *hone.Run) error {
	_, err := inTree(ctx, r, "clear review", nil, func(root *os.Root) (done, error) {
		return done{}, artifact.Remove(root, reviewOutput)
	})
	return err
}

// reviewed is what a review says.
type reviewed struct {
	// Counts says that there is a review of this loop. Where there is none, Why
	// says what is the matter.
	Counts  bool     `json:"counts"`
	Why     string   `json:"why,omitempty"`
	Summary string   `json:"summary,omitempty"`
	Pending []string `json:"pending,omitempty"`
	Blocker string   `json:"blocker,omitempty"`
}

// readReview reads what the reviewer left. Whatever is wrong with it, or the
// want of it, is no review (ruling S4).
func readReview(ctx context.Context, r *hone.Run) (reviewed, error) {
	return inTree(ctx, r, "read review", nil, func(root *os.Root) (reviewed, error) {
		text, err := artifact.Read(root, reviewOutput, mostReview)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return reviewed{Why: "none was written"}, nil
		case err != nil:
			return reviewed{Why: err.Error()}, nil
		}
		said, err := parseReview(text, r.Round())
		if err != nil {
			return reviewed{Why: err.Error()}, nil
		}
		return said, nil
	})
}

// parseReview reads a review of a loop. Its error is worded for whoever wrote
// it.
func parseReview(text []byte, loop int) (reviewed, error) {
	if len(text) > mostReview {
		return reviewed{}, fmt.Errorf("the review is longer than %d bytes", mostReview)
	}
	var doc map[string]any
	if err := toml.Unmarshal(text, &doc); err != nil {
		return reviewed{}, tomlFault(err)
	}
	said := reviewed{Counts: true}
	if n, ok := doc["loop"].(int64); !ok || n != int64(loop) {
		return reviewed{}, fmt.Errorf("loop must be %d, the number of this loop", loop)
	}
	for _, member := range []struct {
		name string
		into *string
	}{{"summary", &said.Summary}, {"blocker", &said.Blocker}} {
		value, there := doc[member.name]
		text, ok := value.(string)
		if there && !ok {
			return reviewed{}, fmt.Errorf("%s must be a string", member.name)
		}
		*member.into = strings.TrimSpace(text)
	}
	if said.Blocker != "" && nothing(said.Blocker) {
		return reviewed{}, fmt.Errorf(`blocker = %q says neither that something is in the way nor that nothing is; write blocker = "" where nothing is`, said.Blocker)
	}
	var err error
	said.Pending, err = pendingOf(doc["pending"])
	return said, err
}

func tomlFault(err error) error {
	var at *toml.DecodeError
	if errors.As(err, &at) {
		row, _ := at.Position()
		return fmt.Errorf("line %d is not TOML: %w", row, err)
	}
	return fmt.Errorf("it is not TOML: %w", err)
}

// pendingOf reads the items: tables with an item each, or plain strings.
func pendingOf(value any) ([]string, error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, errors.New("pending must be a list: one [[pending]] with an item for each")
	}
	var items []string
	for i, v := range list {
		if table, ok := v.(map[string]any); ok {
			v = table["item"]
		}
		item, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("pending item %d has no item = \"…\"", i+1)
		}
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items, nil
}

//go:embed write.md
var writeDescription string

// reviewWrite is the reviewer's only way to write: one file, which must be a
// review of this loop (ruling S6). It does not go through hone's door to the
// tree, as the file is the loop's own.
func reviewWrite(dir string, loop int) tool.Tool {
	return tool.Tool{
		Spec: model.Spec{
			Name:        toolWrite,
			Description: strings.TrimSpace(writeDescription),
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"always ` + reviewOutput + `"},` +
				`"content":{"type":"string","description":"the whole review, as TOML"}},` +
				`"required":["path","content"],"additionalProperties":false}`),
		},
		Run: func(_ context.Context, in tool.Input) (tool.Result, error) {
			path, content, fault := writeArgs(in.Args)
			if fault != "" {
				return tool.Failure(fault), nil
			}
			if !namesReview(dir, path) {
				return tool.Failure(fmt.Sprintf("path: a reviewer writes %s and no other file. Nothing was written.", reviewOutput)), nil
			}
			if _, err := parseReview([]byte(content), loop); err != nil {
				return tool.Failure(fmt.Sprintf("content: %v. Nothing was written; mend it and write it again.", err)), nil
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				return tool.Result{}, err
			}
			defer root.Close()
			if err := artifact.Write(root, reviewOutput, strings.NewReader(content)); err != nil {
				return tool.Result{}, err
			}
			return tool.Result{Text: fmt.Sprintf("Wrote %s (%d bytes)", reviewOutput, len(content))}, nil
		},
	}
}

// writeArgs reads a call's arguments; fault says what is wrong with them.
func writeArgs(args json.RawMessage) (path, content, fault string) {
	var a struct{ Path, Content *string }
	if err := json.Unmarshal(args, &a); err != nil || a.Path == nil || a.Content == nil {
		return "", "", `the arguments are {"path": "…", "content": "…"}, two strings. Nothing was written.`
	}
	return *a.Path, *a.Content, ""
}

// namesReview reports whether a path, as a model wrote it, is the review's.
func namesReview(dir, path string) bool {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsAbs(path) {
		path = filepath.ToSlash(rel)
	}
	cleaned, err := treepath.Clean(path)
	return err == nil && cleaned == reviewOutput
}
