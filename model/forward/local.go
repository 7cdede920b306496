package forward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// checkLocal refuses a request that makes the provider access the network, run
// code, or read anything that is not in the request.
func (f *Forward) checkLocal(o object) error {
	l := localRulesOf(f.config.Wire)
	for _, m := range o.members {
		var err error
		switch name := canon(m.name); {
		case l.remote[name] && !isEmpty(m.value):
			err = beyondError(m.name)
		case l.content[name]:
			d := json.NewDecoder(bytes.NewReader(m.value))
			d.UseNumber() // another number could be out of range
			err = l.check(d, "", "")
		}
		if err != nil {
			return err
		}
	}
	tools, err := o.get("tools")
	switch {
	case err != nil:
		return malformedError(err.Error())
	case tools.null():
		return nil
	}
	return checkTools(tools.value, l.tool)
}

// beyondError returns the refusal of a member or a tool.
func beyondError(what string) error {
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
	content map[string]bool       // members whose strings are checked
	skip    map[string]bool       // members of content that are only text, by a model or a tool
	// part reports whether a string in content goes beyond the request. Names
	// are in canonical form, which is upper case without underscores.
	part func(parent, name, value string) bool
}

func nameSet(list ...string) map[string]bool {
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
			remote: nameSet("cachedContent", "generateContentRequest"), tool: geminiToolNeeds,
			content: nameSet("contents", "systemInstruction"), skip: nameSet("args", "response"),
			part: isGeminiRemote,
		}
	case Anthropic:
		return localRules{
			remote: nameSet("mcp_servers", "container"), tool: anthropicToolNeeds,
			content: nameSet("messages", "system"), skip: nameSet("input"),
			part: isAnthropicRemote,
		}
	}
	return localRules{
		remote: nameSet("previous_response_id", "conversation", "prompt", "background", "web_search_options",
			"models", "plugins"),
		tool: openaiToolNeeds, content: nameSet("messages", "input"), part: isOpenAIRemote,
	}
}

func geminiToolNeeds(o object) string {
	for _, m := range o.members {
		if canon(m.name) != canon("functionDeclarations") && string(m.value) != "null" {
			return m.name
		}
	}
	return ""
}

// anthropicToolNeeds allows the tools that the API defines but the agent runs. Their
// types end in a date.
func anthropicToolNeeds(o object) string {
	t := typeOf(o)
	own := []string{"bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_"}
	if t == "" || t == "custom" || slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(t, p) }) {
		return ""
	}
	return t
}

func openaiToolNeeds(o object) string {
	switch t := typeOf(o); t {
	case "function", "custom", "local_shell", "apply_patch", "computer", "computer_use_preview", "tool_search":
		return ""
	case "namespace":
		inner, err := o.get("tools")
		if err == nil && (inner.null() || checkTools(inner.value, openaiToolNeeds) == nil) {
			return ""
		}
		return t
	case "shell":
		if e, err := o.get("environment"); err == nil && e != nil {
			if env, err := parseObject(e.value); err == nil && typeOf(env) == "local" {
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

// Strings for which these functions return true name something that the provider would
// fetch, or has stored.

func isGeminiRemote(_, name, value string) bool { return name == "FILEURI" && value != "" }

func isAnthropicRemote(parent, name, _ string) bool {
	return parent == "SOURCE" && (name == "URL" || name == "FILEID")
}

func isOpenAIRemote(parent, name, value string) bool {
	switch name {
	case "FILEID":
		return value != ""
	case "URL":
		name = parent
	}
	switch name {
	case "IMAGEURL", "FILEURL", "VIDEOURL", "AUDIOURL":
		return value != "" && !strings.HasPrefix(value, "data:")
	}
	return false
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

// checkTools returns an error if a tool in a list goes beyond the request; see
// localRules.tool.
func checkTools(list json.RawMessage, reaches func(object) string) error {
	var tools []json.RawMessage
	if json.Unmarshal(list, &tools) != nil {
		return malformedError("its tools are not a list")
	}
	for _, t := range tools {
		o, err := parseObject(t)
		if err != nil {
			return malformedError("a tool: " + err.Error())
		}
		if what := reaches(o); what != "" {
			return beyondError(what)
		}
	}
	return nil
}

// check checks every string in the next value of d, which is the value of the
// member name in the value of parent. It reads tokens, so that it also sees
// duplicate members.
func (l localRules) check(d *json.Decoder, parent, name string) error {
	t, err := d.Token()
	if err != nil {
		return malformedError(err.Error())
	}
	switch t := t.(type) {
	case json.Delim:
		for d.More() && err == nil {
			if t == '[' {
				err = l.check(d, parent, name)
				continue
			}
			key, _ := d.Token()
			if inner := canon(fmt.Sprint(key)); l.skip[inner] {
				err = d.Decode(&json.RawMessage{})
			} else {
				err = l.check(d, name, inner)
			}
		}
		if err == nil {
			_, err = d.Token()
		}
	case string:
		if l.part(parent, name, t) {
			return beyondError(name)
		}
	}
	return err
}
