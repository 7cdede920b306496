package reader

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// lintMessage is a message of eslint, ruff or staticcheck, or eslint's messages about one file.
type lintMessage struct {
	FilePath          string
	Messages          []lintMessage
	RuleID, Code      string
	Severity          any // a number for eslint
	Message, Filename string
	Line              int
	Fatal             bool
	Location          struct {
		File      string
		Line, Row int
	}
}

// The message may name the file itself.
func (m lintMessage) item(file string) item {
	rule := cmp.Or(m.RuleID, m.Code)
	i := item{rank: failure, rule: rule, file: cmp.Or(file, m.Filename, m.Location.File), line: cmp.Or(m.Line, m.Location.Line, m.Location.Row), text: withRule(m.Message, rule)}
	severity, named := m.Severity.(string)
	switch {
	case m.Fatal, m.Filename != "" && (rule == "" || rule == "invalid-syntax"):
		i.rank = crash
	case named && severity != "":
		i.rank = rankOf(severity)
	case m.Severity == 1.0:
		i.rank = warning
	}
	return i
}

// The messages are elements of an array, or each is a document.
func (l *list) addMessages(text, mark string, is func(lintMessage) bool) {
	if !strings.Contains(text, mark) {
		return
	}
	for _, path := range [][]string{{"*"}, nil} {
		forEachValue(text, path, func(m lintMessage) {
			switch i := m.item(""); {
			case !is(m):
			case m.FilePath != "":
				for _, one := range m.Messages {
					l.add(one.item(m.FilePath))
				}
			default:
				l.addCompiled(i, m.Message)
			}
		})
	}
}

var eslintLine = lazyregexp.New(`^ +(?P<line>\d{1,9}):\d{1,9} +(?P<severity>error|warning) +(?P<text>\S.*?)(?:  +(?P<rule>\S+))?$`)

// eslintOops is how eslint begins to say that it crashed: a rule did, in its code, or the configuration is wrong.
const eslintOops = "Oops! Something went wrong! :(\n\nESLint: "

var eslintRule = lazyregexp.New(`(?m)^Rule: "(?P<rule>[^"\n]+)"$`)

// The output may be plain, JSON, or that of a crash.
func readESLint(text string, l *list) {
	for _, exception := range strings.Split(text, eslintOops)[1:] {
		_, exception, _ = strings.Cut(exception, "\n\n") // after the version
		exception, _, _ = strings.Cut(exception, "\n\n")
		i, _ := matched(eslintRule, exception)
		i.rank, i.text = crash, withRule("eslint crashed: "+exception, i.rule)
		i.file, i.line = locate(exception)
		l.add(i)
	}
	l.addMessages(text, `"filePath"`, func(m lintMessage) bool { return m.FilePath != "" })
	file := ""
	forEachLine(text, func(line string) {
		if line != "" && line[0] != ' ' {
			file = line
		} else if i, ok := matched(eslintLine, line); ok && file != "" {
			i.file = file
			l.add(i)
		}
	})
}

// ruffHead is the first line of a message in ruff's full output, with a rule's code or,
// with --preview, its name.
var ruffHead = lazyregexp.New(`^(?:(?P<severity>error|warning|info)\[(?P<rule>[\w-]+)\]:|(?P<rule2>[A-Z]{1,6}\d{1,5}|[a-z][a-z0-9-]*-[a-z0-9-]*):?) (?:\[[*-]\] )?(?P<text>\S.*)$`)

// The output may be JSON, lines of JSON, or ruff's full output.
func readRuff(text string, l *list) {
	l.addMessages(text, `"row"`, func(m lintMessage) bool { return m.Filename != "" && m.Location.Row > 0 })
	for _, s := range sections(text, func(line string) (string, bool) { return line, ruffHead.MatchString(line) }) {
		if i, ok := pointed(ruffHead, s); ok {
			if i.rule == "invalid-syntax" {
				i.rank = crash
			}
			l.add(i)
		}
	}
}

// It is the output of staticcheck -f json.
func readStaticcheck(text string, l *list) {
	l.addMessages(text, `"location"`, func(m lintMessage) bool {
		severity, named := m.Severity.(string)
		return named && severity != "ignored" && m.Code != "" && m.Filename == ""
	})
}

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

// forEachDocument calls read with a decoder at the start of each JSON document in a text: an
// object, or an array of objects, that begins a line. read leaves the decoder behind what
// it could read, and returns false if that is not JSON, or is cut.
func forEachDocument(text string, read func(d *json.Decoder) bool) {
	// After a document that cannot be read, its inner values are tried again: the
	// budget keeps that linear.
	budget := 8*len(text) + 1<<20
	for at := 0; at < len(text) && budget > 0; {
		if beginsDocument(text[at:]) {
			in := strings.NewReader(text[at:])
			d := json.NewDecoder(in)
			if !read(d) {
				budget -= len(text) - at - in.Len()
			}
			at += int(d.InputOffset())
		}
		end := strings.IndexByte(text[min(at, len(text)):], '\n')
		if end < 0 {
			return
		}
		at += end + 1
	}
}

func beginsDocument(text string) bool {
	after := strings.TrimLeft(text[1:], " \t\r\n")
	switch {
	case after == "":
		return false
	case text[0] == '{':
		return after[0] == '"' || after[0] == '}'
	}
	return text[0] == '[' && (after[0] == '{' || after[0] == ']')
}

// It calls each with every value at one of the paths below the one where the decoder is, in order. A path names keys; "*" is any
// element of an array. It returns false if the value is not complete or is not JSON: all elements before that were called.
func forEachElement(d *json.Decoder, at []string, paths [][]string, each func(path []string, value json.RawMessage)) bool {
	inside := false
	for _, p := range paths {
		if slices.Equal(p, at) {
			var value json.RawMessage
			if d.Decode(&value) != nil {
				return false
			}
			each(at, value)
			return true
		}
		inside = inside || len(p) > len(at) && slices.Equal(p[:len(at)], at)
	}
	if !inside {
		var skipped json.RawMessage
		return d.Decode(&skipped) == nil
	}
	token, err := d.Token()
	if err != nil {
		return false
	}
	delim, nested := token.(json.Delim)
	for nested && d.More() {
		key := "*"
		if delim == '{' {
			token, err := d.Token()
			if err != nil {
				return false
			}
			key, _ = token.(string)
		}
		if !forEachElement(d, append(at[:len(at):len(at)], key), paths, each) {
			return false
		}
	}
	if nested {
		_, err = d.Token()
	}
	return err == nil
}

func forEachValue[T any](text string, path []string, each func(T)) {
	forEachDocument(text, func(d *json.Decoder) bool {
		return forEachElement(d, nil, [][]string{path}, func(_ []string, raw json.RawMessage) {
			var v T
			if json.Unmarshal(raw, &v) == nil {
				each(v)
			}
		})
	})
}
