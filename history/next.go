package history

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
