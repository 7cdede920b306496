package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"hone/cmd/hone/recorded"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/render"
	"hone/model"
	"hone/tool"
)

// Transcript shows a recorded run event by event.
type Transcript struct {
	Out     io.Writer
	Screen  *screen.Screen // on Out; it shows what it would show of a run that works
	Colour  render.Colours
	Columns int // of the terminal; 0 if Out is none

	Round int  // the only one that is shown; 0 means all
	Text  bool // also the model's text
	Full  bool // also complete requests, replies, calls and results
	Brief bool // without the hash of the journal, and how to show commits

	shown int // events
}

// Show shows the events of a run that the last call did not show.
func (t *Transcript) Show(r *recorded.Run) (err error) {
	round := 0
	for i, e := range r.Past.Events() {
		if e.Step != nil {
			round = e.Step.Round
		}
		if i < t.shown || t.Round != 0 && roundOf(e, round) != t.Round {
			continue
		}
		if p, ok := e.Payload.(history.Replied); ok && t.Text {
			if err := t.showReply(p, r.Home.Get); err != nil {
				return err
			}
		}
		t.Screen.Show(e)
		t.Screen.Around(func() { err = t.showDetails(r, e) })
		if err != nil {
			return err
		}
	}
	t.shown = len(r.Past.Events())
	return nil
}

// roundOf returns the round that an event is shown in. An event about an attempt
// at a call, or about a server, names no round. It belongs to the open round.
func roundOf(e history.Event, open int) int {
	switch e.Payload.(type) {
	case history.Commit, history.Retried, history.Served:
		return open
	}
	return e.Round()
}

// showDetails shows what the screen of a running loop omits.
func (t *Transcript) showDetails(r *recorded.Run, e history.Event) error {
	switch p := e.Payload.(type) {
	case history.Resumed:
		fmt.Fprintf(t.Out, "resumed at %s\n", e.Time.Local().Format("2006-01-02 15:04:05"))
	case history.End:
		active := (time.Duration(e.Active) * time.Millisecond).Round(100 * time.Millisecond)
		RecordedEnding(r, p, active).Print(t.Out, t.Colour, t.Columns)
		if t.Brief {
			return nil
		}
		fmt.Fprintf(t.Out, "hash of the journal: %s\n", e.Hash())
	case history.StepResult:
		if !t.Brief {
			return t.showCommit(e)
		}
	default:
		if t.Full {
			return t.showFull(e, r.Home.Get)
		}
	}
	return nil
}

// showFull shows a complete request, reply, tool call or result.
func (t *Transcript) showFull(e history.Event, get history.Get) error {
	switch p := e.Payload.(type) {
	case history.Asked:
		return t.showRequest(p, get)
	case history.Replied:
		reply, err := history.ReadReply(p, get)
		if err == nil {
			t.showParts("reply", reply.Parts)
		}
		return err
	case history.ToolCall:
		args, err := p.Arguments(get)
		if err == nil {
			t.showText("call of "+render.Line(p.Tool), args)
		}
		return err
	case history.ToolResult:
		result, err := history.ReadResult[tool.Result](e.Event, get)
		if err == nil {
			t.showText("result", result.Text)
		}
		return err
	}
	return nil
}

// showCommit prints the command that shows the diff of a commit. No other diff
// contains the changes that commands made in that repository.
func (t *Transcript) showCommit(e history.Event) error {
	made, err := history.ReadResult[struct {
		Repo string `json:"repo"`
		ID   string `json:"id"`
	}](e.Event, nil)
	if e.Step.Name != "commit" || err != nil || made.ID == "" {
		return nil
	}
	_, err = fmt.Fprintf(t.Out, "    git -C %s show %.12s\n", render.Line(made.Repo), render.Line(made.ID))
	return err
}

// showRequest shows a request. If the request continues a session, it shows only
// the new messages.
func (t *Transcript) showRequest(asked history.Asked, get history.Get) error {
	request, err := history.ReadRequest(asked.Request, get)
	if err != nil {
		return err
	}
	switch {
	case request.Repeated > 0:
		if request.Request, err = history.ReadWholeRequest(asked.Request, get); err != nil {
			return err
		}
	case request.After != "":
		fmt.Fprintln(t.Out, "---- the earlier request, followed by: ----")
	}
	t.showText("system", request.System)
	for _, one := range request.Tools {
		t.showText("tool "+render.Line(one.Name), one.Description)
	}
	for _, m := range request.Messages {
		t.showParts(string(m.Role), m.Parts)
	}
	return nil
}

// showParts shows the parts of a message. It only names results and calls,
// because their own events show them in full.
func (t *Transcript) showParts(who string, parts []model.Part) {
	for _, p := range parts {
		t.showText(who, p.Text)
		if p.Result != nil {
			t.showText(who, fmt.Sprintf("(the result of %s, %s of it)", p.Result.Name, render.Bytes(int64(len(p.Result.Text)))))
		}
		if p.Call != nil {
			t.showText(who, fmt.Sprintf("(calls %s: %s)", p.Call.Name, render.Bytes(int64(len(p.Call.Args)))))
		}
	}
}

// showReply shows the text of a reply as it was shown when it arrived.
func (t *Transcript) showReply(replied history.Replied, get history.Get) error {
	r, err := history.ReadReply(replied, get)
	if text := r.Text(); text != "" {
		t.Screen.Text(strings.TrimRight(text, "\n"))
	}
	return err
}

func (t *Transcript) showText(who, text string) {
	if text != "" {
		fmt.Fprintf(t.Out, "---- %s ----\n%s\n", who, render.Escape(text))
	}
}
