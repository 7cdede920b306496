package eval

import (
	"slices"

	"hone"
	"hone/check"
	"hone/group"
	"hone/history"
	"hone/model"
	"hone/tool"
	"hone/workspace"
)

type reply struct{ round, session, turn int }

// malformed are the replies that hone could not read, or with a call of a tool that it could not read; refused those with an
// edit that it did not make.
func faultsOf(o group.Outcome, dir string) (malformed, refused int, err error) {
	home, err := group.OpenHome(dir)
	if home == nil {
		return 0, 0, err
	}
	defer home.Close()
	bad, denied, known := map[reply]bool{}, map[reply]bool{}, map[int]bool{}
	note := func(replies map[reply]bool, e history.Event, is bool) {
		if is {
			replies[reply{e.Step.Round, e.Step.Session, e.Step.Turn}] = true
			known[e.Step.Round] = true
		}
	}
	for _, e := range o.Past.Events() {
		if e.Step == nil {
			continue
		}
		switch p := e.Payload.(type) {
		case history.Replied:
			note(bad, e, p.Finish != model.Stop && p.Finish != model.Calls)
		case history.ToolCall:
			note(bad, e, p.Refused == hone.RefusedJSON || p.Refused == hone.RefusedName)
		case history.ToolResult:
			begin, _ := o.Past.Begin(*e.Step)
			if call, ok := begin.Payload.(history.ToolCall); ok && call.Refused == "" && (call.Tool == "write" || call.Tool == "edit") {
				result, err := history.ReadResult[tool.Result](e.Event, home.Get)
				note(denied, e, err == nil && result.Failed)
			}
		case history.StepResult:
			if e.Step.Name == history.StepReview {
				review, err := history.ReadResult[history.Reviewed](e.Event, home.Get)
				note(denied, e, err == nil && slices.ContainsFunc(review.Verdicts, func(v workspace.Verdict) bool {
					return v.Ruling == workspace.Deny || v.Ruling == workspace.Unread
				}))
			}
		}
	}
	// Replies of rounds without a conversation may have another form than the loop wants.
	for _, s := range o.Past.Facts().States {
		if !known[s.Round] && slices.ContainsFunc(s.Findings, func(g check.Finding) bool { return g.Source == check.SourceReply }) {
			bad[reply{round: s.Round}] = true
		}
	}
	return len(bad), len(denied), nil
}
