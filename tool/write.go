package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"unicode/utf8"

	"hone/workspace"
)

//go:embed write.md
var writeText string

const writeSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1, "description": "file, relative to the working directory"},
		"content": {"type": "string", "description": "the whole file"}
	},
	"required": ["path", "content"],
	"additionalProperties": false
}`

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// Write makes a file or overwrites one. Whether it may, apply decides; the
// tree says where the root is, and what stands in the way of overwriting.
func Write(tree *workspace.Tree, apply Apply) Tool {
	return define(Tool{}, "write", writeText, writeSchema, func(ctx context.Context, in Input, args writeArgs) (Result, error) {
		p, err := locate(tree, args.Path)
		if err != nil {
			return unreadable(ctx, tree, args.Path, err), nil
		}
		if loses(tree, p, in.seen) {
			return Failure(p + " holds bytes that are not UTF-8, which this tool would lose; change it with edit, which keeps them"), nil
		}
		content := []byte(args.Content)
		v, err := change(ctx, apply, in, p, content)
		switch {
		case err != nil:
			return Result{}, err
		case v.Ruling == workspace.Drop:
			return Result{Text: p + " has these contents already; nothing was written", Saw: saw(p, content)}, nil
		case v.Ruling != workspace.Allow:
			return refused(v, in.seen), nil
		}
		return Result{Text: fmt.Sprintf("Wrote %s (%d bytes)", p, len(content)), Saw: saw(p, content)}, nil
	})
}

// loses reports whether a file that the model was shown holds bytes that it
// could not be shown, and so cannot write back.
func loses(tree *workspace.Tree, p string, seen func(string) (string, bool)) bool {
	digest, ok := seen(p)
	if !ok {
		return false
	}
	content, image, err := tree.Read(p)
	return err == nil && image.Digest == digest && !utf8.Valid(content)
}

// saw is what the model knows of a file that it wrote.
func saw(p string, content []byte) map[string]string {
	return map[string]string{p: workspace.Digest(content)}
}

// seen is Seen for a session that may have none.
func (in Input) seen(p string) (digest string, ok bool) {
	if in.Seen == nil {
		return "", false
	}
	return in.Seen(p)
}

// change has one file changed, and returns what became of that.
func change(ctx context.Context, apply Apply, in Input, p string, content []byte) (workspace.Verdict, error) {
	ch := workspace.Change{Edits: []workspace.Edit{{Path: p, Content: content}}}
	verdicts, err := apply(ctx, ch, in.seen)
	switch {
	case err != nil:
		return workspace.Verdict{}, err
	case len(verdicts) != 1:
		return workspace.Verdict{}, errors.New("apply: one edit, and not one verdict")
	}
	return verdicts[0], nil
}

// refused words for the model why its change was not made.
func refused(v workspace.Verdict, seen func(string) (string, bool)) Result {
	text := fmt.Sprintf("%s was not changed: %s", v.Path, v.Reason)
	digest, known := seen(v.Path)
	switch {
	case v.Ruling == workspace.Deny:
		text += ". This rule stands; work without changing it"
	case v.Before.Exists() && (!known || digest != v.Before.Digest):
		text += ". Read it, then try again"
	default:
		text += ". Do not try the same again"
	}
	return Failure(text)
}
