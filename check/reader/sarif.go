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

type sarifLog struct {
	*list
	known bool
	rules []sarifRule
	// early are the results that came before the rules of their run.
	early []sarifResult
}

// Results that are failures and are not suppressed count, and the errors of the tool itself (SARIF 2.1).
func readSARIF(text string, l *list) bool {
	if !strings.Contains(text, `"runs"`) {
		return false
	}
	known := false
	paths := [][]string{{"runs", "*", "tool", "driver", "rules"}, {"runs", "*", "results", "*"}, {"runs", "*", "invocations", "*"}, {"version"}}
	forEachDocument(text, func(d *json.Decoder) bool {
		log := sarifLog{list: l}
		complete := forEachElement(d, paths, log.element)
		log.addEarly(complete)
		known = known || log.known
		return complete
	})
	return known
}

func (l *sarifLog) element(path []string, value json.RawMessage) {
	switch path[len(path)-1] {
	case "version":
		l.known = l.known || strings.HasPrefix(string(value), `"2.`)
	case "rules":
		before := len(l.early) > 0
		l.rules = nil
		l.known = json.Unmarshal(value, &l.rules) == nil || l.known
		if before { // then the results of the next run come before its rules, too
			l.addEarly(true)
			l.rules = nil
		}
	case "*":
		l.result(path[len(path)-2], value)
	}
}

func (l *sarifLog) result(kind string, value json.RawMessage) {
	var r sarifResult
	var of sarifInvocation
	switch {
	case kind == "invocations" && json.Unmarshal(value, &of) == nil:
		for _, n := range slices.Concat(of.Execution, of.Configuration) {
			if n.Level == "error" {
				l.known = true
				i := n.item(nil)
				i.rank = crash
				l.add(i)
			}
		}
	case kind == "results" && json.Unmarshal(value, &r) == nil && r.counts():
		l.known = true
		if l.rules == nil {
			l.early = append(l.early, r)
			return
		}
		l.add(r.items(l.rules)...)
	}
}

// If the document is not complete, results without a text of their own are not findings.
func (l *sarifLog) addEarly(complete bool) {
	for _, r := range l.early {
		if complete || r.Message.Text != "" {
			l.add(r.items(l.rules)...)
		}
	}
	l.early = nil
}

// Such a problem is neither solved nor suppressed.
func (r sarifResult) counts() bool {
	accepted := slices.ContainsFunc(r.Suppressions, func(s struct{ Status string }) bool { return s.Status == "" || s.Status == "accepted" })
	return !accepted && r.BaselineState != "absent" && (r.Kind == "" || r.Kind == "fail" || r.Kind == "open" || r.Kind == "review")
}

// One result may be a compiler's output.
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

// Only the rule's ID may be known.
func (r sarifResult) rule(rules []sarifRule) sarifRule {
	id, index := cmp.Or(r.RuleID, r.Rule.ID, r.Descriptor.ID), r.RuleIndex
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

func withRule(message, rule string) string {
	message = strings.TrimSpace(message)
	first, rest, _ := strings.Cut(message, "\n")
	if rule != "" && !strings.Contains(first, rule) {
		first += " (" + rule + ")"
	}
	return strings.TrimSuffix(first+"\n"+rest, "\n")
}
