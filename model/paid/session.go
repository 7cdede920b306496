package paid

import (
	"context"
	"errors"
	"fmt"

	"hone/history"
	"hone/journal"
	"hone/model"
)

// Session is a command-line agent, one call of which is a whole session. Its model calls are
// charged one by one if a proxy forwards them ([Account.Reserve]); if none was, the session is
// charged by what the agent reports when it ends.
type Session struct {
	Account *Account
	Role    string
	Candidate
}

// Generate runs one session. If the agent fails, the error is a [*history.Stop].
func (s Session) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	size, err := sizeOf(req)
	if err == nil {
		err = s.Account.Hold(s.MaxOutput)
	}
	if err == nil && s.Account.Sending != nil {
		err = s.Account.Sending()
	}
	if err != nil {
		return model.Reply{}, err
	}
	before := s.Account.Past().Facts().Ledger.Reserves
	reply, fault := s.Model.Generate(ctx, req)
	used := reply.Usage
	var failed *model.Error
	if errors.As(fault, &failed) {
		used = failed.Usage
	}
	used = plausibleUsage(used, 0)
	reply.Usage = used
	if s.Account.Past().Facts().Ledger.Reserves == before && (used != nil || failed == nil || !failed.Rejected()) {
		if err := s.charge(used, size); err != nil {
			return model.Reply{}, err
		}
	}
	if failed == nil || ctx.Err() != nil {
		return reply, fault
	}
	why := failed.Error()
	if failed.Kind == model.Failed {
		why = failed.Message // the result's kind says that it failed
	}
	return model.Reply{}, &history.Stop{Kind: history.KindFailed, Why: fmt.Sprintf("%s: %s", s.Called, why), Next: afterFault(failed)}
}

// If the agent reports nothing, the request counts, as tokens that no provider confirmed: there
// is no maximum for what an agent sends after that, but its session must not look free.
func (s Session) charge(used *model.Usage, size int64) error {
	a := s.Account
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.relayed[s.Role] {
		return nil
	}
	reserved := history.Reserve{Role: s.Role, Model: s.Called}
	if used == nil {
		reserved.Tokens = size + framingTokens
	}
	if s.Price != nil {
		cost := s.Price.maxCost(reserved.Tokens, 0)
		reserved.Cost = &cost
	}
	e, err := a.Append(journal.Entry{Type: history.TypeReserve, Payload: reserved})
	if err != nil {
		return err
	}
	c := history.Commit{Reserve: e.Seq, Usage: used, Tokens: reserved.Tokens, Cost: reserved.Cost, Basis: "agent"}
	if used != nil {
		charge(&c, s.Price)
	}
	return a.recordCommit(c)
}
