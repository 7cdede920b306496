package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"unicode/utf8"

	"hone/internal/reply"
	"hone/workspace"
	"hone/workspace/secret"
)

//go:embed write.md
var writeText string

const writeSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1},
		"content": {"type": "string"}
	},
	"required": ["path", "content"],
	"additionalProperties": false
}`

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// Write returns the tool that creates or overwrites a file. The apply function
// decides whether the change is allowed. The guard redacts names in errors; nil
// redacts nothing.
func Write(tree *workspace.Tree, guard *secret.Guard, apply Apply) Tool {
	return Define(Tool{}, "write", writeText, writeSchema, func(ctx context.Context, in Input, args writeArgs) (Result, error) {
		p, err := locate(tree, args.Path)
		if err != nil {
			return Result{}, readError(ctx, tree, guard, args.Path, err)
		}
		digest, known := in.seenDigest(p)
		if old, image, err := tree.Read(p); known && err == nil && image.Digest == digest && !utf8.Valid(old) {
			return Failure(p + " contains bytes that are not UTF-8, which write would lose; use edit, which keeps them"), nil
		}
		if !known && in.hasSeenPart(p) {
			return Failure(p + " was not written: you have seen only a part of it, and the rest would be lost. Change it with edit, or first read all of it in one call"), nil
		}
		old, err := originalContent(tree, in, p)
		if err != nil {
			old = nil
		}
		style := reply.StyleOf(old)
		style.CRLF = style.CRLF || old == nil && tree.EndsInCRLF(p)
		content := style.Apply([]byte(args.Content))
		if fault := reply.CheckContent(p, old, []byte(args.Content)); fault != nil { // they cannot be meant (ruling G15)
			return Failure(fmt.Sprintf("%s was not written: %v", p, fault)), nil
		}
		v, err := applyContent(ctx, apply, in, p, content)
		switch {
		case err != nil:
			return Result{}, err
		case v.Ruling == workspace.Drop:
			return Result{Text: p + " already has these contents; nothing was written", Shown: knownDigest(p, content)}, nil
		case v.Ruling != workspace.Allow:
			return refusal(v, in.seenDigest), nil
		}
		if v.Edited {
			return editedByUser(p), nil
		}
		return Result{Text: fmt.Sprintf("Wrote %s (%d bytes)", p, len(content)), Shown: knownDigest(p, content)}, nil
	})
}

// The model knows what it wrote.
func knownDigest(p string, content []byte) map[string]string {
	return map[string]string{p: workspace.Digest(content)}
}

func (in Input) seenDigest(p string) (digest string, ok bool) {
	if in.Seen == nil {
		return "", false
	}
	return in.Seen(p)
}

// partOf is what stands in Seen and Shown for a file of which the model knows only a part. No path ends in a slash.
func partOf(p string) string { return p + "/" }

func (in Input) hasSeenPart(p string) bool {
	_, ok := in.seenDigest(partOf(p))
	return ok
}

func applyContent(ctx context.Context, apply Apply, in Input, p string, content []byte) (workspace.Verdict, error) {
	ch := workspace.Change{Edits: []workspace.Edit{{Path: p, Content: content}}}
	verdicts, err := apply(ctx, ch, in.seenDigest)
	switch {
	case err != nil:
		return workspace.Verdict{}, err
	case len(verdicts) != 1:
		return workspace.Verdict{}, fmt.Errorf("apply: %d verdicts for one edit", len(verdicts))
	}
	return verdicts[0], nil
}

// The model has not seen the file as the user left it.
func editedByUser(p string) Result {
	return Result{Text: fmt.Sprintf("%s was changed, but the user edited your change before approving it. Keep what the user wrote; read the file before you change it again.", p)}
}

// toModel words the reason of a verdict for the model, which is not the only one that
// reads it.
var toModel = strings.NewReplacer("the model", "you", "a model", "you")

func refusal(v workspace.Verdict, seen func(string) (string, bool)) Result {
	text := fmt.Sprintf("%s was not changed: %s", v.Path, toModel.Replace(v.Reason))
	digest, known := seen(v.Path)
	switch {
	case v.Ruling == workspace.Deny && !v.After.Exists(): // the path is refused, not the contents
		text += ". This rule is final; work without this change"
	case v.Before.Exists() && (!known || digest != v.Before.Digest):
		text += ". Read it, then try again"
	default:
		text += ". Do not try the same change again"
	}
	return refused(text)
}
