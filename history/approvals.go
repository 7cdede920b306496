package history

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"hone/journal"
	"hone/workspace"
)

type approvals struct {
	pending  []Question      // that no user could be asked, one for each path
	asking   *Question       // that a user is asked, or was when the process ended
	asked    []Question      // what the model asks, in order
	told     int             // the last round whose model did not know all answers to these; 0: there is none
	given    map[edit]Answer // until the edit is made
	changes  map[int]map[string]workspace.Verdict
	last     map[string]workspace.Verdict // of each path, in any round
	late     map[edit]bool                // that were applied after a question was asked again
	edited   map[edit]edit                // by the user's version, what it was made of
	reopened bool                         // a question was asked again and answered since the last decision
}

// edit identifies what a question is about: edits that do the same to the same file are
// equal.
type edit struct{ asks, path, before, after string }

func editOf(v workspace.Verdict) edit { return edit{"", v.Path, v.Before.Digest, v.After.Digest} }

func (q Question) edit() edit { return edit{q.Asks, q.Path, q.Before.Digest, q.After.Digest} }

func (p *Past) foldApprovals(e Event) {
	switch v := e.Payload.(type) {
	case Question:
		p.asking = &v
	case Answer:
		p.asking = nil
		begin, _ := p.begin(*e.Step)
		if q, ok := begin.Payload.(Question); ok {
			p.answer(q, v, *e.Step)
		}
	case Changed:
		p.change(e.Step.Round, v)
	case Applied:
		p.applied(v, e.Step.Session < 0)
	case State:
		p.reopened = false
	case Undone:
		p.asking = nil
	}
}

// The session of a question that is asked again is negative.
func (a *approvals) answer(q Question, v Answer, at journal.Identity) {
	late := at.Session < 0
	if q.Asks != "" {
		if !slices.ContainsFunc(a.asked, func(other Question) bool { return other.Asks == q.Asks }) {
			a.asked = append(a.asked, q)
		}
		if v.By == NoUser {
			return
		}
		a.given[q.edit()], a.told = v, at.Round
		if !late { // asked before the model of this round
			a.told--
		}
		return
	}
	if v.By == NoUser {
		a.close(q.Path)
		a.pending = append(a.pending, q)
		return
	}
	if v.Edited.Exists() {
		a.edit(q, v.Edited)
		return
	}
	v.Rest = false
	if v.Approved { // the question stays open until its edit is made
		a.given[q.edit()] = v
		return
	}
	for _, key := range a.versions(q.edit()) {
		a.given[key] = v
	}
	a.close(q.Path)
	a.reopened = a.reopened || late
}

func (a *approvals) edit(q Question, after workspace.Image) {
	was := q.edit()
	i := slices.IndexFunc(a.pending, func(p Question) bool { return p.edit() == was })
	q.After, q.Edited = after, true
	a.edited[q.edit()] = was
	if i >= 0 {
		a.pending = slices.Clone(a.pending)
		a.pending[i] = q
	}
}

// versions returns an edit, and those that the user made it from.
func (a *approvals) versions(of edit) []edit {
	all := []edit{of}
	for {
		from, ok := a.edited[of]
		if !ok || slices.Contains(all, from) {
			return all
		}
		all, of = append(all, from), from
	}
}

func (a *approvals) change(round int, c Changed) {
	if a.changes[round] == nil {
		a.changes[round] = map[string]workspace.Verdict{}
	}
	a.changes[round][c.Path], a.last[c.Path] = c.Verdict, c.Verdict
	if c.Ruling == workspace.Allow {
		a.close(c.Path)
	}
}

func (a *approvals) applied(v Applied, late bool) {
	for path := range v.Denied {
		a.close(path)
	}
	for _, made := range v.Verdicts {
		a.close(made.Path)
		delete(a.given, editOf(made))
		if late {
			a.reopened = true
			for _, key := range a.versions(editOf(made)) {
				a.late[key] = true
			}
		}
	}
}

func (a *approvals) close(path string) {
	a.pending = slices.DeleteFunc(slices.Clone(a.pending), func(q Question) bool { return q.Path == path })
}

func (a *approvals) declined(v workspace.Verdict) bool {
	open := slices.ContainsFunc(a.pending, func(q Question) bool { return q.Path == v.Path })
	return !open && (v.Ruling == workspace.Declined || v.Ruling == workspace.Pending) && !a.late[editOf(v)]
}

// Digest returns the digest, in hex, of a question of a run, over everything that the user
// must see to answer it. A question that is asked again has the same digest.
func (q Question) Digest(run string) string {
	b, _ := json.Marshal(q) // it holds texts and figures only
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte(run+"\n"), b...)))
}

// Pending returns the questions that no user could be asked yet: the last one
// about each file, in the order in which they came up; nil if there are none.
// The file may have changed since.
func (p *Past) Pending() []Question {
	defer p.lock().Unlock()
	return slices.Clone(p.pending)
}

// Asking returns the question that the user is being asked, or was being asked when the
// process of the run ended; nil if there is none. A resume asks it again.
func (p *Past) Asking() *Question {
	defer p.lock().Unlock()
	return p.asking
}

// Waiting returns the questions that the user can answer before the run is resumed: the
// pending ones, what the model asked without an answer, and the question that the user was
// being asked when the process ended.
func (p *Past) Waiting() []Question {
	all, asking := p.Pending(), p.Asking()
	for _, q := range p.Asked() {
		if _, answered := p.AnswerTo(q); !answered {
			all = append(all, q)
		}
	}
	if asking == nil {
		return all
	}
	all = slices.DeleteFunc(all, func(q Question) bool { return q.edit() == asking.edit() })
	return append(all, *asking)
}

// Asked returns what the model has asked the user so far (ruling B15), in order, with an
// answer or without; nil if it has asked nothing.
func (p *Past) Asked() []Question {
	defer p.lock().Unlock()
	return slices.Clone(p.asked)
}

// AnswerTo returns the user's answer to the same question: about the same file,
// with the same contents before and after, or in the same words. ok is false if there is none, or if
// it was a yes and the edit was made since.
func (p *Past) AnswerTo(q Question) (a Answer, ok bool) {
	defer p.lock().Unlock()
	a, ok = p.given[q.edit()]
	return a, ok
}

// Declined reports whether an edit of a round was not made because its approval
// was denied. It leaves out pending questions.
func (p *Past) Declined(round int) bool {
	defer p.lock().Unlock()
	for _, v := range p.changes[round] {
		if p.declined(v) {
			return true
		}
	}
	return false
}

// DeclinedPaths returns the files whose last edit was declined, sorted. It
// leaves out pending questions.
func (p *Past) DeclinedPaths() []string {
	defer p.lock().Unlock()
	var paths []string
	for _, path := range slices.Sorted(maps.Keys(p.last)) {
		if p.declined(p.last[path]) {
			paths = append(paths, path)
		}
	}
	return paths
}

const maxRefusals = 3

// Refusals returns which edits were refused, and not made later, and why: a line each, and
// one for those that are more than a few. It leaves out what the user declined.
func (p *Past) Refusals() []string {
	defer p.lock().Unlock()
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(p.last)) {
		if v := p.last[path]; v.Ruling == workspace.Deny {
			lines = append(lines, path+" is refused: "+v.Reason)
		}
	}
	if more := len(lines) - maxRefusals; more > 1 {
		lines = append(lines[:maxRefusals], fmt.Sprintf("%d more edits are refused", more))
	}
	return lines
}

// Reopened reports whether a question was asked again and answered since the
// last decision. Then there is something new to decide about.
func (p *Past) Reopened() bool {
	defer p.lock().Unlock()
	return p.reopened
}
