package history

import (
	"fmt"
	"math"
	"strings"
	"time"

	"hone/check"
)

// Stop is an error that says why a run ended before it was done, and what the
// user can do next. The run can be resumed, but a resumed run has the same
// settings and arguments: if these are wrong, Next.Verb is [NewRun].
type Stop struct {
	Kind Kind
	Why  string // one line for the user; more lines hold details
	Next Next   // the zero Next has no advice
	Err  error  // the cause; nil if Why says everything
	// Findings are what is wrong with the result, if the round knows; nil means the
	// findings of the last round that was decided.
	Findings []check.Finding
}

func (s *Stop) Error() string {
	if s.Err == nil {
		return s.Why
	}
	return fmt.Sprintf("%s: %v", s.Why, s.Err)
}

func (s *Stop) Unwrap() error { return s.Err }

// ResumeAfter returns the advice to do something, a clause in the imperative, and then to
// resume the run.
func ResumeAfter(first string) Next { return Next{First: first, Verb: Resume} }

// ResumeWith returns the advice to resume the run with a flag.
func ResumeWith(flag string, value any) Next {
	return Next{Verb: Resume, Flags: []Flag{{Name: flag, Value: fmt.Sprint(value)}}}
}

// MoreTokens returns the advice to resume a run whose limit of tokens does not suffice: with twice the limit, and at least as many
// as it needs in all.
func MoreTokens(limit, needs int64) Next { return ResumeWith("max-tokens", max(2*limit, needs)) }

// MoreCost is [MoreTokens] for the cost in USD, which it rounds up to cents.
func MoreCost(limit, needs float64) Next {
	return ResumeWith("max-cost", fmt.Sprintf("%.2f", math.Ceil(100*max(2*limit, needs))/100))
}

// MoreTime proposes twice a time limit, and at least a minute.
func MoreTime(limit time.Duration) Next {
	return ResumeWith("max-time", DurationText(max(2*limit, time.Minute)))
}

// DurationText returns a duration as a user types it: 4h, not 4h0m0s.
func DurationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Kind is how a run ended, in one word that users see.
type Kind string

// The ways to end.
const (
	KindDone        Kind = "done"        // the check passes, or there is none and the loop reached its own end
	KindRounds      Kind = "rounds"      // the rounds are used up, and findings are left
	KindStuck       Kind = "stuck"       // too many rounds ended in an earlier state
	KindUnreadable  Kind = "unreadable"  // too many replies in a row could not be used
	KindUsage       Kind = "usage"       // what the user asked for is wrong
	KindPrompt      Kind = "prompt"      // the first prompt does not fit the model's context
	KindBudget      Kind = "budget"      // the tokens, the cost or the time are used up
	KindContext     Kind = "context"     // a later prompt does not fit the model's context
	KindBlocked     Kind = "blocked"     // only the user can decide what comes next
	KindFailed      Kind = "failed"      // a provider, a program or the disk failed
	KindInterrupted Kind = "interrupted" // the context was canceled
)

// CheckPasses is why a run is done whose check passes after a change. A summary that knows
// the check names it instead.
const CheckPasses = "the check passes"

// UsedUp reports whether a run ended because its rounds or its budget did, with
// findings left.
func (k Kind) UsedUp() bool {
	switch k {
	case KindRounds, KindStuck, KindUnreadable, KindBudget, KindContext:
		return true
	}
	return false
}

// Next is what the user can do after a run has ended. It holds no command line:
// only the program that the user typed knows how its commands are written.
type Next struct {
	// First is what the user has to do before: a clause in the imperative, such
	// as "free some disk space". Empty means nothing.
	First string `json:"first,omitempty"`
	// Verb is what to do then. It is [NewRun] if resuming the run cannot help,
	// because its settings are wrong. Empty means nothing in particular.
	Verb Verb   `json:"verb,omitempty"`
	Run  string `json:"run,omitempty"` // that the verb is about; empty means the run that ended
	Dir  string `json:"dir,omitempty"` // that the verb is about, absolute; empty means that of the run, or the user's
	// Flags are those of the verb, in order; without a verb, of the command that the
	// user typed.
	Flags []Flag `json:"flags,omitempty"`
	// Remark says more about it: a clause, such as "which only warns". Empty means
	// nothing.
	Remark string `json:"remark,omitempty"`
	Or     *Next  `json:"or,omitempty"` // what the user can do instead; nil means nothing
}

// Verb is something that the user can let hone do.
type Verb string

// The verbs. All but the last three are about a run or a directory.
const (
	Resume Verb = "resume"
	Show   Verb = "show"
	Undo   Verb = "undo"
	Take   Verb = "take"  // apply the changes of the attempt [Next.Run]
	Accept Verb = "trust" // accept a run that the user did not record, or the programs and settings of Dir
	Watch  Verb = "watch" // follow a run that works
	NewRun Verb = "new run"
	Doctor Verb = "doctor" // examine the machine
	Runs   Verb = "runs"   // list the runs
)

// Flag is a flag of a verb.
type Flag struct {
	Name string `json:"name"` // "max-tokens"
	// Value is literal, such as "200000"; or a word in capitals for what the user
	// chooses, or a list of the choices, such as "bwrap or none". Empty means that the
	// flag has no value.
	Value string `json:"value,omitempty"`
}

// IsZero reports whether there is nothing to do.
func (n Next) IsZero() bool { return n.First == "" && n.Verb == "" && len(n.Flags) == 0 && n.Or == nil }

// Cleaned returns the action with every text cleaned, for example of keys.
func (n Next) Cleaned(clean func(string) string) Next {
	n.First, n.Remark = clean(n.First), clean(n.Remark)
	if n.Or != nil {
		n.Or = new(n.Or.Cleaned(clean))
	}
	flags := n.Flags
	n.Flags = nil
	for _, f := range flags {
		n.Flags = append(n.Flags, Flag{f.Name, clean(f.Value)})
	}
	return n
}
