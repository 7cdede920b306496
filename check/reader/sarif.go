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
	RuleID        string
	Rule          struct{ ID string }
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
func readSARIF(text string, l *list) {
	if !strings.Contains(text, `"runs"`) {
		return
	}
	paths := [][]string{{"runs", "*", "tool", "driver", "rules", "*"}, {"runs", "*", "results", "*"}, {"runs", "*", "invocations", "*"}}
	forEachDocument(text, func(d *json.Decoder) bool {
		rules := map[string]sarifRule{}
		var results []sarifResult
		complete := forEachElement(d, nil, paths, func(path []string, value json.RawMessage) {
			var rule sarifRule
			var r sarifResult
			var of sarifInvocation
			switch {
			case path[2] == "tool" && json.Unmarshal(value, &rule) == nil:
				rules[rule.ID] = rule
			case path[2] == "results" && json.Unmarshal(value, &r) == nil && !slices.ContainsFunc(r.Suppressions, isAccepted) && r.BaselineState != "absent" && strings.Contains("  fail open review ", " "+r.Kind+" "):
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
		for _, r := range results {
			id := cmp.Or(r.RuleID, r.Rule.ID) // which may go on after that of the rule
			base, _, _ := strings.Cut(id, "/")
			rule := cmp.Or(rules[id].ID, rules[base].ID)
			described := rules[rule]
			described.ID = id
			// Without a rule and a text of its own, a result of a report that is cut says nothing.
			if complete || r.Message.Text != "" {
				l.addCompiled(r.item(described), r.Message.Text)
			}
		}
		return complete
	})
}

func isAccepted(s struct{ Status string }) bool { return s.Status == "" || s.Status == "accepted" }

func (r sarifResult) item(rule sarifRule) item {
	i := item{rank: rankOf(cmp.Or(r.Level, rule.Default.Level, "warning")), rule: rule.ID}
	if len(r.Locations) > 0 {
		p := r.Locations[0].Physical
		i.file, i.line = p.Artifact.URI, p.Region.StartLine
		if plain, err := url.PathUnescape(i.file); err == nil {
			i.file = plain
		}
	}
	message := rule.Messages[r.Message.ID].Text
	for n, a := range r.Message.Arguments {
		message = strings.ReplaceAll(message, "{"+string(rune('0'+n%10))+"}", a)
	}
	i.text = withRule(cmp.Or(r.Message.Text, message, rule.Short.Text), rule.ID)
	return i
}

func withRule(message, rule string) string {
	message = strings.TrimSpace(message)
	first, rest, _ := strings.Cut(message, "\n")
	if rule != "" && !strings.Contains(first, rule) {
		first += " (" + rule + ")"
	}
	return strings.TrimSuffix(first+"\n"+rest, "\n")
}
