package reader

import (
	"cmp"
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
	Descriptor    struct{ ID string } // the rule of a notification
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

// sarifInvocation says how the tool ran: an error in it is a file that it could not read,
// or its own failure.
type sarifInvocation struct {
	Execution     []sarifResult `json:"toolExecutionNotifications"`
	Configuration []sarifResult `json:"toolConfigurationNotifications"`
}

// Results that are failures and are not suppressed count, and the errors of the tool itself (SARIF 2.1).
func readSARIF(text string, l *list) (known bool) {
	if !strings.Contains(text, `"runs"`) {
		return false
	}
	paths := [][]string{{"runs", "*", "tool", "driver", "rules", "*"}, {"runs", "*", "results", "*"}, {"runs", "*", "invocations", "*"}, {"version"}}
	forEachDocument(text, func(d *json.Decoder) bool {
		var rules []sarifRule
		var results []sarifResult
		complete := forEachElement(d, paths, func(path []string, value json.RawMessage) {
			var rule sarifRule
			var r sarifResult
			var of sarifInvocation
			switch {
			case len(path) == 1:
				known = known || strings.HasPrefix(string(value), `"2.`)
			case path[2] == "tool" && json.Unmarshal(value, &rule) == nil:
				rules = append(rules, rule)
			case path[2] == "results" && json.Unmarshal(value, &r) == nil && r.counts():
				results = append(results, r)
			case path[2] == "invocations" && json.Unmarshal(value, &of) == nil:
				for _, n := range slices.Concat(of.Execution, of.Configuration) {
					if n.Level == "error" {
						i := n.item(sarifRule{ID: n.Descriptor.ID})
						i.rank = crash
						l.add(i)
					}
				}
			}
		})
		byID := map[string]sarifRule{}
		for _, rule := range rules {
			byID[rule.ID] = rule
		}
		for _, r := range results {
			// Without a rule and a text of its own, a result of a report that is cut says nothing.
			if rule := r.rule(rules, byID); complete || r.Message.Text != "" {
				l.add(r.items(rule)...)
			}
		}
		known = known || len(rules)+len(l.items) > 0
		return complete
	})
	return known
}

// Such a problem is neither solved nor suppressed.
func (r sarifResult) counts() bool {
	accepted := slices.ContainsFunc(r.Suppressions, func(s struct{ Status string }) bool { return s.Status == "" || s.Status == "accepted" })
	return !accepted && r.BaselineState != "absent" && (r.Kind == "" || r.Kind == "fail" || r.Kind == "open" || r.Kind == "review")
}

// One result may be a compiler's output.
func (r sarifResult) items(rule sarifRule) []item {
	i := r.item(rule)
	if i.file == "" {
		if compiled := goBuildItems(r.Message.Text); len(compiled) > 0 {
			return compiled
		}
	}
	return []item{i}
}

func (r sarifResult) item(rule sarifRule) item {
	i := item{rank: rankOf(cmp.Or(r.Level, rule.Default.Level, "warning")), rule: rule.ID}
	if len(r.Locations) > 0 {
		p := r.Locations[0].Physical
		i.file, i.line = uriPath(p.Artifact.URI), p.Region.StartLine
	}
	message := rule.Messages[r.Message.ID].Text
	for n, a := range r.Message.Arguments {
		message = strings.ReplaceAll(message, "{"+string(rune('0'+n%10))+"}", a)
	}
	i.text = withRule(cmp.Or(r.Message.Text, message, rule.Short.Text), rule.ID)
	return i
}

// Only the rule's ID may be known. It may go on, after that of the rule that is described.
func (r sarifResult) rule(rules []sarifRule, byID map[string]sarifRule) sarifRule {
	id, index := cmp.Or(r.RuleID, r.Rule.ID), cmp.Or(r.RuleIndex, r.Rule.Index)
	if id == "" && index != nil && *index >= 0 && *index < len(rules) {
		return rules[*index]
	}
	base, _, _ := strings.Cut(id, "/")
	found, ok := byID[id]
	if !ok {
		found = byID[base]
	}
	found.ID = id
	return found
}

func uriPath(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case !strings.ContainsAny(uri, "%:") || err != nil || u.Opaque != "" || u.Scheme != "" && u.Scheme != "file":
		return uri
	case len(u.Path) > 2 && u.Path[2] == ':':
		return u.Path[1:] // file:///C:/x
	}
	return u.Path
}

func withRule(message, rule string) string {
	message = strings.TrimSpace(message)
	first, rest, _ := strings.Cut(message, "\n")
	if rule != "" && !strings.Contains(first, rule) {
		first += " (" + rule + ")"
	}
	return strings.TrimSuffix(first+"\n"+rest, "\n")
}
