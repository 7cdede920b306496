package hone

import (
	"slices"

	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/model"
)

// A role may have several models. The first is asked until all attempts at a call
// failed; then the next one takes its place for the rest of the run. The event of it is
// all that the engine knows about that: a resumed run asks the model that the killed one
// asked last, and a recorded reply stays the reply, whichever model wrote it. A request
// is composed in the same way for all models of a role, so that none of what was sent or
// recorded depends on which of them replied.

// Substitute is another model for a role, with its own limit and price.
type Substitute struct {
	Model     model.Model
	Called    string // as in [Role]
	MaxOutput int64  // as in [Role]
	Price     *Price // as in [Role]
}

func (role Role) ownModel() Substitute {
	return Substitute{Model: role.Model, Called: role.Called, MaxOutput: role.MaxOutput, Price: role.Price}
}

func (role Role) withModel(s Substitute) Role {
	role.Model, role.Called, role.MaxOutput, role.Price = s.Model, s.Called, s.MaxOutput, s.Price
	return role
}

func (role Role) limitOutput(most int64) Role {
	role.MaxOutput = min(role.MaxOutput, most)
	role.Fallbacks = slices.Clone(role.Fallbacks)
	for i := range role.Fallbacks {
		role.Fallbacks[i].MaxOutput = min(role.Fallbacks[i].MaxOutput, most)
	}
	return role
}

// The model that is asked now is the first that has not failed in the run. next takes its place if it fails too; empty if there
// is none.
func (r *Run) inService(role Role) (now Role, next string) {
	models := append([]Substitute{role.ownModel()}, role.Fallbacks...)
	failed := func(s Substitute) bool { return r.Past().HasFailed(s.Called) }
	i := 0
	for i < len(models)-1 && failed(models[i]) {
		i++
	}
	for _, s := range models[i+1:] {
		if !failed(s) {
			return role.withModel(models[i]), s.Called
		}
	}
	return role.withModel(models[i]), ""
}

// A wrong key, or a request that a provider rejects, must not go unnoticed.
func failsOver(fault *model.Error) bool { return fault.Temporary() || fault.Kind == model.Quota }

func (r *Run) failOver(role Role, to string, why string) error {
	_, err := r.append(journal.Entry{Type: history.TypeFailover, Payload: history.FailedOver{
		Round: r.at.Round, Role: role.Name, From: role.Called, To: to, Error: r.cleanText(why)}})
	return err
}

// DefaultEscalateAfter is what 0 in EscalateAfter of a [Role] means.
const DefaultEscalateAfter = 2

// Whether the Escalation is the role's model follows from the recorded findings of the rounds before, so that a resumed run and
// a replay agree; the event only tells the user.
func (r *Run) escalatedRole(role Role) (Role, error) {
	after := orElse(role.EscalateAfter, DefaultEscalateAfter)
	if role.Escalation == nil || role.Agent {
		return role, nil
	}
	round := r.escalationRound(after)
	if round == 0 {
		r.stronger = true
		return role, nil
	}
	up := role.withModel(*role.Escalation)
	up.Escalation, up.Fallbacks = nil, slices.DeleteFunc(append([]Substitute{role.ownModel()}, role.Fallbacks...), func(s Substitute) bool { return s.Called == up.Called })
	if r.Past().HasEscalated(role.Called) {
		return up, nil
	}
	_, err := r.append(journal.Entry{Type: history.TypeEscalate, Payload: history.Escalated{
		Round: round, Role: role.Name, From: role.Called, To: up.Called, After: after}})
	return up, err
}

// escalationRound returns the first round that follows so many rounds in a row without
// fewer findings; 0 if there is none yet.
func (r *Run) escalationRound(after int) int {
	var judged []State
	if c, ok := r.Past().FirstCheck(); ok && len(c.Findings) > 0 {
		judged = append(judged, State{Findings: c.Findings})
	}
	n := 0
	for _, s := range r.statesBefore(r.at.Round) {
		usable := !blockingSources(s)[check.SourceReply]
		if n++; usable && improves(s, judged) {
			n = 0
		}
		if usable {
			judged = append(judged, s)
		}
		if n >= after {
			return s.Round + 1
		}
	}
	return 0
}

// improves reports whether a state has fewer findings than all earlier states that were
// judged alike. The first state of all does not, because nothing shows that there were
// more; a state that no earlier one was judged like does, because it came further.
func improves(s State, earlier []State) bool {
	if s.Score != nil {
		return s.Score.Kept
	}
	for _, before := range earlier {
		if comparable(before, s) && blocking(before) <= blocking(s) {
			return false
		}
	}
	return len(earlier) > 0
}

// If there is only one model, nothing needs to be said.
func (role Role) signed(reply model.Reply, called string) model.Reply {
	if len(role.Fallbacks) == 0 && role.Escalation == nil {
		return reply
	}
	reply.Parts = slices.Clone(reply.Parts)
	for i, p := range reply.Parts {
		if p.Opaque != nil {
			opaque := *p.Opaque
			opaque.From = called
			reply.Parts[i].Opaque = &opaque
		}
	}
	return reply
}

// A model can neither read nor verify the opaque parts of others: even models of the same provider reject them.
func readableBy(messages []model.Message, called string) []model.Message {
	foreign := func(p model.Part) bool { return p.Opaque != nil && p.Opaque.From != "" && p.Opaque.From != called }
	own := slices.Clone(messages)
	for i, m := range own {
		if slices.ContainsFunc(m.Parts, foreign) {
			own[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), foreign)
		}
	}
	return own
}
