package tool

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"hone/workspace"
)

//go:embed edit.md
var editText string

const editSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1, "description": "file, relative to the working directory"},
		"edits": {
			"type": "array",
			"minItems": 1,
			"maxItems": 200,
			"items": {
				"type": "object",
				"properties": {
					"oldText": {"type": "string", "minLength": 1, "description": "text that stands exactly once in the file"},
					"newText": {"type": "string", "description": "what shall stand there instead; may be empty"}
				},
				"required": ["oldText", "newText"],
				"additionalProperties": false
			}
		}
	},
	"required": ["path", "edits"],
	"additionalProperties": false
}`

type editArgs struct {
	Path  string        `json:"path"`
	Edits []replacement `json:"edits"`
}

// replacement is one edit as the model wrote it.
type replacement struct {
	Old string `json:"oldText"`
	New string `json:"newText"`
}

// Edit changes parts of a file that the model was shown as it is, and leaves
// every byte outside of them alone. Whether it may, apply decides.
func Edit(tree *workspace.Tree, apply Apply) Tool {
	return define(Tool{}, "edit", editText, editSchema, func(ctx context.Context, in Input, args editArgs) (Result, error) {
		p, err := locate(tree, args.Path)
		if err != nil {
			return unreadable(ctx, tree, args.Path, err), nil
		}
		content, err := original(tree, in, p)
		if err != nil {
			return unreadable(ctx, tree, p, err), ctx.Err()
		}
		if fault := unknown(in, p, content); fault != "" {
			return Failure(fault), nil
		}
		places, fault := place(content, args.Edits)
		if fault != "" {
			return Failure(fault), nil
		}
		changed := splice(content, places)
		v, err := change(ctx, apply, in, p, changed)
		switch {
		case err != nil:
			return Result{}, err
		case v.Ruling == workspace.Drop:
			return Failure(fmt.Sprintf("nothing was changed: with these edits %s would be as it is", p)), nil
		case v.Ruling != workspace.Allow:
			return refused(v, in.seen), nil
		}
		text, err := report(p, content, changed, places)
		return Result{Text: text, Saw: saw(p, changed)}, err
	})
}

// original is the file that the edits are placed against: what stands there,
// or what stood there before this very call changed it and was cut off.
func original(tree *workspace.Tree, in Input, p string) ([]byte, error) {
	if in.Was != nil {
		if content, ok := in.Was(p); ok {
			return content, nil
		}
	}
	content, _, err := tree.Read(p)
	return content, err
}

// unknown says that the model does not know a file as it is.
func unknown(in Input, p string, content []byte) string {
	switch digest, ok := in.seen(p); {
	case !ok:
		return fmt.Sprintf("%s has not been read in this session; read it first, then edit", p)
	case digest != workspace.Digest(content):
		return fmt.Sprintf("%s has changed since it was read; read it again, then edit", p)
	}
	return ""
}

// splice puts the new texts into the original.
func splice(content []byte, places []placed) []byte {
	var b bytes.Buffer
	at := 0
	for _, p := range places {
		b.Write(content[at:p.start])
		b.Write(p.text)
		at = p.end
	}
	b.Write(content[at:])
	return b.Bytes()
}

// edited is the answer to edits that were made.
type edited struct {
	OK           bool       `json:"ok"`
	Path         string     `json:"path"`
	Applied      int        `json:"applied"`
	Replacements []replaced `json:"replacements"`
}

type replaced struct {
	Index   int    `json:"index"` // in the call, from 0
	Matches int    `json:"match_count"`
	OldLen  int    `json:"old_len"` // in characters
	NewLen  int    `json:"new_len"`
	Before  string `json:"before_snippet"`
	After   string `json:"after_snippet"`
}

func report(p string, content, changed []byte, places []placed) (string, error) {
	answer := edited{OK: true, Path: p, Applied: len(places), Replacements: make([]replaced, len(places))}
	moved := 0
	for _, one := range places {
		start := one.start + moved
		answer.Replacements[one.index] = replaced{
			Index: one.index, Matches: 1,
			OldLen: utf8.RuneCount(content[one.start:one.end]),
			NewLen: utf8.RuneCount(one.text),
			Before: snippet(content, one.start, one.end),
			After:  snippet(changed, start, start+len(one.text)),
		}
		moved += len(one.text) - (one.end - one.start)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(answer)
	return b.String(), err
}

// snippet is a place with 80 bytes around it. What is long is cut in the
// middle: the model has written it just now.
func snippet(content []byte, start, end int) string {
	const around, longest = 80, 400
	from := max(0, start-around)
	for from < start && !utf8.RuneStart(content[from]) {
		from++
	}
	to := boundary(string(content[end:min(len(content), end+around+utf8.UTFMax)]), around)
	return clipMiddle(string(content[from:end+to]), longest)
}
