package forward

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// checkLocal refuses a request that makes the provider access the network, run
// code, or read anything that is not in the request.
func (f *Forward) checkLocal(o object) error {
	l := localRulesOf(f.config.Wire)
	for _, m := range o.members {
		if l.remote[canon(m.name)] && !isEmpty(m.value) {
			return reachesBeyond(m.name)
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
			if err := l.checkStrings(m.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// reachesBeyond returns the refusal of a member or a tool.
func reachesBeyond(what string) error {
	// The agent chooses the name, which may be very long.
	if len(what) > 60 {
		what = what[:60] + "…"
	}
	return &refusal{http.StatusBadRequest, "not_allowed", "hone refuses this call: it asks the provider for " +
		strings.ToValidUTF8(what, "") + ", which goes beyond the request; disable that in the agent's settings"}
}

// isEmpty reports whether a value has no effect.
func isEmpty(v json.RawMessage) bool {
	switch string(v) {
	case "null", "false", "[]", `""`:
		return true
	}
	return false
}

// localRules define what goes beyond a request on one wire.
type localRules struct {
	remote  map[string]bool       // members that go beyond the request
	tool    func(o object) string // returns what a tool needs beyond the request, or ""
	content []string              // members whose strings are checked
	skip    map[string]bool       // members of content that are only text, by a model or a tool
	// part reports whether a string in content goes beyond the request. Names
	// are in canonical form.
	part func(parent, name, value string) bool
}

func names(list ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range list {
		m[canon(n)] = true
	}
	return m
}

func localRulesOf(w Wire) localRules {
	switch w {
	case Gemini:
		return localRules{
			remote: names("cachedContent", "generateContentRequest"), tool: geminiTool,
			content: []string{"contents", "systemInstruction"}, skip: names("args", "response"),
			part: geminiPart(),
		}
	case Anthropic:
		return localRules{
			remote: names("mcp_servers", "container"), tool: anthropicTool,
			content: []string{"messages", "system"}, skip: names("input"),
			part: anthropicPart(),
		}
	}
	return localRules{
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

// anthropicTool allows the tools that the API defines but the agent runs. Their
// types end in a date.
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
			return reachesBeyond(what)
		}
	}
	return nil
}

// level is an open object or list.
type level struct {
	object bool
	named  bool   // the next token is the value of name
	name   string // canonical name of the current member, or of the list itself
	parent string
	skip   bool
}

// checkStrings checks every string in a value. It reads a stream of tokens, so
// that it also sees duplicate members.
func (l localRules) checkStrings(v json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	stack := []level{{}}
	for {
		t, err := d.Token()
		if err != nil {
			return nil // the end, because the value is valid JSON
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
				return reachesBeyond(top.name)
			}
		default:
			top.named = false
		}
	}
}
