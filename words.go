package hone

import (
	"math"
	"strings"

	"hone/history"
	"hone/internal/reply"
	"hone/model"
)

// What a model said last is shown to the user when the run ends, and told to the model when
// its next session begins (ruling G19). It often is the only text that says what is in the
// way.

const maxWords = 800

// lastReply returns what a role said last in a round, in one of its first sessions; without a
// name, the role that was asked first in the round. ok is false if it did not reply.
func (r *Run) lastReply(round, sessions int, name string) (got model.Reply, ok bool, err error) {
	var last *history.Replied
	for _, e := range r.Past().Events() {
		if e.Step == nil || e.Step.Round != round || e.Step.Session > sessions {
			continue
		}
		switch v := e.Payload.(type) {
		case history.Asked:
			if name == "" {
				name = v.Role
			}
		case history.Replied:
			if v.Role == name {
				last = &v
			}
		}
	}
	if last == nil {
		return got, false, nil
	}
	got, err = r.reply(*last)
	return got, err == nil, err
}

func (r *Run) words(got model.Reply) string {
	text := strings.TrimSpace(reply.Answer(got.Text(), nil))
	if r.Words != nil {
		text = r.Words(text)
	}
	if text == "" && !got.Finish.Normal() {
		text = got.Detail
	}
	text = strings.Join(strings.Fields(text), " ")
	if all := []rune(text); len(all) > maxWords {
		text = strings.TrimSpace(string(all[:maxWords])) + " …"
	}
	return text
}

func (r *Run) lastWords() (string, error) {
	for round := r.Past().Facts().LastRound; round > 0; round-- {
		if got, ok, err := r.lastReply(round, math.MaxInt, ""); ok || err != nil {
			return r.words(got), err
		}
	}
	return "", nil
}

// LastSession tells a role what its last session did and how it ended, if it had one in this
// round or in the one before; empty if it had none. If it may have had one in this round,
// LastSession must be called within a step.
func (r *Run) LastSession(role Role) (string, error) {
	round := r.at.Round
	got, ok, err := r.lastReply(round, r.sessions, role.Name)
	if !ok && err == nil {
		round--
		got, ok, err = r.lastReply(round, math.MaxInt, role.Name)
	}
	if !ok {
		return "", err
	}
	deltas, err := r.Past().Changes(round, r.Journal.Home().Get)
	if err != nil {
		return "", err
	}
	var paths []string
	for _, d := range deltas {
		if !r.isOwn(d.Path) {
			paths = append(paths, d.Path)
		}
	}
	text := "Your last session changed "
	if paths = role.visiblePaths(paths); len(paths) > 0 {
		text += listed(paths)
	} else {
		text += "nothing"
	}
	if cut, ok, err := r.cutShort(round, role.Name); ok || err != nil {
		return text + ", and was ended, because " + cut.Why + ".", err
	}
	if said := r.words(got); said != "" {
		return text + ", and said: " + said, nil
	}
	return text + ", and said nothing.", nil
}

const stepCutShort = "cut short"

type cutShort struct {
	Role  string `json:"role"`
	Model string `json:"model"`
	Why   string `json:"why"`
	history.Report
}

func (r *Run) cutShort(round int, name string) (c cutShort, ok bool, err error) {
	for _, e := range r.Past().Records(stepCutShort) {
		if e.Step.Round != round {
			continue
		}
		one, err := result[cutShort](r, e.Event)
		if err != nil {
			return c, false, err
		}
		if name == "" || one.Role == name {
			c, ok = one, true
		}
	}
	return c, ok, nil
}
