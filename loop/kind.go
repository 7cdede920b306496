// Package loop defines what a loop declares about itself, and what it is built from.
//
// A loop is a package below this one: a function that is its round, and one
// [Kind] value in kind.go. From the Kind the command line gets the command, flags,
// configuration table, starter files and preview, and how to resume and replay a
// recorded run. A program that only runs a loop of its own does not need a Kind: it
// uses the package harness.
//
// A loop is built from a [Session], which the package harness implements. A loop
// never opens a model, a wall or a journal itself.
package loop

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/spf13/pflag"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/config"
	"hone/internal/git"
	"hone/workspace"
	"hone/workspace/secret"
)

// Kind is what a loop declares about itself. Name, Help and New are required;
// the zero value of every other field is a usable default.
type Kind struct {
	Name string // of the command, of the configuration table and in the journal
	Help

	// Text means that the argument may be a text in the user's words.
	Text bool
	// Args returns what is wrong with the command's arguments; see [Kind.Accept]. Nil accepts one text if Text is set, or
	// none.
	Args func(args []string) error
	// Rewrite rewrites the arguments before flags are parsed, so that flags in the
	// style of another program work. Nil changes nothing.
	Rewrite func(args []string) []string

	// Modelless means that a run may end without asking a model. Such a run starts
	// without a key, which is missed only when a model would be asked.
	Modelless bool
	// Agents allows command-line agents as the loop's models.
	Agents bool
	// Root returns the workspace of a directory. Nil means the directory itself, absolute
	// and without links.
	Root func(dir string) (string, error)
	// Key reads a provider's key from a file of the workspace, and names the environment variable that it replaces; nil,
	// and an empty key, mean that there is none.
	Key func(tree *workspace.Tree) (Key, error)
	// Programs names the folder's own programs that the loop runs although the user did
	// not type them, such as build.sh. They need the user's trust. Nil means that there
	// are none.
	Programs func(root string) ([]string, error)

	// New returns an invocation of the loop with no settings resolved.
	New func() Loop
	// Starters returns the files that a user of the loop starts from. Nil means that
	// there are none, which "hone init NAME" then says.
	Starters func() Starters
}

// Accept returns what is wrong with the command's arguments.
func (k Kind) Accept(args []string) error {
	switch {
	case k.Args != nil:
		return k.Args(args)
	case !k.Text && len(args) > 0:
		return Usage(fmt.Sprintf("%s takes no arguments, and %q is not a flag", k.Name, args[0]), "hone help "+k.Name)
	case len(args) > 1:
		return Usage(fmt.Sprintf("one text is expected, but there are %d arguments", len(args)),
			`put the text in quotes; the check is a flag: --check "make test"`)
	}
	return nil
}

// Help is what the command line says of a loop.
type Help struct {
	Use     string // the command line after "hone", such as "task TASK.toml"
	Short   string // one line
	Long    string
	Example string
}

// ReadHelp reads a text whose first line is the use and whose second is the short help; the long one follows after an empty line,
// and the examples after the line "Examples:".
func ReadHelp(text string) Help {
	use, text, _ := strings.Cut(text, "\n")
	short, text, _ := strings.Cut(text, "\n")
	long, examples, _ := strings.Cut(text, "\nExamples:\n")
	return Help{use, short, strings.TrimSpace(long), strings.TrimRight(examples, "\n")}
}

// Key is a provider's key in a file of the workspace.
type Key struct{ File, Variable, Value string }

// Loop is one invocation of a kind: a pointer to a struct whose JSON is recorded in
// the start event. It embeds [Settings], which implements the methods that a loop
// need not define itself.
type Loop interface {
	// Shared returns the settings that all loops have.
	Shared() *Settings
	// Resolve sets the settings from flags, environment, configuration and defaults, and returns
	// why a run cannot start with them; of a preview ([Input.Preview]) only why there is no prompt. It
	// must not write or send anything.
	Resolve(ctx context.Context, in *Input) error
	// Models returns the loop's models, one for each role that has its own. They point
	// into the settings.
	Models() []RoleModel
	// Own reports which files below root the loop writes for the user, such as
	// logs; nil if none.
	Own(root string) func(path string) bool
	// Build returns the loop. It is called for new, resumed and replayed runs, and
	// depends only on the settings and the session.
	Build(s Session) (Built, error)
}

// ExampleCheck stands in hints for a check: the command line names the project's own instead.
const ExampleCheck = "make test"

// RoleModel is one model that a loop asks.
type RoleModel struct {
	Role  string
	Model *Model
}

// Built is a loop that is ready to run.
type Built struct {
	// Run is what [Session.NewRun] returned.
	Run *hone.Run
	// Round is the loop's round. The session's walls exist while it runs.
	Round hone.Round
	// With names the models for the user; empty if there is only that of the settings.
	With string
	// Turns limits the turns of a session, by role; nil if there are no conversations.
	Turns map[string]int
	// Finish writes the loop's own files at the end of a run; nil writes nothing.
	Finish func(ctx context.Context, end hone.End) error
	// VerboseOut means that --verbose shows the run on stdout, as the loop's original
	// does.
	VerboseOut bool
	// Rounds is how many rounds the run has, for the screen; 0 means the limit of the run,
	// which is for something else otherwise.
	Rounds int
	// Checks names what the check runs; empty if that is only the command of the settings.
	Checks string
	// Asking means that the check may ask the user at the terminal.
	Asking bool
	// Summary is the loop's own last lines; nil if there are none.
	Summary func(hone.End) string
}

// Series is implemented by a Loop whose one command may start several runs, one
// after another, on one budget. The command stops at the first run that is not
// done.
type Series interface {
	// Split returns the arguments of each run. If there are none, Split has printed the
	// reason on in.Out.
	Split(ctx context.Context, in *Input) ([][]string, error)
}

// Input is what an invocation's settings are resolved from.
type Input struct {
	Kind    Kind
	Root    string        // the workspace, absolute
	Dir     string        // the directory as the user named it
	Preview bool          // only the first prompt is wanted
	Args    []string      // the command's arguments, which [Kind.Args] accepted; see [Input.Below]
	Flags   config.Values // that were given
	Values  config.Values // of all settings of the loop; it may change them before it calls Settings
	Changed func(flag string) bool
	Getenv  func(variable string) string
	File    config.File     // .config/hone.toml
	Tree    *workspace.Tree // of Root, not listed by git
	Note    func(text string)
	In      io.Reader // standard input
	Out     io.Writer // standard output

	// Edit opens an editor on a temporary file of that name, and returns what the user wrote.
	// It is nil without a terminal.
	Edit func(name string) (string, error)
	// Resolve resolves the shared settings; see [Input.Settings].
	Resolve func(config.Values) (Settings, error)
	// Guard returns what [Session.Guard] will return. It reads the whole tree. It depends on the resolved settings.
	Guard func(ctx context.Context) (*secret.Guard, error)
	// ReadFindings returns what a check found elsewhere, of its log or report. It depends on the
	// resolved settings.
	ReadFindings func(text string) []check.Finding
	// HasProvider reports whether a model's name is PROVIDER/NAME.
	HasProvider func(model string) bool
}

// Settings resolves the shared settings.
func (in *Input) Settings() (Settings, error) { return in.Resolve(in.Values) }

// Model resolves an additional model, with the values of the settings' model. It does not
// escalate: it judges, or does what does not depend on how hard the work is.
func (in *Input) Model(name string) (Model, error) {
	v := maps.Clone(in.Values)
	config.Model.Set(v, name)
	s, err := in.Resolve(v)
	s.Model.Escalation, s.Model.EscalateAfter = nil, 0
	return s.Model, err
}

// Limits returns the run's limits.
func (in *Input) Limits() hone.Limits { return LimitsOf(in.Values) }

// Previewer is implemented by a Loop that can show its first prompt.
type Previewer interface {
	// Preview composes the prompt. It must not run, send or write anything.
	Preview(ctx context.Context, v View) (Prompt, error)
}

// View is the input of a preview.
type View struct {
	Tree   *workspace.Tree // as the run would see it
	Repo   *git.Repo       // nil if there is none
	Guard  *secret.Guard
	Limits hone.Limits
}

// Prompt is the first prompt of a run.
type Prompt struct {
	System string
	Text   string
	Files  int    // how many files are sent in full
	What   string // its contents in words; empty means the files and the instructions
	Model  string // the model that would get it; empty means the settings' model
	Fits   error  // nil if it fits the model's context
	// Warnings are what the user may not expect of the settings; each is one line.
	Warnings []string
}

// Starters are the files that a user of a loop starts from.
type Starters struct {
	Short string // one line of help
	Long  string
	Flags func(fs *pflag.FlagSet) // nil if there are none
	// NeedsCheck means that the loop has no use without a check. A .config/hone.toml
	// with a check to fill in is then written for a project of any language.
	NeedsCheck bool
	// Files returns the files for a directory, in the order in which they are written. check is the
	// command that tests a project of its languages; empty if none is known. A file that exists is not
	// overwritten. Nil means that there are none.
	Files func(root, check string, note func(text string)) ([]File, error)
	// Next returns what the user does after the files are written. check is as in Files.
	Next func(root, check string) string
}

// CheckStarters are the [Kind.Starters] of a loop that starts from nothing but a check. next is what the user does then.
func CheckStarters(next string) func() Starters {
	return func() Starters {
		return Starters{Short: "a .config/hone.toml with a check to enable", NeedsCheck: true, Next: func(_, _ string) string { return next }}
	}
}

// File is a starter file. It is made executable if it starts with #!.
type File struct {
	Path    string // relative to the root, with slashes
	Content []byte
}

// Verified is something that a run must verify, such as a contract, with the verdict of each
// round.
type Verified struct {
	Text   string // as the user's file states it
	Place  string // such as "specs/phase2.md:14"
	Rounds map[int]Verdict
}

// Verdict is the result of a round for a [Verified]. A round without a verdict did not verify
// it.
type Verdict string

// The verdicts.
const (
	Passed Verdict = "passed"
	// PassedUnseen means that the test passed, but hone never saw it fail: it may test nothing.
	PassedUnseen Verdict = "passed, but the test was not seen failing"
	Failed       Verdict = "failed"
)

// Contract is what a loop records of one [Verified]. Its Verdict is that of the round; empty before there is one.
type Contract struct {
	Text    string  `json:"text"`
	Place   string  `json:"place"`
	Verdict Verdict `json:"verdict,omitempty"`
}

const stepVerified = "verified"

// RecordVerified records all that a run must verify, with the verdicts of this round.
func RecordVerified(ctx context.Context, r *hone.Run, all []Contract) error {
	_, err := hone.Step(ctx, r, stepVerified, nil, func(context.Context) ([]Contract, error) { return all, nil })
	return err
}

// VerifiedOf returns what a recorded run must verify, in the order of the user's files; nothing if its loop has only
// its check. The last verdict of a round counts. get reads the run's objects.
func VerifiedOf(past *history.Past, get history.Get) (all []Verified, err error) {
	for _, e := range past.Records(stepVerified) {
		contracts, err := history.ReadResult[[]Contract](e.Event, get)
		if err != nil {
			return nil, err
		}
		for i, c := range contracts {
			if i == len(all) {
				all = append(all, Verified{c.Text, c.Place, map[int]Verdict{}})
			}
			if c.Verdict != "" {
				all[i].Rounds[e.Step.Round] = c.Verdict
			}
		}
	}
	return all, nil
}
