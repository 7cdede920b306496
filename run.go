package hone

import (
	"context"
	"sync"

	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/model/paid"
	"hone/workspace"
)

// Run is one run of a loop over one tree. Set its exported fields before the
// first call, and do not change them afterwards. Tree and Journal are required.
type Run struct {
	Tree    *workspace.Tree
	Journal *journal.Journal
	// Check decides whether the tree is right. Nil means that there is no check:
	// then the run is done when a round returns no blocking finding.
	Check check.Func
	// Human approves changes that need it. Nil means that no user can be asked:
	// such changes are pending.
	Human Human
	// Rules are the rules by which Apply reviews changes. Apply sets their Seen.
	Rules  workspace.Rules
	Limits Limits
	Retry  Retry
	Trust  Trust
	// Metric is a number that judges the tree beside the check; nil means that there is none.
	Metric *Metric
	// Largest is the size in bytes of the largest file whose contents are stored,
	// so that it can be restored; 0 means no limit.
	Largest int64
	// MinFree is how many bytes must be free where the journal is. With less, the run
	// stops before its next step, and can be resumed. 0 means no limit.
	MinFree int64
	// Own reports whether the loop itself writes a file for the user, such as a
	// log. Such a file is never a change of the model or the user. Nil means that
	// there are none.
	Own func(path string) bool
	// Outputs are the files of the tree into which this process writes its output. A
	// resumed run records them; Start has those of a new one. Own must report them.
	Outputs []string
	// Reach reports whether commands and servers of the run can change a file. A change
	// of any other file is the user's even if it is made while they run (ruling G16).
	// Nil means that they can change all files, as without walls.
	Reach func(path string) bool
	// Ignored returns what changed since the run began among the files that git ignores,
	// but for the run's own edits; a directory ends with a slash. Nil returns nothing.
	Ignored func() []string
	// Lost names what git's names held when the run began and no longer hold, a line each for
	// the user; nil returns nothing.
	Lost func() []string
	// Before returns a manifest of the tree from an earlier run, such as
	// [history.LastManifest], so that unchanged files need not be read again. It is
	// called only before the run has its own manifest. If it or its result is nil,
	// all files are read.
	Before func() workspace.Manifest
	// Redact removes provider keys and other secret values from a text; nil removes
	// nothing. Everything that is recorded, except the contents of files, goes
	// through it. It must keep JSON valid, and redacting a text twice must be the
	// same as redacting it once.
	Redact func(string) string
	// HasKey reports whether the contents of a file include a provider's key: they
	// are never stored (ruling G6). Nil means that no file does.
	HasKey func(content []byte) bool
	// Sending is called before each request to a model, when the journal has its
	// [history.Reserve] and all that was recorded before, and before each session of an
	// agent. If it returns an error, the request is not sent and costs nothing, and its call
	// ends with the error. It may be called from any goroutine. Nil does nothing.
	Sending func() error
	// Words returns what a reply says to the user, for a loop whose replies have a form; empty
	// if it says nothing. Nil means that all of its text is for the user.
	Words func(reply string) string
	// Stream, if not nil, is given a model's visible text as it arrives.
	Stream func(text string)
	// Received, if not nil, is given the size of each part of a model's response as
	// it arrives; see [model.Request].
	Received func(bytes int)
	// Printed returns what checks have printed since it was last called; nil keeps nothing of
	// that but the findings.
	Printed func() []byte
	// OnStart is called once by each process, before it records the run's first
	// event; nil does nothing. It records the settings of a new run with
	// [Run.Start]. If it fails, nothing is recorded, and Do returns its error.
	OnStart func() error
	// OnRound is called before each round, after the check that goes before the first; nil
	// does nothing. If it fails, the round is not called, and the error stops the run.
	OnRound func(context.Context) error

	starting sync.Once        // calls OnStart
	startErr error            // of OnStart
	at       journal.Identity // where the run is; its name and index are empty
	count    map[journal.Identity]int
	sessions int       // started in the round
	opening  sync.Once // sets account
	account  *paid.Account
	once     sync.Once // sets past
	past     *history.Past
	view
	baseline  check.Baseline // nil until it is needed
	resumed   bool           // this process has called resume
	replaying *played        // nil unless the run is replayed
}

// Round returns the number of the current round; 0 before the first.
func (r *Run) Round() int { return r.at.Round }

// Turn returns the number of the current turn of a conversation; 0 outside of one.
func (r *Run) Turn() int { return r.at.Turn }

// Past returns the past of the run, up to the last event of its journal. A loop
// reads from it whatever it must remember.
func (r *Run) Past() *history.Past {
	r.once.Do(func() { r.past = history.Follow(r.Journal) })
	return r.past
}

// Account returns what the run's model calls are paid from. It serves calls that the engine
// does not make itself: those of an agent, and those of other runs that a loop starts.
func (r *Run) Account() *paid.Account {
	r.opening.Do(func() {
		r.account = &paid.Account{Past: r.Past, Limits: r.Limits, Retry: r.Retry, Append: r.append, Hold: r.holdSpace, Sending: r.Sending, Active: r.Journal.Active}
	})
	return r.account
}

// Start records the run's settings. They must be the first event of its journal;
// see OnStart.
func (r *Run) Start(s Start) error {
	_, err := r.write(journal.Entry{Type: history.TypeStart, Payload: s})
	return err
}

// Walled records the walls of this process's commands. Call it once in each
// process, before the first command runs.
func (r *Run) Walled(w history.Walls) error { return r.tell(history.TypeWalls, w) }

// Attempted records the state of an attempt. It may be called from any goroutine.
func (r *Run) Attempted(a history.Attempt) error { return r.tell(history.TypeAttempt, a) }

// Served records what happened to a server that a loop runs for a role. It may be
// called from any goroutine.
func (r *Run) Served(s history.Served) error { return r.tell(history.TypeServer, s) }

func (r *Run) tell(typ journal.Type, payload any) error {
	_, err := r.append(journal.Entry{Type: typ, Payload: payload})
	return err
}

// startRound begins the part of a round that is not over.
func (r *Run) startRound(round int) {
	part, sessions := r.Past().Part(round)
	r.at = journal.Identity{Round: round, Part: part}
	r.count, r.sessions = map[journal.Identity]int{}, sessions
}

// Notice tells the user something that is not a finding. It records the same text
// only once in a run.
func (r *Run) Notice(text string) error { return r.Advise(Notice{Text: text}) }

// Advise is Notice for a text with what the user can do.
func (r *Run) Advise(n Notice) error {
	if r.Past().Noticed(n.Text) {
		return nil
	}
	return r.tell(history.TypeNotice, n)
}

// What a caller gives to the engine and gets from it is in the journal too. All
// events and their payloads are in package history.
type (
	Start    = history.Start    // given to [Run.Start]
	State    = history.State    // returned by [Run.Next]
	Decision = history.Decision // in a State
	End      = history.End      // returned by [Run.Do]
)

// The decisions after a round.
const (
	AnotherRound = history.AnotherRound
	Done         = history.Done
	StopNow      = history.StopNow
)

// What the user can do after a run has ended; see [history.Next].
type (
	Next = history.Next
	Verb = history.Verb
	Flag = history.Flag

	Notice = history.Notice // see [Run.Advise]
	Stop   = history.Stop   // an error with which a run ends before it is done
)

// The verbs.
const (
	Resume = history.Resume
	Show   = history.Show
	Undo   = history.Undo
	Take   = history.Take
	Accept = history.Accept
	Watch  = history.Watch
	NewRun = history.NewRun
	Doctor = history.Doctor
	Runs   = history.Runs
)

const fixProgram = "install or fix what the check runs"

func fixCheck(flags []Flag) Next {
	return Next{First: fixProgram, Verb: Resume, Flags: flags,
		Or: &Next{First: "choose another check", Verb: NewRun, Flags: []Flag{{Name: "check", Value: "COMMAND"}}}}
}

// Limits limit a run.
type Limits = history.Limits

// Bounds limit one session of a conversation (rulings S8, S11 and G11). They
// end the session, never the run.
type Bounds struct {
	Turns   int `json:"turns"`    // maximum number of model calls; 0 means 30
	Calls   int `json:"calls"`    // maximum number of tool calls that are run; 0 means 120
	PerTurn int `json:"per_turn"` // maximum number of those in one reply; 0 means 10
}

// Resolved returns the bounds with the defaults in place of zeros.
func (b Bounds) Resolved() Bounds {
	return Bounds{Turns: orElse(b.Turns, 30), Calls: orElse(b.Calls, 120), PerTurn: orElse(b.PerTurn, 10)}
}

func orElse(n, standard int) int {
	if n == 0 {
		return standard
	}
	return n
}
