package agent

import (
	"slices"
	"strings"
)

// It is what makes the provider access the network, run code, or read anything that is not in the request; empty if nothing
// does.
func (w *wire) beyond(o object) string {
	for name, v := range o {
		what := ""
		switch c := canon(name); c {
		case "CACHEDCONTENT", "GENERATECONTENTREQUEST", "MCPSERVERS", "CONTAINER", "PREVIOUSRESPONSEID", "CONVERSATION", "PROMPT",
			"BACKGROUND", "WEBSEARCHOPTIONS", "MODELS", "PLUGINS":
			if list, ok := v.([]any); v != nil && v != false && v != "" && !(ok && len(list) == 0) {
				what = name
			}
		case "TOOLS":
			what = w.toolsBeyond(v)
		default:
			what = w.contentBeyond(v, c)
		}
		if what != "" {
			return what
		}
	}
	return ""
}

// contentBeyond returns the name of an address in v that the provider would fetch, or
// of something that it has stored. v is the value of a member with this name in canonical form.
func (w *wire) contentBeyond(v any, name string) string {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			if what := w.contentBeyond(element, name); what != "" {
				return what
			}
		}
	case object:
		for key, inner := range v {
			if key := canon(key); !slices.Contains(w.skip, key) {
				if what := w.contentBeyond(inner, key); what != "" {
					return what
				}
			}
		}
	case string:
		if (name == "FILEID" || strings.HasSuffix(name, "URL") || strings.HasSuffix(name, "URI")) && v != "" && !strings.HasPrefix(v, "data:") {
			return name
		}
	}
	return ""
}

func (w *wire) toolsBeyond(v any) string {
	list, ok := v.([]any)
	if v != nil && !ok {
		return "tools that are not a list"
	}
	for _, tool := range list {
		o, ok := tool.(object)
		if !ok {
			return "a tool that is not an object"
		}
		if what := w.toolBeyond(o); what != "" {
			return what
		}
	}
	return ""
}

// An agent runs the allowed tools itself.
func (w *wire) toolBeyond(tool object) string {
	var r reader
	_, declared := r.member(tool, "type")
	t, ok := declared.(string)
	// Anthropic's end in a date.
	dated := []string{"bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_"}
	switch {
	case w.name == Gemini: // which names a tool by its member
		for name, v := range tool {
			if canon(name) != canon("functionDeclarations") && v != nil {
				return name
			}
		}
		return ""
	case r.err != nil || declared != nil && !ok:
		return "a tool of an unknown type"
	case slices.Contains([]string{"", "function", "custom", "local_shell", "apply_patch", "computer", "computer_use_preview", "tool_search"}, t),
		slices.ContainsFunc(dated, func(p string) bool { return strings.HasPrefix(t, p) }):
		return ""
	case t == "namespace":
		_, inner := r.member(tool, "tools")
		if what := w.toolsBeyond(inner); what != "" || r.err == nil {
			return what
		}
	case t == "shell":
		_, environment := r.object(tool, "environment")
		if _, where := r.member(environment, "type"); where == "local" && r.err == nil {
			return ""
		}
	}
	return t
}
