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
	told    int             // the last round whose model did not know all answers to these; 0: there is none
	given   map[edit]Answer // until the edit is made
	changes map[int]map[string]workspace.Verdict
	last    map[string]workspace.Verdict // of each path, in any round
	late    map[edit]bool                // that were applied after a question was asked again
	edited  map[edit]edit                // by the user's version, what it was made of
}

// edit identifies what a question is about: edits that do the same to the same file are
// equal.
type edit struct{ asks, path, before, after string }

func editOf(v workspace.Verdict) edit { return edit{"", v.Path, v.Before.Digest, v.After.Digest} }

func (q Question) edit() edit { return edit{q.Asks, q.Path, q.Before.Digest, q.After.Digest} }

func (p *Past) foldApprovals(e Event) {
	switch v := e.Payload.(type) {
	case Question:
		p.now.Asking = &v
	case Answer:
		p.now.Asking = nil
		begin, _ := p.begin(*e.Step)
		if q, ok := begin.Payload.(Question); ok {
			p.answer(q, v, *e.Step)
		}
	case Changed:
		p.change(e.Step.Round, v)
	case Applied:
		p.applied(v, e.Step.Session < 0)
	case State:
		p.now.Reopened = false
	case Undone:
		p.now.Asking = nil
	}
}

// The session of a question that is asked again is negative.
func (p *Past) answer(q Question, v Answer, at journal.Identity) {
	late := at.Session < 0
	if q.Asks != "" {
		if !slices.ContainsFunc(p.now.Asked, func(other Question) bool { return other.Asks == q.Asks }) {
			p.now.Asked = append(p.now.Asked, q)
		}
		if v.By == NoUser {
			return
		}
		p.given[q.edit()], p.told = v, at.Round
		if !late { // asked before the model of this round
			p.told--
		}
		return
	}
	if v.By == NoUser {
		p.close(q.Path)
		p.now.Pending = append(p.now.Pending, q)
		return
	}
	if v.Edited.Exists() {
		p.edit(q, v.Edited)
		return
	}
	v.Rest = false
	if v.Approved { // the question stays open until its edit is made
		p.given[q.edit()] = v
		return
	}
	for _, key := range p.versions(q.edit()) {
		p.given[key] = v
	}
	p.close(q.Path)
	p.now.Reopened = p.now.Reopened || late
}

func (p *Past) edit(q Question, after workspace.Image) {
	was := q.edit()
	i := slices.IndexFunc(p.now.Pending, func(open Question) bool { return open.edit() == was })
	q.After, q.Edited = after, true
	p.edited[q.edit()] = was
	if i >= 0 {
		p.now.Pending = slices.Clone(p.now.Pending)
		p.now.Pending[i] = q
	}
}

func (p *Past) versions(of edit) []edit {
	all := []edit{of}
	for {
		from, ok := p.edited[of]
		if !ok || slices.Contains(all, from) {
			return all
		}
		all, of = append(all, from), from
	}
}

func (p *Past) change(round int, c Changed) {
	if p.changes[round] == nil {
		p.changes[round] = map[string]workspace.Verdict{}
	}
	p.changes[round][c.Path], p.last[c.Path] = c.Verdict, c.Verdict
	if c.Ruling == workspace.Allow {
		p.close(c.Path)
	}
}

func (p *Past) applied(v Applied, late bool) {
	for path := range v.Denied {
		p.close(path)
	}
	for _, made := range v.Verdicts {
		p.close(made.Path)
		delete(p.given, editOf(made))
		if late {
			p.now.Reopened = true
			for _, key := range p.versions(editOf(made)) {
				p.late[key] = true
			}
		}
	}
}

func (p *Past) close(path string) {
	p.now.Pending = slices.DeleteFunc(slices.Clone(p.now.Pending), func(q Question) bool { return q.Path == path })
}

func (p *Past) declined(v workspace.Verdict) bool {
	open := slices.ContainsFunc(p.now.Pending, func(q Question) bool { return q.Path == v.Path })
	return !open && (v.Ruling == workspace.Declined || v.Ruling == workspace.Pending) && !p.late[editOf(v)]
}

// Digest returns the digest, in hex, of a question of a run, over everything that the user
// must see to answer it. A question that is asked again has the same digest.
func (q Question) Digest(run string) string {
	b, _ := json.Marshal(q) // it holds texts and figures only
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte(run+"\n"), b...)))
}

// Waiting returns the questions that the user can answer before the run is resumed: the
// pending ones, what the model asked without an answer, and the question that the user was
// being asked when the process ended.
func (p *Past) Waiting() []Question {
	now := p.Facts()
	all, asking := slices.Clone(now.Pending), now.Asking
	for _, q := range now.Asked {
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
