package hone

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/model"
)

// What a model said last is shown to the user when the run ends, and told to the model when
// its next session begins (ruling G19). It often is the only text that says what is in the
// way.

// maxWords limits the characters of a model's last words.
const maxWords = 800

// lastReply returns what a role said last in a round, in one of its first sessions; without a
// name, the role that was asked first in the round. ok is false if it did not reply.
func (r *Run) lastReply(round, sessions int, name string) (got model.Reply, ok bool, err error) {
	var last history.Replied
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
				last = v
			}
		}
	}
	if last.Reply == "" {
		return got, false, nil
	}
	got, err = r.reply(last)
	return got, err == nil, err
}

func (r *Run) words(got model.Reply) string {
	text := answerText(got)
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
	for round := r.Past().LastRound(); round > 0; round-- {
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
	back, err := r.takenBack(round)
	if err != nil {
		return "", err
	}
	var paths []string
	for _, d := range deltas {
		if (r.Own == nil || !r.Own(d.Path)) && !slices.Contains(back, d.Path) {
			paths = append(paths, d.Path)
		}
	}
	text := "Your last session changed nothing"
	if back = role.visiblePaths(back); len(back) > 0 {
		text = "hone took back what you had changed in " + listed(back) + ": the user has not allowed it. Apart from that, your last session changed nothing"
	}
	if paths = role.visiblePaths(paths); len(paths) > 0 {
		text = strings.TrimSuffix(text, "nothing") + listed(paths)
	}
	if cut, ok, err := r.cutShort(round, role.Name); ok || err != nil {
		return text + ", and was ended, because " + cut.Why + ".", err
	}
	if said := r.words(got); said != "" {
		return text + ", and said: " + said, nil
	}
	return text + ", and said nothing.", nil
}

func (r *Run) takenBack(round int) (paths []string, err error) {
	declined := r.Past().DeclinedPaths()
	for _, e := range r.Past().Records(askName) {
		if e.Step.Round != round {
			continue
		}
		asked, err := result[judgesAsked](r, e.Event)
		if err != nil {
			return nil, err
		}
		for _, t := range asked.Back {
			if slices.Contains(declined, t.Path) {
				paths = append(paths, t.Path)
			}
		}
	}
	return paths, nil
}

// maxWaste is how many turns in a row of a session may bring nothing.
const maxWaste = 3

// stepCutShort ends a session that brings nothing.
const stepCutShort = "cut short"

// cutShort is the record of a session that was ended because it brought nothing.
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

func (t *talk) noteDiscarded(ctx context.Context, got model.Reply) error {
	if got.Finish.Normal() {
		t.discarded = 0
		return nil
	}
	if t.discarded++; t.discarded < maxWaste || t.Ended != "" {
		return nil
	}
	why := fmt.Sprintf("%d replies in a row did not end normally", t.discarded)
	switch got.Finish {
	case model.Filtered:
		why = fmt.Sprintf("the model refused, or its provider filtered, %d replies in a row", t.discarded)
	case model.Length:
		why = fmt.Sprintf("%d replies in a row reached the output limit", t.discarded)
	}
	t.Ended = EndedDiscarded
	return t.cut(ctx, why)
}

func (t *talk) noteFailures(ctx context.Context, results []Called) error {
	key := ""
	for _, c := range results {
		if !c.Result.Failed && (c.Result.Exit == nil || *c.Result.Exit == 0) {
			t.failing, t.failures = "", 0
			return nil
		}
		key += c.Name + "\x00" + compact(c.Args) + "\x00" + check.Normalize(c.Result.Text) + "\x00"
	}
	if t.failing != key {
		t.failing, t.failures = key, 0
	}
	if t.failures++; t.failures < maxWaste || t.Ended != "" {
		return nil
	}
	t.Ended = EndedRepeats
	return t.cut(ctx, fmt.Sprintf("it made the same failing call of %s %d times in a row", results[0].Name, t.failures))
}

// If the role has another model, that one does the next round.
func (t *talk) cut(ctx context.Context, why string) error {
	now, next := t.r.inService(t.role)
	c, err := Step(ctx, t.r, stepCutShort, nil, func(context.Context) (cutShort, error) {
		return cutShort{Role: t.role.Name, Model: now.Called, Why: why, Report: history.Report{Said: "the session of the " + t.role.Name + " is ended: " + why}}, nil
	})
	if err != nil || next == "" || t.r.Past().HasFailed(c.Model) {
		return err
	}
	return t.r.failOver(now, next, "its session was ended: "+c.Why)
}
