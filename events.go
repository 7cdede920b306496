package hone

import (
	"encoding/json"
	"time"

	"hone/check"
	"hone/model"
	"hone/workspace"
)

// The payloads of a run's events, for whoever reads a journal. What stands in
// every event is [journal.Event]; events.schema.json describes both.

// Start is the first event's: the run's settings, resolved. A resumed run
// takes them from here.
type Start struct {
	Version  string          `json:"hone"` // of the program
	Loop     string          `json:"loop"`
	Dir      string          `json:"dir"`
	Model    string          `json:"model"` // provider/name
	Limits   Limits          `json:"limits"`
	Settings json.RawMessage `json:"settings"` // the loop's own, role texts included
}

// Notice is something that a person is told once.
type Notice struct {
	Text string `json:"text"`
}

// Walls is what holds back the commands that this process starts for a run
// ("walls"), as it was reached and tried on this machine.
type Walls struct {
	Wall     string `json:"wall"`               // its name, such as "hidden" or "none"
	Level    string `json:"level"`              // "hidden", "guarded" or "open"
	Landlock int    `json:"landlock,omitempty"` // the ABI that is used; 0: none
	Seccomp  bool   `json:"seccomp,omitempty"`
	Net      string `json:"net"` // "off", "doors" or "on"
	// Text is all that in a line for people.
	Text string `json:"text"`
	// Why says why no stronger wall was taken, where nobody named one.
	Why string `json:"why,omitempty"`
	// Open are what a command can still do that it should not, in words.
	Open []string `json:"open,omitempty"`
}

// Opened is what is known of the tree when a round begins ("open") and after
// a command ("afterwards").
type Opened struct {
	Manifest string   `json:"manifest"`          // object that holds the manifest
	Tree     string   `json:"tree"`              // its digest
	Outside  []string `json:"outside,omitempty"` // changed by others since the round before
	// Back is set where the tree was put back since the round before: to what it
	// was at the end of that round, 0 for before the first.
	Back *int `json:"back,omitempty"`
	// PutBack are protected files that the command changed.
	PutBack []string `json:"put_back,omitempty"`
	Told
}

// Told is what a loop's own records ("step", "command") can hold for people,
// beside what the loop reads of them. Every screen shows it; none knows more
// of a loop.
type Told struct {
	Said string `json:"said,omitempty"` // what is done, or has come of it
	// Log is what was printed, where something is wrong.
	Log string `json:"printed,omitempty"`
}

// Asked is the begin of a model call ("ask"), or of an agent's whole session.
type Asked struct {
	Role    string `json:"role"`
	Model   string `json:"model"`
	Request string `json:"request"` // object with what is sent; see Sent
	Bytes   int64  `json:"bytes"`
	// Command says that it is an agent's session, which runs commands: what it
	// changes is not known before.
	Command  bool   `json:"command,omitempty"`
	Manifest string `json:"manifest,omitempty"` // object that holds the tree's manifest before a session
}

// Replied is its record ("reply").
type Replied struct {
	Role     string       `json:"role"`
	Model    string       `json:"model"`
	Reply    string       `json:"reply"` // object with the reply and the provider's bytes
	Bytes    int          `json:"bytes"` // of visible text
	Finish   model.Finish `json:"finish"`
	Detail   string       `json:"detail,omitempty"`
	Usage    *model.Usage `json:"usage,omitempty"` // nil: the provider said nothing of it
	Attempts int          `json:"attempts"`
	// Request is the object with what an agent was sent whose first session was
	// cut off: it was told of that. Empty where it was sent what its ask names.
	Request string `json:"request,omitempty"`
}

// Before is the begin of a command that is not a tool's ("command").
type Before struct {
	Manifest string `json:"manifest"` // object that holds the tree's manifest
}

// Begun is the begin of a tool call ("tool").
type Begun struct {
	Role    string `json:"role"`
	Tool    string `json:"tool"`              // as the model called it
	Args    string `json:"args"`              // as the model wrote them
	Object  string `json:"object,omitempty"`  // that holds them where they are long
	Refused string `json:"refused,omitempty"` // why it is not run
	// Command says that it runs commands: what it changes is not known before.
	Command  bool   `json:"command,omitempty"`
	Manifest string `json:"manifest,omitempty"` // object that holds the tree's manifest before a command
}

// Reserve stands, durably, before an attempt's request leaves (ruling G11).
// Without a commit it counts in full, also after a crash.
type Reserve struct {
	Role    string   `json:"role"`
	Model   string   `json:"model"`
	Attempt int      `json:"attempt"`        // 0 is the first
	Tokens  int64    `json:"tokens"`         // most that the attempt can use
	Cost    *float64 `json:"cost,omitempty"` // USD; nil: the price is not known
}

// Commit replaces a reserve by what the attempt used.
type Commit struct {
	Reserve int64        `json:"reserve"` // the reserve's sequence number
	Usage   *model.Usage `json:"usage,omitempty"`
	Tokens  int64        `json:"tokens"` // charged
	Cost    *float64     `json:"cost,omitempty"`
	// Basis is "provider" where the provider said what was used, "agent" where
	// only the agent that asked it did, "nothing was generated" where the
	// provider turned the request away, and "assumed in full" where nothing is
	// known.
	Basis string `json:"basis"`
	Error string `json:"error,omitempty"`
}

// Usage is a run's sums after an attempt.
type Usage struct {
	Tokens int64       `json:"tokens"` // charged or reserved
	Cost   *float64    `json:"cost,omitempty"`
	Known  model.Usage `json:"known"` // what providers reported, added up
}

// Retried is a wait between two attempts ("retry").
type Retried struct {
	Attempt int    `json:"attempt"`
	Error   string `json:"error"`
	Wait    int64  `json:"wait_ms"`
}

// Served is something that happened to a server which a loop holds open for a
// role ("server"). It is no step: the server lives as long as what needs it.
type Served struct {
	What string `json:"what"` // see Up and its like
	URL  string `json:"url"`  // where the role finds it
}

// What happens to a server.
const (
	Up      = "up"      // it answers
	Reached = "reached" // the first bytes of the role's commands have arrived there, since it is up
	Down    = "down"    // it was ended
)

// Changed is what became of one edit ("change").
type Changed struct {
	workspace.Verdict
	Delete bool  `json:"delete,omitempty"`
	Bytes  int64 `json:"bytes"` // of the contents that were wanted
	// Attempted is the object that holds the contents of an edit that was not
	// made; empty where there are none.
	Attempted string `json:"attempted,omitempty"`
}

// Applied is both the begin and the record of an apply: every edit that is
// made, with objects that hold each file as it was and as it is.
type Applied struct {
	Verdicts []workspace.Verdict `json:"verdicts"`
}

// Checked is a check's record ("check"). It counts only while the tree is the
// one that it left.
type Checked struct {
	Findings []check.Finding `json:"findings"`
	// Flaky are findings that did not come again when the check was run again;
	// they count for nothing.
	Flaky    []check.Finding `json:"flaky,omitempty"`
	PutBack  []string        `json:"put_back,omitempty"` // protected files that it changed
	Tree     string          `json:"tree"`
	Manifest string          `json:"manifest"`
	Took     time.Duration   `json:"took_ns"`
}

// Outside names files that somebody else changed while no hone was at work.
type Outside struct {
	Paths    []string `json:"paths"`
	Manifest string   `json:"manifest"` // object that holds the tree's manifest since
}

// Undone says that the files which the run had changed were put back ("undo").
type Undone struct {
	Round    int      `json:"round"` // as they were at its end; 0: before the first
	Paths    []string `json:"paths"`
	Manifest string   `json:"manifest"` // object that holds the tree's manifest since
	Tree     string   `json:"tree"`     // its digest
}

// Unpaid is why the rest of a round could not be paid: the record of the step
// "unpaid".
type Unpaid struct {
	Why  string `json:"why"`
	Next Next   `json:"next,omitzero"`
}

// Decision is what follows from a round.
type Decision string

// The three decisions. Empty means that none was made yet.
const (
	GoOn    Decision = "go on" // another round
	Done    Decision = "done"
	StopNow Decision = "stop" // not done, and no further round; see State.Kind
)

// State is where a run stands after a round, as its journal tells it.
type State struct {
	Round    int             `json:"round"` // 0: none is finished, at most the check before the first
	Decision Decision        `json:"decision"`
	Kind     Kind            `json:"result,omitempty"` // empty: the run has not ended
	Why      string          `json:"why,omitempty"`
	Next     Next            `json:"next,omitzero"`
	Findings []check.Finding `json:"findings"`
	// Checked are the findings of the last check alone; they are carried over
	// until it runs again.
	Checked  []check.Finding `json:"checked,omitempty"`
	Manifest string          `json:"manifest,omitempty"` // object that holds the tree's manifest
	Tree     string          `json:"tree,omitempty"`     // its digest
	// Fingerprint is the same for rounds that ended with the same tree and the
	// same findings, but for times and the like.
	Fingerprint string `json:"fingerprint"`
	Same        int    `json:"same_as,omitempty"` // an earlier round with it; 0: none
}

func (s *State) stop(kind Kind, why string, next Next) {
	s.Decision, s.Kind, s.Why, s.Next = StopNow, kind, why, next
}

// own are the findings of the round itself.
func (s State) own() []check.Finding { return s.Findings[:len(s.Findings)-len(s.Checked)] }

// End is how a run ended, this time.
type End struct {
	Kind   Kind   `json:"result"`
	Why    string `json:"why"`
	Next   Next   `json:"next,omitzero"`
	Rounds int    `json:"rounds"`
	Tokens int64  `json:"tokens"`
	// Assumed are those of Tokens that no provider confirmed: of calls whose
	// end is not known, the most that they can have used.
	Assumed  int64           `json:"assumed_tokens"`
	Cost     *float64        `json:"cost,omitempty"` // USD; nil where a price is not known
	Findings []check.Finding `json:"findings"`
	// Best is an earlier round that had fewer findings than the last; 0: none,
	// or it does not matter.
	Best int `json:"best_round,omitempty"`
	// Restored says that the tree is the one that Best ended with.
	Restored bool     `json:"restored,omitempty"`
	Notes    []string `json:"notes,omitempty"` // what else the user should know, a line each
}
