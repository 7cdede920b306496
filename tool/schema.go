package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"hone/model"
)

// define completes a tool: schema is the JSON Schema of its arguments, which
// are checked against it and decoded before do is called. A schema that cannot
// be compiled is a mistake in the source, and panics.
func define[A any](t Tool, name, description, schema string, do func(ctx context.Context, in Input, args A) (Result, error)) Tool {
	c := compile(schema)
	t.Spec = model.Spec{Name: name, Description: strings.TrimSpace(description), Schema: c.text}
	t.Run = func(ctx context.Context, in Input) (Result, error) {
		var args A
		if fault := c.decode(in.Args, &args); fault != "" {
			return Failure(fmt.Sprintf("the arguments of %s do not fit: %s", name, fault)), nil
		}
		return do(ctx, in, args)
	}
	return t
}

// contract is a schema that is ready to check with.
type contract struct {
	text     json.RawMessage
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
}

func compile(text string) contract {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		panic(fmt.Sprintf("tool: schema: %v", err))
	}
	schema := &jsonschema.Schema{}
	if err := json.Unmarshal(compact.Bytes(), schema); err != nil {
		panic(fmt.Sprintf("tool: schema: %v", err))
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("tool: schema: %v", err))
	}
	return contract{text: compact.Bytes(), schema: schema, resolved: resolved}
}

// decode reads arguments into what to points to. What does not fit is
// returned in words for the model, which name the member and what was
// expected; an empty string means that everything fits.
//
// What is cleanly convertible is converted: a number or truth value in a
// string, 0 and 1 for a truth value and the other way round, a list in a
// string or an only item without its list. Null for an optional member leaves
// it out.
func (c contract) decode(args json.RawMessage, to any) string {
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return "they are not JSON: " + err.Error()
	}
	value = convert(c.schema, value)
	if err := c.resolved.Validate(value); err != nil {
		if faults := explain(c.schema, value, ""); len(faults) > 0 {
			return strings.Join(faults[:min(len(faults), 5)], "; ")
		}
		return err.Error()
	}
	fitting, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(fitting, to)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// convert gives a value the type that a schema asks for where that is clean;
// whatever else it is stays as it is.
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
	case bool:
		if s.Type == "integer" && isSwitch(s) {
			return map[bool]float64{false: 0, true: 1}[v]
		}
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
	for name, member := range v {
		sub, known := s.Properties[name]
		switch {
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
	case "array":
		var list []any
		if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &list) == nil {
			return convert(s, list)
		}
	}
	return v
}

// isSwitch reports whether a whole number stands for a truth value.
func isSwitch(s *jsonschema.Schema) bool {
	return s.Minimum != nil && *s.Minimum == 0 && s.Maximum != nil && *s.Maximum == 1
}

// explain says where a value that the schema's library refused does not fit.
// at is the way to the value, empty for the arguments as a whole.
func explain(s *jsonschema.Schema, value any, at string) []string {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case s.Type == "object" && isObject:
		return explainObject(s, object, at)
	case s.Type == "array" && isList && len(list) >= least(s.MinItems) && len(list) <= most(s.MaxItems) && s.Items != nil:
		var faults []string
		for i, item := range list {
			faults = append(faults, explain(s.Items, item, fmt.Sprintf("%s[%d]", at, i))...)
		}
		return faults
	}
	if fits(s, value) {
		return nil
	}
	if at == "" {
		at = "they"
	}
	return []string{fmt.Sprintf("%s: expected %s, got %s", at, expected(s), shown(value))}
}

func explainObject(s *jsonschema.Schema, object map[string]any, at string) []string {
	var faults []string
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			faults = append(faults, fmt.Sprintf("%s is missing: expected %s", member(at, name), expected(s.Properties[name])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		sub, known := s.Properties[name]
		switch {
		case known:
			faults = append(faults, explain(sub, object[name], member(at, name))...)
		case s.AdditionalProperties != nil:
			names := strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")
			faults = append(faults, fmt.Sprintf("%s is unknown; there are: %s", clip(member(at, name), 100), names))
		}
	}
	return faults
}

func member(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// fits reports whether the library takes a value.
func fits(s *jsonschema.Schema, value any) bool {
	resolved, err := s.CloneSchemas().Resolve(nil)
	return err == nil && resolved.Validate(value) == nil
}

// expected says in words what a schema asks for.
func expected(s *jsonschema.Schema) string {
	switch s.Type {
	case "string":
		if least(s.MinLength) > 0 {
			return "a string that is not empty"
		}
		return "a string"
	case "integer":
		return "a whole number" + between(s)
	case "boolean":
		return "true or false"
	case "array":
		words := fmt.Sprintf("a list of at least %d", least(s.MinItems))
		if s.MaxItems != nil {
			words += fmt.Sprintf(" and at most %d", *s.MaxItems)
		}
		return words
	case "object":
		return "an object with " + strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")
	}
	return "something else"
}

func between(s *jsonschema.Schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf(" from %.0f to %.0f", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf(" of at least %.0f", *s.Minimum)
	}
	return ""
}

func least(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

func most(n *int) int {
	if n == nil {
		return math.MaxInt
	}
	return *n
}

// shown is a value as a message can hold it.
func shown(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		return "something else"
	}
	return clip(string(b), 100)
}
