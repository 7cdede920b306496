package forward

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// local refuses a request that would have the provider reach the network, run
// something, or read what does not stand in the request.
func (f *Forward) local(o object) error {
	l := locality(f.config.Wire)
	for _, m := range o.members {
		if l.remote[canon(m.name)] && !blank(m.value) {
			return elsewhere(m.name)
		}
	}
	tools, err := o.get("tools")
	if err != nil {
		return malformed(err.Error())
	}
	if !tools.null() {
		if err := localTools(tools.value, l.tool); err != nil {
			return err
		}
	}
	for _, name := range l.content {
		for _, m := range o.members {
			if canon(m.name) != canon(name) {
				continue
			}
			if err := l.inline(m.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// elsewhere is the refusal of something by its name.
func elsewhere(what string) error {
	// A name is the agent's own word, but as long as it likes.
	if len(what) > 60 {
		what = what[:60] + "…"
	}
	return &refusal{http.StatusBadRequest, "not_allowed", "hone refuses this call: it asks the provider for " +
		strings.ToValidUTF8(what, "") + ", which reaches beyond the request; turn that off in the agent's settings"}
}

// blank reports whether a value says nothing.
func blank(v json.RawMessage) bool {
	switch string(v) {
	case "null", "false", "[]", `""`:
		return true
	}
	return false
}

// locale is what of a wire stays within a request.
type locale struct {
	remote  map[string]bool       // members that reach beyond it
	tool    func(o object) string // what a tool reaches for; empty: nothing
	content []string              // members whose parts are looked at
	skip    map[string]bool       // within content: what a model or a tool wrote, which is only text
	// part reports whether a string within content reaches beyond; names are in
	// canonical form.
	part func(parent, name, value string) bool
}

func names(list ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range list {
		m[canon(n)] = true
	}
	return m
}

func locality(w Wire) locale {
	switch w {
	case Gemini:
		return locale{
			remote: names("cachedContent", "generateContentRequest"), tool: geminiTool,
			content: []string{"contents", "systemInstruction"}, skip: names("args", "response"),
			part: geminiPart(),
		}
	case Anthropic:
		return locale{
			remote: names("mcp_servers", "container"), tool: anthropicTool,
			content: []string{"messages", "system"}, skip: names("input"),
			part: anthropicPart(),
		}
	}
	return locale{
		remote: names("previous_response_id", "conversation", "prompt", "background", "web_search_options",
			"models", "plugins"),
		tool: openaiTool, content: []string{"messages", "input"}, part: openaiPart(),
	}
}

func geminiTool(o object) string {
	for _, m := range o.members {
		if canon(m.name) != canon("functionDeclarations") && string(m.value) != "null" {
			return m.name
		}
	}
	return ""
}

// anthropicTool knows the tools that the API only describes: they run where
// the agent does. Their types end in a date.
func anthropicTool(o object) string {
	t := typeOf(o)
	own := []string{"bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_"}
	if t == "" || t == "custom" || slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(t, p) }) {
		return ""
	}
	return t
}

func openaiTool(o object) string {
	switch t := typeOf(o); t {
	case "function", "custom", "local_shell", "apply_patch", "computer", "computer_use_preview", "tool_search":
		return ""
	case "namespace":
		inner, err := o.get("tools")
		if err == nil && (inner.null() || localTools(inner.value, openaiTool) == nil) {
			return ""
		}
		return t
	case "shell":
		if e, err := o.get("environment"); err == nil && e != nil {
			if env, err := parseObject(e.value, 0); err == nil && typeOf(env) == "local" {
				return ""
			}
		}
		return t
	case "":
		return "a tool without a type"
	default:
		return t
	}
}

func geminiPart() func(_, name, value string) bool {
	uri := canon("fileUri")
	return func(_, name, value string) bool { return name == uri && value != "" }
}

func anthropicPart() func(parent, name, _ string) bool {
	source, remote := canon("source"), names("url", "file_id")
	return func(parent, name, _ string) bool { return parent == source && remote[name] }
}

func openaiPart() func(parent, name, value string) bool {
	file, inner, address := canon("file_id"), canon("url"), names("image_url", "file_url", "video_url", "audio_url")
	return func(parent, name, value string) bool {
		switch {
		case name == file:
			return value != ""
		case address[name], name == inner && address[parent]:
			return value != "" && !strings.HasPrefix(value, "data:")
		}
		return false
	}
}

func typeOf(o object) string {
	var t string
	if m, err := o.get("type"); err != nil {
		return "?"
	} else if m != nil && json.Unmarshal(m.value, &t) != nil {
		return "?"
	}
	return t
}

func localTools(list json.RawMessage, reaches func(object) string) error {
	var tools []json.RawMessage
	if json.Unmarshal(list, &tools) != nil {
		return malformed("its tools are not a list")
	}
	for _, t := range tools {
		o, err := parseObject(t, 0)
		if err != nil {
			return malformed("a tool: " + err.Error())
		}
		if what := reaches(o); what != "" {
			return elsewhere(what)
		}
	}
	return nil
}

// level is an object or a list that is being read.
type level struct {
	object bool
	named  bool   // a name was read, and its value comes next
	name   string // in canonical form; of a list, its own
	parent string
	skip   bool
}

// inline looks at every string of a value that is a member of some object.
// Read as a stream, even the twin of a member is seen.
func (l locale) inline(v json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	stack := []level{{}}
	for {
		t, err := d.Token()
		if err != nil {
			return nil // its end: the whole was valid
		}
		top := &stack[len(stack)-1]
		switch t := t.(type) {
		case json.Delim:
			if t == '}' || t == ']' {
				stack = stack[:len(stack)-1]
				continue
			}
			inner := level{object: t == '{', parent: top.name, name: top.name, skip: top.skip || top.object && l.skip[top.name]}
			if !inner.object {
				inner.parent = top.parent
			}
			top.named = false
			stack = append(stack, inner)
		case string:
			if top.object && !top.named {
				top.name, top.named = canon(t), true
				continue
			}
			top.named = false
			if !top.skip && l.part(top.parent, top.name, t) {
				return elsewhere(top.name)
			}
		default:
			top.named = false
		}
	}
}
