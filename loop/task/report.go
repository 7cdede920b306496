package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/lazyregexp"
	"hone/internal/render"
	"hone/internal/reply"
	"hone/workspace"
)

// status is what an execution agent reports about the task. It only decides whether
// the check runs; it does not make the task done.
type status string

const (
	unknown    status = ""
	complete   status = "COMPLETE"
	incomplete status = "INCOMPLETE"
)

const tag = "<final_answer>"

type answer struct {
	Status status
	Next   []string // the steps that remain according to the agent, in order
}

func parseAnswer(text string) answer {
	text, _ = finalText(text)
	return answer{statusIn(text), nextSteps(strings.Split(text, "\n"))}
}

// If there are several final answers the last one counts, because models think aloud (ruling S2). tagged means that the text
// begins after its tag.
func finalText(text string) (final string, tagged bool) {
	text = strings.ReplaceAll(reply.Answer(text, nil), "\r\n", "\n")
	if i := strings.LastIndex(text, tag); i >= 0 && statusIn(text[i+len(tag):]) != unknown {
		return text[i+len(tag):], true
	}
	return text, false
}

// The tags and the status are for hone.
func said(text string) string {
	text, tagged := finalText(text)
	if tagged {
		text, _, _ = strings.Cut(text, "</"+tag[1:])
	}
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return statusOf(line) != unknown })
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func statusIn(text string) status {
	for line := range strings.SplitSeq(text, "\n") {
		if s := statusOf(line); s != unknown {
			return s
		}
	}
	return unknown
}

var (
	// ornament matches what may precede a label: tags, quote marks, headings, list
	// marks and emphasis.
	ornament = lazyregexp.New("^(?:\\s|</?final_answer>|[>#*_`•–+-]|[0-9]+[.)]\\s)*")
	// statusLabel matches the label and the status.
	statusLabel = lazyregexp.New("(?i)^STATUS[*_`\\s]*[:：][*_`\\s]*(IN)?COMPLETED?(?:[^\\pL\\pN]|$)")
	anyStatus   = lazyregexp.New("(?i)\\bSTATUS[*_`\\s]*[:：]")
	nextLabel   = lazyregexp.New("(?i)^NEXT STEPS[*_`\\s]*(?:[:：]|$|[(–—-])")
	// item matches an item of a list. The groups are what is in a check box, and the text.
	item = lazyregexp.New(`^(?:(?:[-+*•–]\s+|[-•]|[0-9]+[.)]\s+)(?:\[([ xX]?)\]\s+)?|[0-9]+[.)])(\D.*)$`)
	// ending matches what ends a list: a heading, a tag, a fence, a rule, a label alone on its line.
	ending = lazyregexp.New("^(?:#|</|```|~~~|(?:[-*_] ?){3,}$|[*_`]*\\pL[^.!?:：]{0,60}[:：][*_`\\s]*$)")
	words  = lazyregexp.New(`[\pL\pN]`)
)

// A line that names two, such as the instruction itself, states none.
func statusOf(line string) status {
	line = ornament.ReplaceAllString(line, "")
	found := statusLabel.FindStringSubmatch(line)
	switch {
	case found == nil || len(anyStatus.FindAllString(line, 2)) > 1:
		return unknown
	case found[1] != "":
		return incomplete
	}
	return complete
}

// Lines before the list are ignored; lines that continue an item belong to it. Items that are ticked off or say only that nothing
// is left are left out.
func nextSteps(lines []string) (left []string) {
	at := slices.IndexFunc(lines, func(line string) bool { return nextLabel.MatchString(ornament.ReplaceAllString(line, "")) })
	if at < 0 {
		return nil
	}
	_, rest, _ := strings.Cut(ornament.ReplaceAllString(lines[at], ""), ":")
	items, ticked, gap := []string{strings.Trim(rest, "*_` \t")}, []bool{false}, false
list:
	for _, line := range lines[at+1:] {
		text := strings.TrimSpace(line)
		m := item.FindStringSubmatch(text)
		switch {
		case m != nil && words.MatchString(m[2]):
			items, ticked = append(items, strings.TrimSpace(m[2])), append(ticked, strings.EqualFold(m[1], "x"))
		case text == "", len(items) == 1 && !strings.HasPrefix(text, "#"):
		case len(items) == 1, ending.MatchString(text), statusOf(text) != unknown, gap && strings.TrimLeft(line, " \t") == line:
			break list
		default:
			items[len(items)-1] += " " + text
		}
		gap = text == ""
	}
	for i, text := range items {
		if !ticked[i] && words.MatchString(text) && !meansNone(text) {
			left = append(left, text)
		}
	}
	return left
}

func meansNone(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .()[]*_`-")) {
	case "none", "nothing", "n/a", "na", "null", "nil", "no", "none remaining", "no blocker", "no blockers":
		return true
	}
	return false
}

// A text without calls, such as "Let me start by …", is not a final answer yet.
func answerProblem(text string) string {
	if strings.Contains(text, tag) || statusIn(text) != unknown {
		return ""
	}
	return "That reply calls no tool, but it is not your final answer either. Continue with tool calls; or, if you are done or cannot continue, " +
		"give your final answer between " + tag + " and </final_answer>."
}

// LoopSummary states what an execution session verifiably did, computed from its
// calls and never from the model's report. The calls of a command-line agent are not
// known; its summary is computed from the files before and after the session.
type LoopSummary struct {
	Loop   int    `json:"loop"`
	Agent  bool   `json:"agent,omitempty"`
	Ended  string `json:"ended"`            // how the session ended: one of hone's words
	Detail string `json:"detail,omitempty"` // why an agent's output is unreadable

	Written  []string `json:"files_written,omitempty"` // created, for an agent
	Edited   []string `json:"files_edited,omitempty"`
	Deleted  []string `json:"files_deleted,omitempty"`  // by an agent
	Unlisted int      `json:"files_unlisted,omitempty"` // how many more files an agent changed
	Read     []string `json:"files_read,omitempty"`     // each file as often as it was read
	Commands []string `json:"commands_run,omitempty"`
	// SinceChange is the number of the last Commands that ran after the last write or edit.
	SinceChange int      `json:"commands_since_change,omitempty"`
	Errors      []string `json:"errors,omitempty"`
	// Rejected lists calls that were not run.
	Rejected []string `json:"rejected,omitempty"`
}

// The tools whose calls are listed. Of other tools only errors are.
const (
	toolRead  = "read"
	toolWrite = "write"
	toolEdit  = "edit"
	toolBash  = "bash"
)

// A successful call of a tool that is not listed above adds nothing.
func (s *LoopSummary) add(c hone.Called) {
	subject := subjectOf(c.Args)
	call := fmt.Sprintf("%s(%s)", line(c.Name, 40), line(subject, 200))
	switch {
	case c.Refused != "":
		s.Rejected = append(s.Rejected, call+": "+c.Refused)
	case c.Result.Refused:
		s.Rejected = append(s.Rejected, call+": "+line(strings.TrimPrefix(c.Result.Text, "Error: "), 80))
	case c.Result.Failed:
		s.Errors = append(s.Errors, call+": "+line(c.Result.Text, 80))
	case c.Name == toolRead:
		s.Read = append(s.Read, line(subject, 1000))
	case c.Name == toolWrite:
		s.Written = append(s.Written, line(subject, 1000))
		s.SinceChange = 0
	case c.Name == toolEdit:
		s.Edited = append(s.Edited, line(subject, 1000))
		s.SinceChange = 0
	case c.Name == toolBash:
		first, _, _ := strings.Cut(c.Result.Text, "\n")
		s.Commands = append(s.Commands, line(subject, 200)+"  →  "+line(first, 60))
		s.SinceChange++
	}
}

func (s LoopSummary) empty() bool {
	return len(s.Written)+len(s.Edited)+len(s.Deleted)+len(s.Read)+len(s.Commands)+len(s.Errors) == 0
}

func subjectOf(args string) string {
	var a struct{ Path, Command, Pattern any }
	if json.Unmarshal([]byte(args), &a) != nil {
		return args
	}
	for _, v := range []any{a.Path, a.Command, a.Pattern} {
		if text, ok := v.(string); ok {
			return text
		}
	}
	return ""
}

// A model's text must not be mistaken for a line of hone's.
func line(text string, most int) string {
	return render.Cut(render.Line(strings.Join(strings.Fields(text), " ")), most)
}

// agentsOwn replaces the list of calls in the session of an agent.
const agentsOwn = "an agent with tools of its own: its calls are not known"

// maxListed limits how many of an agent's changed files are listed by name.
const maxListed = 300

func changedFiles(ctx context.Context, r *hone.Run) ([]workspace.Delta, error) {
	before, err := history.ReadManifest(r.Past().Round(r.Round()).Manifest, r.Journal.Home().Get)
	if err != nil {
		return nil, err
	}
	now, err := r.Manifest(ctx)
	return changes(r, before, now), err
}

func changes(r *hone.Run, before, after workspace.Manifest) []workspace.Delta {
	return slices.DeleteFunc(before.Diff(after), func(d workspace.Delta) bool { return r.Own != nil && r.Own(d.Path) })
}

// The engine keeps the findings of a check that ran on an older tree while pending items keep the check from running, but the
// executor may have fixed them since.
func currentFindings(r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	past := r.Past().Facts()
	s, checked := past.State, past.LastCheck
	if checked == nil || len(s.Checked) == 0 || checked.Manifest == s.Manifest {
		return prior, nil
	}
	then, err := history.ReadManifest(checked.Manifest, r.Journal.Home().Get)
	if err != nil {
		return nil, err
	}
	now, err := history.ReadManifest(s.Manifest, r.Journal.Home().Get)
	if err != nil || len(changes(r, then, now)) == 0 {
		return prior, err
	}
	return slices.Concat(s.RoundFindings(), prior[len(s.Findings):]), nil
}

func (s *LoopSummary) addFile(d workspace.Delta) {
	if len(s.Written)+len(s.Edited)+len(s.Deleted) >= maxListed {
		s.Unlisted++
		return
	}
	into := &s.Edited
	switch d.Op() {
	case workspace.Added:
		into = &s.Written
	case workspace.Removed:
		into = &s.Deleted
	}
	*into = append(*into, line(d.Path, 1000))
}
