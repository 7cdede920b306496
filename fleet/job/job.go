// Package job defines the types that the parts of a fleet exchange: jobs, allowances, and
// the outcomes of legs. They are the payloads of workflows: they hold names and figures,
// never the contents of files, and never keys.
//
// [Read] and [ReadRepos] read files of jobs. They refuse jobs that would fail on a worker,
// settings that only the operator of a worker decides, and keys.
package job

import (
	"hone/group"
	"hone/history"
)

// Job is one run of a loop in one repository. Its place in the batch is its identity.
type Job struct {
	Name  string   `json:"name"` // unique in its batch: letters, digits, "-", "_" and "."
	Repo  string   `json:"repo"` // what git clone takes: an address, or a directory of the workers
	Ref   string   `json:"ref,omitempty"`
	Loop  string   `json:"loop"`           // fix, task, implement, reconcile or improve
	Args  []string `json:"args,omitempty"` // of the loop, as on the command line
	Model string   `json:"model,omitempty"`
	// Max is what the job may use in all; a part that is 0 has only the limit of the batch.
	Max group.Amount `json:"max,omitzero"`
}

// Leg asks a worker to work on a job until it ends or stops: to start its run, or to
// continue the run that the store has.
type Leg struct {
	Batch string `json:"batch"` // the id of the batch
	Job   Job    `json:"job"`
	// Limit is what the run may have used, in all its legs, when this leg ends.
	Limit group.Amount `json:"limit,omitzero"`
	// Answers are the user's answers to the questions of the last leg.
	Answers []Answer `json:"answers,omitempty"`
}

// Answer is a user's answer to a pending question.
type Answer struct {
	Question string `json:"question"` // its digest
	Approved bool   `json:"approved"`
}

// Question is a pending question: a change that needs the user's approval.
type Question struct {
	Digest string `json:"digest"` // of all that the user approves
	Path   string `json:"path"`
	Why    string `json:"why"`
}

// Outcome is how a leg ended. A stop of the run is an outcome, not an error: only failures
// of the worker's environment are errors, and retried.
type Outcome struct {
	Run    string       `json:"run,omitempty"` // the run's id; empty if none was started
	Exit   int          `json:"exit"`          // hone's exit status
	Kind   history.Kind `json:"kind,omitempty"`
	Why    string       `json:"why,omitempty"` // one line, for users
	Rounds int          `json:"rounds"`
	Spent  group.Amount `json:"spent,omitzero"` // by the run in all its legs; lost calls count in full
	// Questions are what the run waits for, if it stopped for the user.
	Questions []Question `json:"questions,omitempty"`
	// Result is the name in the store of a git bundle with the result as a branch; empty
	// if the run changed nothing.
	Result string `json:"result,omitempty"`
}
