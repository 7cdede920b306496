package reader

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

type sarifRule struct {
	ID       string
	Default  struct{ Level string } `json:"defaultConfiguration"`
	Messages map[string]sarifText   `json:"messageStrings"`
	Short    sarifText              `json:"shortDescription"`
}

type sarifText struct {
	Text, ID  string
	Arguments []string
}

type sarifResult struct {
	RuleID    string
	RuleIndex *int
	Rule      struct {
		ID    string
		Index *int
	}
	Level, Kind   string
	BaselineState string
	Message       sarifText
	Locations     []struct {
		Physical struct {
			Artifact struct{ URI string } `json:"artifactLocation"`
			Region   struct{ StartLine int }
		} `json:"physicalLocation"`
	}
	Suppressions []struct{ Status string }
}

// readSARIF reads SARIF 2.1: the results that are failures and are not suppressed.
func readSARIF(text string, l *list) bool {
	if !strings.Contains(text, `"runs"`) {
		return false
	}
	known := false
	documents(text, func(d *json.Decoder) bool {
		var rules []sarifRule
		return elements(d, [][]string{{"runs", "*", "tool", "driver", "rules"}, {"runs", "*", "results", "*"}, {"version"}}, func(path []string, value json.RawMessage) {
			switch path[len(path)-1] {
			case "version":
				known = known || strings.HasPrefix(string(value), `"2.`)
			case "rules":
				rules = nil
				if json.Unmarshal(value, &rules) == nil {
					known = true
				}
			case "*":
				var r sarifResult
				if json.Unmarshal(value, &r) == nil && r.counts() {
					known = true
					l.add(r.items(rules)...)
				}
			}
		})
	})
	return known
}

// counts reports whether a result is a problem that stands.
func (r sarifResult) counts() bool {
	accepted := slices.ContainsFunc(r.Suppressions, func(s struct{ Status string }) bool { return s.Status == "" || s.Status == "accepted" })
	return !accepted && r.BaselineState != "absent" && (r.Kind == "" || r.Kind == "fail" || r.Kind == "open" || r.Kind == "review")
}

// items returns the finding of a result, or those of a compiler's output that is one
// result.
func (r sarifResult) items(rules []sarifRule) []item {
	i := r.item(rules)
	if i.file == "" {
		if compiled := goBuildItems(r.Message.Text); len(compiled) > 0 {
			return compiled
		}
	}
	return []item{i}
}

func (r sarifResult) item(rules []sarifRule) item {
	rule := r.rule(rules)
	level := r.Level
	if level == "" {
		level = rule.Default.Level
	}
	if level == "" {
		level = "warning"
	}
	i := item{rank: rankOf(level), rule: rule.ID}
	if len(r.Locations) > 0 {
		p := r.Locations[0].Physical
		i.file, i.line = uriPath(p.Artifact.URI), p.Region.StartLine
	}
	message := r.Message.Text
	if message == "" {
		message = rule.Messages[r.Message.ID].Text
		for n, a := range r.Message.Arguments {
			message = strings.ReplaceAll(message, "{"+string(rune('0'+n%10))+"}", a)
		}
	}
	if message == "" {
		message = rule.Short.Text
	}
	i.text = withRule(message, rule.ID)
	return i
}

// rule returns the rule of a result; only its ID may be known.
func (r sarifResult) rule(rules []sarifRule) sarifRule {
	id, index := r.RuleID, r.RuleIndex
	if id == "" {
		id = r.Rule.ID
	}
	if index == nil {
		index = r.Rule.Index
	}
	if index != nil && *index >= 0 && *index < len(rules) && (id == "" || strings.HasPrefix(id, rules[*index].ID)) {
		found := rules[*index]
		if id != "" {
			found.ID = id
		}
		return found
	}
	for _, rule := range rules[:min(len(rules), 1000)] {
		if rule.ID == id {
			return rule
		}
	}
	return sarifRule{ID: id}
}

// uriPath returns the path of a URI.
func uriPath(uri string) string {
	if !strings.Contains(uri, "%") && !strings.Contains(uri, ":") {
		return uri
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Opaque != "":
		return uri
	case u.Scheme == "file" && len(u.Path) > 2 && u.Path[2] == ':':
		return u.Path[1:] // file:///C:/x
	case u.Scheme == "file" || u.Scheme == "":
		return u.Path
	}
	return uri
}

// withRule returns a message with the rule's name, unless it has it.
func withRule(message, rule string) string {
	message = strings.TrimSpace(message)
	first, rest, _ := strings.Cut(message, "\n")
	if rule != "" && !strings.Contains(first, rule) {
		first += " (" + rule + ")"
	}
	return strings.TrimSuffix(first+"\n"+rest, "\n")
}
