// Package flow defines the workflows of a fleet on Temporal.
//
// A batch is one workflow, [Batch]. Each leg of a job is one short child workflow, [Job],
// with one activity, which a worker registers as [Leg]. A job has no child while it waits
// for its turn, for budget or for the user. So a batch has at most Parallel children, needs
// no messages between workflows, and can continue as new when its history is long and the
// running legs have ended.
//
// [Register] registers both workflows with a worker. [Start], [Read], [Answer] and [Cancel]
// are for clients.
//
// The bank lends a job an allowance before each leg, and takes the rest back after it. A
// job that has used up its allowance borrows again, after the jobs that have not started,
// and at least as much as it has had so far: the number of its legs grows with the logarithm
// of what it uses. If the outcome of a leg never arrives, its whole allowance is charged.
//
// A batch can outlive a version of this program. If you change what the workflows do, or in
// which order, keep the recorded histories in testdata valid, or use workflow.GetVersion.
package flow

import (
	"time"

	"hone/fleet/job"
	"hone/group"
)

// Leg is the name of the activity. It takes a [job.Leg] and returns a [job.Outcome]. When
// it is cancelled, it returns the outcome of the interrupted run and no error. Until it
// returns it must send heartbeats, with context.WithoutCancel; otherwise it counts as lost.
// An error means that the worker's environment failed, and that another try may succeed. If
// the first detail of an application error is a [job.Outcome], it says what the run has
// spent so far.
const Leg = "leg"

// Names of the query and the updates of a batch; use [Read], [Answer] and [Cancel].
const (
	stateQuery   = "state"
	answerUpdate = "answer"
	cancelUpdate = "cancel"
)

// Input starts a batch.
type Input struct {
	ID       string       `json:"id"`
	Jobs     []job.Job    `json:"jobs"`         // at least one, with different names
	Max      group.Amount `json:"max,omitzero"` // of all jobs; a part that is 0 has no limit
	Parallel int          `json:"parallel"`     // the number of legs at the same time; 0 means 8

	// Heartbeat is the time after which a silent worker counts as lost; 0 means 60 s.
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
	// Tries is how often a leg is tried when workers are lost or fail; 0 means 20.
	Tries int `json:"tries,omitempty"`

	// Carried is the state of a batch that has continued as new; nil at its start.
	Carried *Carried `json:"carried,omitempty"`
}

// Carried is what a batch knows. All of it is in the order of [Input.Jobs].
type Carried struct {
	Bank     group.Bank `json:"bank"`
	Progress []Progress `json:"progress"`
	Turn     int        `json:"turn"` // of the last job in the queue
}

// State is what a job is doing.
type State string

// A job begins as Queued. The last four are ends.
const (
	Queued    State = "queued"             // it waits for its turn
	Waiting   State = "waiting for budget" // it waits until other jobs repay
	Running   State = "running"            // it has a leg, which a worker has or will get
	NeedsYou  State = "needs you"          // it waits for answers to its questions
	Done      State = "done"
	Failed    State = "failed" // it stopped without being done
	NoBudget  State = "budget" // its own limit or the batch's is used up
	Cancelled State = "cancelled"
)

// States returns all states, in the order of a job's life.
func States() []State {
	return []State{Queued, Waiting, Running, NeedsYou, Done, Failed, NoBudget, Cancelled}
}

// Ended reports whether a state is an end.
func (s State) Ended() bool {
	return s == Done || s == Failed || s == NoBudget || s == Cancelled
}

// Progress is where a job stands.
type Progress struct {
	State State        `json:"state"`
	Why   string       `json:"why,omitempty"`  // one line: why it is in this state; may be empty
	Legs  int          `json:"legs,omitempty"` // begun so far
	Limit group.Amount `json:"limit,omitzero"` // of the last leg
	// Outcome is that of the last leg that has ended, with shortened texts. If the job has
	// ended, its Why is empty: see Why above.
	Outcome job.Outcome `json:"outcome,omitzero"`
	// Answers are those to the questions of Outcome, for the next leg.
	Answers []job.Answer `json:"answers,omitempty"`

	Turn int `json:"turn,omitempty"` // place in the queue: lower ones are first
	Idle int `json:"idle,omitempty"` // legs in a row that ended for budget, and spent nothing
}

// Status is the state of a batch for clients: the answer to a query, and the result.
type Status struct {
	ID       string        `json:"id"`
	Ended    bool          `json:"ended"`
	Bank     Figures       `json:"bank"`
	Parallel int           `json:"parallel"`
	Counts   map[State]int `json:"counts"`
	Jobs     []JobStatus   `json:"jobs"` // in the order in which they were submitted
}

// Figures is the state of a bank for people.
type Figures struct {
	Cap   group.Amount `json:"cap,omitzero"` // a part that is 0 has no limit
	Lent  group.Amount `json:"lent,omitzero"`
	Spent group.Amount `json:"spent,omitzero"`
	Free  group.Amount `json:"free,omitzero"` // of the limited parts; negative if more was spent than lent
}

// JobStatus is the state of a job for clients.
type JobStatus struct {
	Name string `json:"name"`
	Repo string `json:"repo"`
	Ref  string `json:"ref,omitempty"`
	Loop string `json:"loop"`
	Progress
}

// The ids of workflows. Names contain no colon, so that no two workflows have the same id.
const idPrefix = "hone:"

// BatchID returns the id of a batch's workflow.
func BatchID(batch string) string { return idPrefix + batch }

// JobID returns the id of the workflows of a job's legs.
func JobID(batch, name string) string { return BatchID(batch) + ":" + name }
