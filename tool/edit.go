package tool

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hone/internal/render"
	"hone/internal/reply"
	"hone/workspace"
	"hone/workspace/secret"
)

//go:embed edit.md
var editText string

const editSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1},
		"edits": {
			"type": "array",
			"minItems": 1,
			"maxItems": 200,
			"items": {
				"type": "object",
				"properties": {
					"oldText": {"type": "string", "minLength": 1},
					"newText": {"type": "string"}
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

type replacement struct {
	Old string `json:"oldText"`
	New string `json:"newText"`
}

// Edit returns the tool that replaces parts of a file whose current contents the
// model has seen, or exact texts that findings or results of grep have shown. All other bytes of the file are unchanged. The apply function
// decides whether the change is allowed. The guard redacts names in errors; nil
// redacts nothing.
func Edit(tree *workspace.Tree, guard *secret.Guard, apply Apply) Tool {
	return Define(Tool{}, "edit", editText, editSchema, func(ctx context.Context, in Input, args editArgs) (Result, error) {
		p, err := locate(tree, args.Path)
		if err != nil {
			return Result{}, readError(ctx, tree, guard, args.Path, err)
		}
		content, err := originalContent(tree, in, p)
		if err != nil {
			return Result{}, readError(ctx, tree, guard, p, err)
		}
		unread := checkRead(in, p, content)
		if _, withheld := guard.Withheld(p, content); unread != "" && (withheld || !isTold(in, p, args.Edits)) {
			return Failure(unread), nil
		}
		places, fault := place(content, args.Edits)
		switch {
		case fault != "" && unread != "":
			return Failure(unread), nil
		case fault != "":
			return Failure(fault), nil
		}
		changed := applyPlaces(content, places)
		texts := make([]string, len(args.Edits))
		for i, e := range args.Edits {
			texts[i] = e.New
		}
		if err := reply.CheckEdit(p, content, changed, texts); err != nil {
			return Failure(fmt.Sprintf("%v. Nothing was changed", err)), nil
		}
		known := p
		if _, all := in.seenDigest(p); !all {
			known = partOf(p)
			in.Seen = func(string) (string, bool) { return workspace.Digest(content), true }
		}
		v, err := applyContent(ctx, apply, in, p, changed)
		switch {
		case err != nil:
			return Result{}, err
		case v.Ruling == workspace.Drop:
			return Failure(fmt.Sprintf("nothing was changed: these edits do not change %s", p)), nil
		case v.Ruling != workspace.Allow:
			return refusal(v, in.seenDigest), nil
		}
		if v.Edited {
			return editedByUser(p), nil
		}
		result := Result{Text: editReport(p, content, changed, places)}
		if unread == "" {
			result.Shown = knownDigest(known, changed)
		}
		return result, nil
	})
}

// An interrupted run of this call may have changed the file.
func originalContent(tree *workspace.Tree, in Input, p string) ([]byte, error) {
	if in.Original != nil {
		if content, ok := in.Original(p); ok {
			return content, nil
		}
	}
	content, _, err := tree.Read(p)
	return content, err
}

func checkRead(in Input, p string, content []byte) string {
	digest, ok := in.seenDigest(p)
	if !ok {
		digest, ok = in.seenDigest(partOf(p))
	}
	switch {
	case !ok:
		return fmt.Sprintf("%s has not been read in this session; read it first, then edit", p)
	case digest != workspace.Digest(content):
		return fmt.Sprintf("%s has changed since it was read; read it again, then edit", p)
	}
	return ""
}

// The model knows the text from findings or results of grep.
func isTold(in Input, p string, edits []replacement) bool {
	const least = 8 // bytes; less may stand anywhere
	_, read := in.seenDigest(p)
	return !read && !in.hasSeenPart(p) && in.Told != nil && !slices.ContainsFunc(edits, func(e replacement) bool {
		return len(strings.TrimSpace(e.Old)) < least || !in.Told(p, e.Old)
	})
}

func applyPlaces(content []byte, places []placement) []byte {
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

// The texts are not repeated: the model has just written them. The lines are those of the new texts, in the order of the edits.
func editReport(p string, content, changed []byte, places []placement) string {
	lines := make([]string, len(places))
	moved := 0
	for _, one := range places {
		first := 1 + bytes.Count(changed[:one.start+moved], []byte("\n"))
		lines[one.index] = strconv.Itoa(first)
		if last := first + countLines(one.text) - 1; last > first {
			lines[one.index] += fmt.Sprintf("-%d", last)
		}
		moved += len(one.text) - (one.end - one.start)
	}
	return fmt.Sprintf("Edited %s (now %s) at line %s\n", p, render.Count(countLines(changed), "line"), strings.Join(lines, ", "))
}
