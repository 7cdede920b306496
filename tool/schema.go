package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"hone/internal/reply"
	"hone/model"
)

// Define returns a tool with a name, a description for the model, the JSON Schema
// of its arguments, and a Run function, which validates the arguments, decodes
// them into an A and calls do. Arguments that do not fit the schema never reach
// do: the model is told what is wrong with them. The tool's other fields are those
// of t: ReadOnly, RunsCommands, MaxRepeats and MaxText. Define panics if the schema is
// not JSON. If it is no JSON Schema, every Run returns an error.
//
// hone shows a call by its arguments named command, pattern, path, query and url, and
// otherwise by their JSON.
//
// If do returns a [*CallError], the model receives its text; any other error stops
// the run.
//
// A tool that reads a file which the model named calls [ReadFile]:
//
//	type args struct {
//		Path string `json:"path"`
//	}
//	head := tool.Define(tool.Tool{ReadOnly: true}, "head", "Show the first line of a file.",
//		`{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false}`,
//		func(ctx context.Context, in tool.Input, a args) (tool.Result, error) {
//			f, err := tool.ReadFile(ctx, tree, guard, a.Path)
//			if err != nil {
//				return tool.Result{}, err
//			}
//			line, _, _ := strings.Cut(string(f.Content), "\n")
//			return tool.Result{Text: line}, nil
//		})
func Define[A any](t Tool, name, description, schema string, do func(ctx context.Context, in Input, args A) (Result, error)) Tool {
	var text bytes.Buffer
	if err := json.Compact(&text, []byte(schema)); err != nil {
		panic(fmt.Sprintf("tool: schema of %s: %v", name, err))
	}
	t.Spec = model.Spec{Name: name, Description: strings.TrimSpace(description), Schema: text.Bytes()}
	compiled := sync.OnceValues(func() (argSchema, error) { return compile(text.Bytes()) }) // most tools are not called
	t.Run = func(ctx context.Context, in Input) (Result, error) {
		c, err := compiled()
		if err != nil {
			return Result{}, fmt.Errorf("read the schema of the tool %s: %w", name, err)
		}
		var args A
		if fault := c.decode(in.Args, &args); fault != "" {
			return Failure(fmt.Sprintf("invalid arguments for %s: %s", name, fault)), nil
		}
		result, err := do(ctx, in, args)
		if wrong, ok := errors.AsType[*CallError](err); ok {
			result = Failure(wrong.Text)
			result.Refused = wrong.Refused
			return result, nil
		}
		return result, err
	}
	return t
}

type argSchema struct {
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
}

func compile(text []byte) (c argSchema, err error) {
	if err := json.Unmarshal(text, &c.schema); err != nil {
		return c, err
	}
	c.resolved, err = c.schema.Resolve(nil)
	return c, err
}

// decode decodes arguments into the value that to points to. If they are
// invalid, it returns an explanation for the model, with each member's name and
// its schema; otherwise "".
//
// It converts unambiguous values: a number or a boolean in a string, 0 and 1
// for a boolean, a list in a string, and a single item without
// a list. It ignores null for an optional member.
func (c argSchema) decode(args json.RawMessage, to any) string {
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return "not valid JSON: " + err.Error()
	}
	value = convert(c.schema, value)
	if err := c.resolved.Validate(value); err != nil {
		if faults := explain(c.schema, value, ""); len(faults) > 0 {
			return strings.Join(faults[:min(len(faults), 5)], "; ")
		}
		return err.Error()
	}
	converted, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(converted, to)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// Only unambiguous values are converted.
func convert(s *jsonschema.Schema, value any) any {
	switch v := value.(type) {
	case map[string]any:
		return convertObject(s, v)
	case []any:
		if s.Type == "array" && s.Items != nil {
			for i := range v {
				v[i] = convert(s.Items, v[i])
			}
		}
	case string:
		return convertString(s, v)
	case float64:
		if s.Type == "boolean" && (v == 0 || v == 1) {
			return v == 1
		}
	}
	return value
}

func convertObject(s *jsonschema.Schema, v map[string]any) any {
	if s.Type == "array" && s.Items != nil && s.Items.Type == "object" {
		return []any{convertObject(s.Items, v)}
	}
	rename(s, v)
	fold(s, v)
	for name, member := range v {
		sub, known := s.Properties[name]
		switch {
		case !known && s.AdditionalProperties != nil && reply.IsRemark(name, member):
			delete(v, name)
		case !known:
		case member == nil && !slices.Contains(s.Required, name):
			delete(v, name)
		default:
			v[name] = convert(sub, member)
		}
	}
	return v
}

func convertString(s *jsonschema.Schema, v string) any {
	text := strings.TrimSpace(v)
	switch s.Type {
	case "integer":
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			return float64(n)
		}
	case "boolean":
		switch text {
		case "true", "1":
			return true
		case "false", "0":
			return false
		}
	case "array", "object":
		var value any
		if text != "" && strings.IndexByte("[{", text[0]) >= 0 && json.Unmarshal([]byte(text), &value) == nil {
			return convert(s, value)
		}
	}
	return v
}

// The library rejected the value, and says only the first reason. at is the path to it; empty for the arguments themselves.
func explain(s *jsonschema.Schema, value any, at string) (faults []string) {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case s.Type == "object" && isObject:
		for _, name := range s.Required {
			if _, ok := object[name]; !ok {
				faults = append(faults, fmt.Sprintf("%s is missing: expected %s", memberPath(at, name), brief(s.Properties[name], 800)))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if sub, known := s.Properties[name]; known {
				faults = append(faults, explain(sub, object[name], memberPath(at, name))...)
			} else if s.AdditionalProperties != nil {
				names := strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")
				faults = append(faults, fmt.Sprintf("%s is unknown; valid names: %s", clip(memberPath(at, name), 100), names))
			}
		}
	case s.Type == "array" && isList && s.Items != nil:
		for i, item := range list {
			faults = append(faults, explain(s.Items, item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	}
	if len(faults) > 0 {
		return faults
	}
	if resolved, err := s.CloneSchemas().Resolve(nil); err != nil || resolved.Validate(value) == nil {
		return nil
	}
	return []string{strings.TrimPrefix(fmt.Sprintf("%s: expected %s, got %s", at, brief(s, 800), brief(value, 100)), ": ")}
}

func memberPath(at, name string) string { return strings.TrimPrefix(at+"."+name, ".") }

func brief(value any, limit int) string {
	b, err := json.Marshal(value)
	if err != nil {
		return "another value"
	}
	return clip(string(b), limit)
}
