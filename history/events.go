package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"hone/check"
	"hone/model"
	"hone/workspace"
)

// The payloads of a run's events. The fields that every event has are those of
// [journal.Event]; events.schema.json describes both.

// Start is the payload of the first event: the run's settings, resolved. A
// resumed run takes its settings from here.
type Start struct {
	Version  string          `json:"hone"` // of the program
	Loop     string          `json:"loop"`
	Dir      string          `json:"dir"`
	Model    string          `json:"model"` // provider/name
	Limits   Limits          `json:"limits"`
	Settings json.RawMessage `json:"settings"` // the loop's own, with the texts of its roles
	// Outputs are the files below Dir into which the process writes its output.
	Outputs []string `json:"outputs,omitempty"`
	// Redacted means that the run's texts were replaced, so that it can only be shown; see
	// [Redact].
	Redacted bool `json:"redacted,omitempty"`
	// Git is what the names of the repository held that Dir is in; the zero value is not known.
	Git Git `json:"git,omitzero"`
}

// Git is what the names of a git repository held at one time.
type Git struct {
	Branch string            `json:"branch,omitempty"` // that HEAD was on; empty if it was on none
	IDs    map[string]string `json:"ids,omitempty"`    // the objects of the branches and tags, such as "refs/heads/main"
	Stash  []string          `json:"stash,omitempty"`  // the stashed commits, the newest first
}

// Limits bound a run. A zero field sets no bound, except Rounds.
type Limits struct {
	Rounds int           `json:"rounds"`         // most rounds; 0 means 1
	Tokens int64         `json:"tokens"`         // of every call of every role
	Cost   float64       `json:"cost,omitempty"` // USD
	Time   time.Duration `json:"time_ns"`        // active time, over all processes
	// Patience is how many rounds may end in an earlier state.
	Patience int `json:"patience,omitempty"`
	// Unreadable is how many replies in a row may be unusable.
	Unreadable int `json:"unreadable,omitempty"`
	// Lines is by how many lines, added and removed ones together, the tree may differ from
	// the one that the run found.
	Lines int `json:"lines,omitempty"`
}

// MaxRounds returns how many rounds the run may have: Rounds, or 1 if that is
// 0.
func (l Limits) MaxRounds() int { return max(1, l.Rounds) }

// Resumed says that another process resumes the run, with these limits.
type Resumed struct {
	Limits
	Outputs []string `json:"outputs,omitempty"` // as in Start
}

// Notice is a text for the user, recorded only once in a run.
type Notice struct {
	Text string `json:"text"`
	Next Next   `json:"next,omitzero"` // what the user can do about it
	// Denied says that the walls kept a command from something that it seems to need. A run that
	// does not end well names it again.
	Denied bool `json:"denied,omitempty"`
	// Repository is a git repository that a command made, as a path from the tree's root
	// with slashes: a git directory or a .git file. It is empty if the text is about
	// something else.
	Repository string `json:"repository,omitempty"`
	// Aside is where hone moved what makes it a repository, also from the root; empty if
	// it stays.
	Aside string `json:"aside,omitempty"`
}

// Walls is the wall around the commands that a process starts for a run, as it
// was built and tried on this machine.
type Walls struct {
	Wall     string `json:"wall"`               // its name, such as "hidden" or "none"
	Level    string `json:"level"`              // "hidden", "guarded" or "open"
	Landlock int    `json:"landlock,omitempty"` // the ABI that is used; 0: none
	Seccomp  bool   `json:"seccomp,omitempty"`
	Net      string `json:"net"` // "off", "doors" or "on"
	// Text is all of the above in one line for users.
	Text string `json:"text"`
	// Why says why no stronger wall was chosen; empty if the user named this one.
	Why string `json:"why,omitempty"`
	// Open says what a command can still do that it should not be able to do.
	Open []string `json:"open,omitempty"`
	// Proved is when walls of this kind were last proved on this machine, under the
	// same conditions; zero if they were not.
	Proved time.Time `json:"proved,omitzero"`
}

// Opened is the record of a round's first step, [StepOpen]: the tree as the
// round found it.
type Opened struct {
	Manifest string   `json:"manifest"`          // object with the manifest
	Tree     string   `json:"tree"`              // the manifest's digest
	Outside  []string `json:"outside,omitempty"` // files changed outside the run since the round before
	// RestoredTo is set if the tree was restored since the round before: to its
	// state at the end of that round, or before the first if 0.
	RestoredTo *int `json:"back,omitempty"`
	// Notes are what the model is told beside the findings. They depend on answers that a user may
	// give later.
	Notes []check.Finding `json:"notes,omitempty"`
}

// Snapshot is the record of the steps that follow a command, [StepSnapshot]
// and [StepRestore]: the tree as the command left it.
type Snapshot struct {
	Manifest string `json:"manifest"` // object with the manifest
	Tree     string `json:"tree"`     // the manifest's digest
	// Restored are the protected files that the command changed.
	Restored []Restored `json:"put_back,omitempty"`
	// Outside are the files that the user changed before the command, since the last
	// command or since the round opened.
	Outside []string `json:"outside,omitempty"`
	Report
}

// Restored is a file that a command changed and hone puts back.
type Restored struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Report is what the record of a loop's own step or command can tell users, in
// addition to what the loop reads from it. All screens show it; they know
// nothing else about a loop.
type Report struct {
	Said string `json:"said,omitempty"` // what was done, or its outcome
	// Log is what was printed, if something is wrong.
	Log string `json:"printed,omitempty"`
}

// Asked is the begin of a model call, or of an agent's whole session.
type Asked struct {
	Role    string `json:"role"`
	Model   string `json:"model"`
	Request string `json:"request"` // object with the request; see [ReadRequest]
	Bytes   int64  `json:"bytes"`   // of the whole request
	// Command is true for an agent's session. Such a session runs commands, so
	// that nothing tells in advance what it changes.
	Command bool `json:"command,omitempty"`
	Before
	// Stronger means that the role has a stronger model, which has not taken over yet.
	Stronger bool `json:"stronger,omitempty"`
}

// Replied is the record of a model call, or of an agent's whole session.
type Replied struct {
	Role  string `json:"role"`
	Model string `json:"model"`
	// Stored is the JSON form of the [StoredReply], which is in the line if it is short, so that
	// no object must be durable first. It is a text, so that a redacted journal keeps none of it.
	Stored string       `json:"stored,omitempty"`
	Reply  string       `json:"reply,omitempty"` // object with the StoredReply if it is long
	Bytes  int          `json:"bytes"`           // of visible text
	Finish model.Finish `json:"finish"`
	Detail string       `json:"detail,omitempty"`
	Usage  *model.Usage `json:"usage,omitempty"` // nil: the provider did not say
	// Request is the object that holds what an agent was sent after its first
	// session was interrupted. Empty if it was sent what its begin names.
	Request string `json:"request,omitempty"`
}

// CommandBegun is the begin of a command that no tool call runs.
type CommandBegun struct {
	Before
}

// Before is the tree before something that runs commands; zero before anything else.
type Before struct {
	Manifest string `json:"manifest,omitempty"` // object with the tree's manifest
	// Ignored are the files that the user's own tools run or believe, and that git ignores. What
	// a command that a model asked for adds to them is put back.
	Ignored []string `json:"ignored,omitempty"`
}

// ToolCall is the begin of a tool call.
type ToolCall struct {
	Role    string `json:"role"`
	Tool    string `json:"tool"`              // as the model called it
	Args    string `json:"args"`              // as the model wrote them; empty if Object is set
	Object  string `json:"object,omitempty"`  // object with the arguments if they are long
	Refused string `json:"refused,omitempty"` // why the call is not run; empty if it is
	// Command is true for a tool that runs commands, so that nothing tells in
	// advance what the call changes.
	Command bool `json:"command,omitempty"`
	Before
}

// Reserve is durable before the request of an attempt leaves. It counts in full
// until a commit replaces it, also after a crash.
type Reserve struct {
	Role    string   `json:"role"`
	Model   string   `json:"model"`
	Attempt int      `json:"attempt"`        // 0 is the first
	Tokens  int64    `json:"tokens"`         // most that the attempt can use; of an agent's session, at least its request
	Cost    *float64 `json:"cost,omitempty"` // most, in USD; nil: the price is not known
}

// Commit replaces a reserve with what the attempt used.
type Commit struct {
	Reserve int64        `json:"reserve"` // the reserve's sequence number
	Usage   *model.Usage `json:"usage,omitempty"`
	Tokens  int64        `json:"tokens"` // charged
	// Assumed is the part of Tokens that Usage does not explain, if there is a usage: only
	// what another run used can have both.
	Assumed int64    `json:"assumed_tokens,omitempty"`
	Cost    *float64 `json:"cost,omitempty"`
	// Basis says who reported the usage: "provider", or "agent" if only the agent
	// that made the calls could, in which case a nil usage means that it did not; or
	// "run", if another run used what was reserved. It is "nothing was generated" if the provider refused the request, and
	// "assumed in full" if nothing is known.
	Basis string `json:"basis"`
	Error string `json:"error,omitempty"`
}

// Usage is the sums of a run after an attempt.
type Usage struct {
	Tokens int64       `json:"tokens"` // charged or reserved
	Cost   *float64    `json:"cost,omitempty"`
	Known  model.Usage `json:"known"` // what providers reported, added up
}

// Retried is a wait between two attempts.
type Retried struct {
	Attempt int    `json:"attempt"`         // 0 is the first
	Limit   int    `json:"limit,omitempty"` // maximum number of attempts; 0 means no limit
	Error   string `json:"error"`
	Wait    int64  `json:"wait_ms"`
}

// FailedOver says that a model is not asked again in the run, because all attempts at
// a call failed, and which model takes its place.
type FailedOver struct {
	Round int    `json:"round"`
	Role  string `json:"role"` // whose call failed
	From  string `json:"from"`
	To    string `json:"to"`
	Error string `json:"error"` // of the last attempt
}

// String says what happened in one line.
func (f FailedOver) String() string {
	return fmt.Sprintf("%s took the place of %s in round %d: %s", f.To, f.From, f.Round, f.Error)
}

// Escalated says that another model does all rounds from Round on, because After rounds
// in a row left no fewer findings.
type Escalated struct {
	Round int    `json:"round"` // the first that the other model does
	Role  string `json:"role"`  // the first of those that the model had
	From  string `json:"from"`
	To    string `json:"to"`
	After int    `json:"after"`
}

// String says what happened in one line.
func (e Escalated) String() string {
	return fmt.Sprintf("%s does the rounds from round %d on in place of %s: %d in a row left no fewer findings", e.To, e.Round, e.From, e.After)
}

// Served is what happened to a server that a loop runs for a role. It belongs to
// no step, because the server may outlive one.
type Served struct {
	What string `json:"what"` // Up, Reached or Down
	URL  string `json:"url"`  // where the role finds it
	// Requests is the number of a request that reached the server, counted since it is
	// up; 0 for other events, and in journals of older versions.
	Requests int `json:"requests,omitempty"`
}

// Attempt is the state of one attempt, after each of its events that users see. An
// attempt is a run in a copy of the tree, which this run pays for.
type Attempt struct {
	Number int    `json:"attempt"`               // 1 is the first
	Dir    string `json:"attempt_dir"`           // where its run works: the copy, or a directory in it
	Run    string `json:"attempt_run,omitempty"` // the id of its run; empty if its process refused to start one
	Model  string `json:"model"`
	Rounds int    `json:"rounds"` // that are decided
	// Findings is how many findings the last round left; nil before the first check.
	Findings *int   `json:"left,omitempty"`
	Tokens   int64  `json:"tokens"`           // that its run has used
	Result   Kind   `json:"result,omitempty"` // empty while it runs
	Why      string `json:"why,omitempty"`    // of the result
	// Applied means that its changes were applied to the tree.
	Applied bool `json:"applied,omitempty"`
}

// What happens to a server.
const (
	Up      = "up"      // it answers
	Reached = "reached" // a request of the role's commands has reached it; later ones need not be recorded
	Down    = "down"    // it was stopped
)

// Question asks the user whether one edit may be made, or what the model asks. It is the
// begin of an approval.
type Question struct {
	// Asks is what the model asks, if the answer is a text (ruling B15); then there is no
	// edit.
	Asks   string          `json:"asks,omitempty"`
	Path   string          `json:"path,omitempty"`
	Reason string          `json:"reason,omitempty"` // why the edit needs an approval
	Delete bool            `json:"delete,omitempty"`
	Edited bool            `json:"edited,omitempty"` // After is what the user made of an earlier question
	Before workspace.Image `json:"before"`
	After  workspace.Image `json:"after"`
	// Old and New are the file's contents before and after; nil if there is no
	// file.
	Old []byte `json:"-"`
	New []byte `json:"-"`
	// Said is what the model said last, if the question is about what judges the work.
	Said string `json:"-"`
	// More is how many questions about the same change follow.
	More int `json:"-"`
	// Problem is why the contents of the last answer cannot be used, if the question
	// is asked again because of that; otherwise it is empty. Refused are these contents,
	// so that the user can continue to edit them.
	Problem string `json:"-"`
	Refused []byte `json:"-"`
}

// AboutJudges begins the reason of a question about a file that judges the work, and
// whose change was taken back because the check fails without it (ruling G21).
const AboutJudges = "the check passes only with this change, so hone took it back"

// AboutJudges reports whether the question is such a one: only a user who sees the change
// can answer it.
func (q Question) AboutJudges() bool { return strings.HasPrefix(q.Reason, AboutJudges) }

// InAdvance reports whether a flag can answer the question before it is asked.
func (q Question) InAdvance() bool { return !q.AboutJudges() && q.Asks == "" }

// About returns what the question is about: the file, or what the model asks.
func (q Question) About() string { return cmp.Or(q.Asks, q.Path) }

// Answer is the record of an approval: what the user, or a flag, said. If it has
// edited contents it approves nothing: they are asked about next.
type Answer struct {
	Approved bool `json:"approved"`
	// Text answers what the model asks; empty if the user has no answer to it.
	Text string `json:"text,omitempty"`
	// Rest also approves the questions about the same change that follow.
	Rest bool `json:"rest,omitempty"`
	// By says who answered: "user", "flag", [NoUser] or [Outdated].
	By string `json:"by"`
	// Edited are the contents that the user made of the proposed ones, which are an
	// object. It is zero if the user did not edit them.
	Edited workspace.Image `json:"edited,omitzero"`
	// Contents are the edited contents, in the answer of a user; nil if there are
	// none.
	Contents []byte `json:"-"`
}

const (
	// NoUser is the answerer if no user could be asked. Such a question is
	// pending: it is asked again when the run is resumed and a user can be asked.
	NoUser = "none"
	// Outdated is the answerer if the file had changed when a pending question
	// could be asked. The question is dropped.
	Outdated = "outdated"
)

// Changed is the outcome of one edit.
type Changed struct {
	workspace.Verdict
	Delete bool  `json:"delete,omitempty"`
	Bytes  int64 `json:"bytes"` // of the requested contents
	// Attempted is the object with the contents of an edit that was not
	// made; empty if there are none.
	Attempted string `json:"attempted,omitempty"`
}

// ApplyBegun is the begin of an apply: the edits that it makes. For each edit,
// objects contain the file before and after it.
type ApplyBegun Applied

// Reviewed is the result of the step [StepReview]: a verdict for each edit of a change.
type Reviewed struct {
	Verdicts []workspace.Verdict `json:"verdicts"`
}

// Applied is the record of an apply: the edits that it made.
type Applied struct {
	Verdicts []workspace.Verdict `json:"verdicts"`
	// Outdated are files that the user changed after the edits were reviewed. Then no
	// edit is made, and Verdicts is empty.
	Outdated []string `json:"outdated,omitempty"`
	// Denied are files that the user may not change, and why. Then no edit is made either.
	Denied map[string]string `json:"denied,omitempty"`
}

// CheckBegun is the begin of a check.
type CheckBegun struct {
	Manifest string `json:"manifest"` // object with the tree's manifest
}

// Checked is the record of a check. It is valid as long as the tree is the one
// that the check left.
type Checked struct {
	Findings []check.Finding `json:"findings"`
	// Flaky are findings that were not the same each time the check ran; they do
	// not count.
	Flaky    []check.Finding `json:"flaky,omitempty"`
	Restored []string        `json:"put_back,omitempty"` // protected files that it changed
	// Judges are files that judge the work, if it passes only with the run's changes to them;
	// Lacks what it needs of the files that git ignores and that a clean copy lacks. Of a
	// pass that is still to be confirmed, Lacks are such files that judge the work.
	Judges []string `json:"judges,omitempty"`
	Lacks  []string `json:"lacks,omitempty"`
	// Old is how many blocking findings it had that do not count, because they were there
	// before the first round. Of the check that said so, Baseline is the object with them: how
	// often each ID occurred.
	Old      int    `json:"old,omitempty"`
	Baseline string `json:"baseline,omitempty"`
	// From is the file that the findings are from, if the check did not run; see
	// [StepReported].
	From string `json:"from,omitempty"`
	// Output is the object with what was printed, without secrets, abridged if it is long.
	// Empty if nothing was.
	Output   string        `json:"output,omitempty"`
	Tree     string        `json:"tree"`     // digest of the manifest
	Manifest string        `json:"manifest"` // object with the tree's manifest afterwards
	Took     time.Duration `json:"took_ns"`
}

// Outside names the files that were changed outside the run, between two of its
// processes.
type Outside struct {
	Paths    []string `json:"paths"`
	Manifest string   `json:"manifest"` // object with the tree's manifest with these changes
}

// Undone says that files which the run had changed were restored by an undo.
type Undone struct {
	Round    int      `json:"round"` // to the end of this round; 0: before the first
	Paths    []string `json:"paths"`
	Manifest string   `json:"manifest"` // object with the tree's manifest afterwards
	Tree     string   `json:"tree"`     // the manifest's digest
}

// Unpaid is the record of the step [StepUnpaid]: why the budget did not pay for
// the rest of a round.
type Unpaid struct {
	Why  string `json:"why"`
	Next Next   `json:"next,omitzero"`
}

// Decision says what follows a round.
type Decision string

// The three decisions. Empty means that none was made yet.
const (
	AnotherRound Decision = "continue"
	Done         Decision = "done"
	StopNow      Decision = "stop" // not done, and no further round; see State.Kind
)

// State is the state of a run after a round.
type State struct {
	Round    int             `json:"round"` // the last round that was decided; 0: none, or the check before the first
	Decision Decision        `json:"decision"`
	Kind     Kind            `json:"result,omitempty"` // empty: the run has not ended
	Why      string          `json:"why,omitempty"`
	Next     Next            `json:"next,omitzero"`
	Findings []check.Finding `json:"findings"`
	// Checked are the last of Findings: those of the check alone. They stay until
	// the check runs again.
	Checked  []check.Finding `json:"checked,omitempty"`
	Manifest string          `json:"manifest,omitempty"` // object with the tree's manifest
	Tree     string          `json:"tree,omitempty"`     // its digest
	// Fingerprint is equal for rounds that ended with the same tree and the same
	// findings, apart from times and the like.
	Fingerprint string `json:"fingerprint"`
	// Same is an earlier round that ended in this state: the one before, if the round changed
	// nothing. 0 is the state before the first round. Nil means that there is none.
	Same *int `json:"same_as,omitempty"`
	// Score is what the round measured; nil if the run has no number as its judge.
	Score *Score `json:"score,omitempty"`
}

// ChangedNothing reports whether the round ended as it began: with the same files and the
// same findings.
func (s State) ChangedNothing() bool { return s.Same != nil && *s.Same == s.Round-1 }

// RoundFindings returns the findings of the round itself, without the check's.
func (s State) RoundFindings() []check.Finding {
	return s.Findings[:max(0, len(s.Findings)-len(s.Checked))]
}

// End says how a run ended. A run that is resumed ends again.
type End struct {
	Kind   Kind   `json:"result"`
	Why    string `json:"why"`
	Next   Next   `json:"next,omitzero"`
	Rounds int    `json:"rounds"`
	Tokens int64  `json:"tokens"`
	// Assumed is the part of Tokens that no provider confirmed. A call with an
	// unknown outcome counts with its maximum.
	Assumed  int64           `json:"assumed_tokens"`
	Cost     *float64        `json:"cost,omitempty"` // USD; nil if a price is not known
	Findings []check.Finding `json:"findings"`
	// Best is an earlier round that was better than the last: with fewer findings, or
	// with a check that got further; 0 if there is
	// none, or if the run did not end for lack of rounds or budget.
	Best int `json:"best_round,omitempty"`
	// Restored means that the tree is the one at the end of round Best.
	Restored bool `json:"restored,omitempty"`
	// Ignored names what changed during the run among the files that git ignores, other
	// than by edits; empty if nothing did, or if no command ran.
	Ignored string   `json:"ignored,omitempty"`
	Notes   []string `json:"notes,omitempty"` // what else the user should know, one line each
	// Said is what the model said last: one line, which may be cut
	// and contain control characters. Empty if it said nothing.
	Said string `json:"said,omitempty"`
}
