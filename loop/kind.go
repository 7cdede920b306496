// Package loop says what a loop declares of itself, and what it is built from.
//
// A loop is a folder below this one: the function that is its round, and one
// [Kind] value in kind.go. The command line takes from the Kind its command,
// flags, configuration table, starter files, preview, and how a recorded run is
// resumed and replayed. A program that only wants to run a loop of its own does
// not need a Kind: it uses the package harness.
//
// A loop is built from a [Session], which the package harness implements. A
// loop never opens a model, a wall or a journal itself.
package loop

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"hone"
	"hone/internal/config"
	"hone/internal/git"
	"hone/sandbox"
	"hone/workspace"
	"hone/workspace/secret"
)

// Kind is what a loop declares of itself. Name, Use, Short and New are needed;
// the zero value of every other field is a usable default.
type Kind struct {
	Name    string // of the command, of the configuration table and in the journal
	Use     string // the command line after "hone", such as "task TASK.toml"
	Short   string // one line of help
	Long    string
	Example string

	// Args returns what is wrong with the command's arguments. Nil takes none.
	Args func(args []string) error
	// Rewrite rewrites arguments of the command line that the flags of other
	// programs come in, before flags are read. Nil changes nothing.
	Rewrite func(args []string) []string

	// Rounds is the most rounds by default.
	Rounds int
	// Model is the default model; empty takes the first provider whose key is set.
	Model string
	// Walls is the default wall of commands; empty is none.
	Walls sandbox.Wall
	// Agents allows command-line agents as the loop's models.
	Agents bool

	// Root is the workspace that a folder belongs to. Nil takes the folder
	// itself, absolute and without links.
	Root func(dir string) (string, error)
	// Keys reads providers' keys from files of the workspace: they stand in for
	// the variables by which they are keyed. Nil reads none.
	Keys func(tree *workspace.Tree) (map[string]string, error)

	// New makes one invocation of the loop, with nothing resolved.
	New func() Loop
	// Preview composes what the loop would send first; see [Previewer].
	Preview Preview
	// Starters makes the files that a user of the loop starts from.
	Starters func() Starters
}

// Loop is one invocation of a kind: a pointer to a struct whose JSON is what
// the start event holds. It embeds [Settings], which implements the methods
// that a loop does not need to have of its own.
type Loop interface {
	// Shared returns the settings that every loop has.
	Shared() *Settings
	// Flags adds the loop's own flags to the shared ones, which it may look up
	// to say more of them.
	Flags(fs *pflag.FlagSet)
	// Valid returns what is wrong with the flags by themselves. It may change
	// the shared ones. Only Kind, Dir, Args, Flags, Changed and Getenv of the
	// input are set.
	Valid(in *Input) error
	// Section is a pointer to the loop's own table of .config/hone.toml, a
	// struct with toml tags; nil if there is none.
	Section() any
	// Resolve fills the settings from flags, environment, configuration and
	// defaults. Nothing has been written or sent yet, and nothing may be.
	Resolve(ctx context.Context, in *Input) (hone.Limits, error)
	// Ready returns what keeps resolved settings from being run. A preview does
	// not ask for it.
	Ready(in *Input) error
	// Models returns the models that the loop asks, one for each role that has
	// its own. The pointers lead into the settings.
	Models() []RoleModel
	// Own reports which files below root the loop writes for the user, such as
	// logs; nil if none.
	Own(root string) func(path string) bool
	// Build puts the loop together. It is called for a new run, a resumed one
	// and a replay alike, and decides by the settings alone.
	Build(s Session) (Built, error)
}

// RoleModel is one model that a loop asks.
type RoleModel struct {
	Role  string
	Model *Model
}

// Built is a loop that is ready to run.
type Built struct {
	// Run is what [Session.NewRun] returned.
	Run *hone.Run
	// Round is the loop's round. It is called with the session's walls up.
	Round hone.Round
	// With names in words which models are asked; empty for the settings' one.
	With string
	// Turns are the most turns of a session, by role; nil if there are no conversations.
	Turns map[string]int
	// Finish writes what the loop leaves for the user, such as the program's exit
	// status; nil writes nothing.
	Finish func(ctx context.Context, end hone.End, exit int) error
	// Summary is the loop's own last lines; nil if there are none.
	Summary func(hone.End) string
}

// Series is implemented by a Loop whose one command may start several runs, one
// after another, on one budget. The command stops at the first run that is not
// done.
type Series interface {
	// Split returns the arguments of each run. None means that there is
	// nothing to run, and that Split has printed on in.Out why.
	Split(ctx context.Context, in *Input) ([][]string, error)
}

// Input is what an invocation's settings are resolved from.
type Input struct {
	Kind    Kind
	Root    string   // the workspace, absolute
	Dir     string   // the folder as the user named it
	Args    []string // the command's arguments
	Flags   Flags    // the shared ones; a loop may change them before it calls Settings
	Changed func(flag string) bool
	Getenv  func(variable string) string
	File    config.File     // .config/hone.toml
	Tree    *workspace.Tree // of Root, not listed by git
	Note    func(text string)
	In      io.Reader // standard input
	Out     io.Writer // standard output

	// Resolve resolves the shared settings; see [Input.Settings].
	Resolve func(Flags) (Settings, error)
	// HasProvider reports whether a model's name is PROVIDER/NAME.
	HasProvider func(model string) bool
}

// Settings resolves the shared settings. Approve is the flag's value, else
// "ask".
func (in *Input) Settings() (Settings, error) { return in.Resolve(in.Flags) }

// Model resolves another model than the settings' one, by the same flags.
func (in *Input) Model(name string) (Model, error) {
	f := in.Flags
	f.Model = name
	s, err := in.Resolve(f)
	return s.Model, err
}

// Limits are the run's limits: the flags', else rounds, which is the loop's own
// table's value or 0, else the shared configuration's, else the defaults.
func (in *Input) Limits(rounds int) hone.Limits {
	return in.Flags.Limits.Resolve(in.File.Limits, rounds, in.Kind.Rounds)
}

// Preview is how a kind's first prompt is shown without sending it. The zero
// value shows none.
type Preview struct {
	Short string // one line of help
	Use   string // the command line after "hone prompt"; empty: the Kind's
	Long  string
	Args  func(args []string) error // nil takes the Kind's
}

// Previewer is implemented by a Loop that can show its first prompt.
type Previewer interface {
	// PreviewFlags adds the flags that change the prompt.
	PreviewFlags(fs *pflag.FlagSet)
	// Preview composes the prompt. It runs nothing, and sends and writes
	// nothing.
	Preview(ctx context.Context, v View) (Prompt, error)
}

// View is what a preview is composed from.
type View struct {
	Tree   *workspace.Tree // as the run would see it
	Repo   *git.Repo       // nil if there is none
	Guard  *secret.Guard
	Limits hone.Limits
}

// Prompt is what would be sent first.
type Prompt struct {
	System string
	Text   string
	Files  int    // sent whole
	What   string // what it holds, in words; empty: the files and the instructions
	Model  string // whose context it was compared with; empty: the settings' model
	Fits   error  // nil: it fits the model's context
}

// Starters are the files that a user of a loop starts from.
type Starters struct {
	Short string // one line of help
	Long  string
	Flags func(fs *pflag.FlagSet) // nil if there are none
	// Files returns the files for a folder, in the order in which they are
	// written. A file that exists is kept. Nil writes none.
	Files func(root string, note func(text string)) ([]File, error)
	// Next returns what to do when the files of Files are written. It is called
	// before they are.
	Next func(root string) string
}

// File is a starter file. One that begins with #! is made executable.
type File struct {
	Path    string // relative to the root, with slashes
	Content []byte
}
