package tool

import (
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"hone/internal/reply"
)

// Other programs give these names. They have no underscores and are in lower case.
func aliases() map[string][]string {
	return map[string][]string{
		"path":    {"filepath", "file", "filename", "targetfile", "absolutepath"},
		"content": {"contents", "filetext", "text", "filecontent", "filecontents", "newcontents"},
		"oldText": {"oldstring", "oldstr", "search", "oldcode", "searchtext"},
		"newText": {"newstring", "newstr", "replace", "replacement", "newcode", "replacetext"},
		"command": {"cmd", "commandline"},
	}
}

// rename gives unknown members of an object the names that they certainly mean: of
// a required member that is missing and has another spelling or an alias.
func rename(s *jsonschema.Schema, v map[string]any) {
	targets := slices.Clone(s.Required)
	if _, items := itemList(s); items != nil {
		targets = append(targets, items.Required...)
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		member := v[name]
		if _, known := s.Properties[name]; known {
			continue
		}
		for _, target := range targets {
			_, taken := v[target]
			plain := reply.PlainName(name)
			if !taken && name != target && (plain == reply.PlainName(target) || slices.Contains(aliases()[target], plain)) {
				v[target] = member
				delete(v, name)
				break
			}
		}
	}
}

func itemList(s *jsonschema.Schema) (name string, items *jsonschema.Schema) {
	for _, one := range s.Required {
		if sub := s.Properties[one]; sub != nil && sub.Type == "array" && sub.Items != nil && sub.Items.Type == "object" {
			name, items = one, sub.Items
		}
	}
	return name, items
}

// fold makes a list of one object out of its members, if they are in the object
// around the list, and the list is missing.
func fold(s *jsonschema.Schema, v map[string]any) {
	name, items := itemList(s)
	if _, given := v[name]; items == nil || given {
		return
	}
	item := map[string]any{}
	for _, member := range items.Required {
		value, ok := v[member]
		if !ok {
			return
		}
		item[member] = value
	}
	for member := range item {
		delete(v, member)
	}
	v[name] = []any{item}
}
