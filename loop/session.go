package loop

import (
	"context"
	"io"

	"hone"
	"hone/check"
	"hone/internal/git"
	"hone/model"
	"hone/sandbox"
	"hone/tool"
	"hone/tool/allow"
	"hone/workspace"
	"hone/workspace/secret"
)

// Session is the environment from which one run is built: the locked workspace, the
// models, and the walls of commands. The package harness implements it.
type Session interface {
	// Root returns the workspace's absolute path.
	Root() string
	// Repo returns the repository whose root is the workspace; nil if there is none.
	Repo() *git.Repo
	// IO returns the environment of the user's own checks, and the outputs.
	IO() IO
	// Guard finds secrets, which are withheld from models, including providers' keys.
	Guard() *secret.Guard
	// Unwalled runs the user's own programs without walls. They end with this process.
	Unwalled() sandbox.Runner
	// Replayed reports whether a recorded run is replayed. Then no command runs and no
	// model is called.
	Replayed() bool

	// NewRun returns the run, which reviews changes by the rules. It must be called
	// once.
	NewRun(rules workspace.Rules) *hone.Run
	// Role returns a role with the settings' model and bounds, the tools of Toolset{}, and the
	// repository's advice ([Settings.WithAdvice]), for a loop with one conversation. It
	// also plans the walls for the commands of that role. A loop with several models,
	// or one that only calls [hone.Run.Ask], which offers no tools, makes roles with
	// [Model.Role] and calls SetModel. This method and those below must be called
	// after NewRun.
	Role(name, system string) hone.Role
	// SetModel sets a role's model. A command-line agent works behind the walls w,
	// which may be nil for any other model.
	SetModel(role *hone.Role, m *Model, w Walls) error
	// Tools returns the tools of a role.
	Tools(t Toolset) ([]tool.Tool, error)
	// RoleTree returns the tree that the tools of a Toolset read: its Dir, without
	// what is Closed. A loop builds its own tools of the role on the tree of the Toolset
	// that it gives to Tools, so that they read no more than the others. The session
	// closes it.
	RoleTree(t Toolset) (*workspace.Tree, error)
	// Walls plans walls. They are built before the first round, and before a check that
	// runs earlier. They are removed when the session ends.
	Walls(p WallPlan) Walls
	// Command returns a check that runs a command line in the workspace, behind
	// the session's own walls, and passes if it exits 0.
	Command(line string) check.Func
	// Measuring waits until no other run of this user measures on this machine, and keeps
	// others from it until done is called. It calls waiting first if it has to wait.
	Measuring(ctx context.Context, waiting func() error) (done func(), err error)
	// InCopy returns a runner of the user's own commands in a clean copy of the workspace,
	// behind the walls that Command has. Remove removes them.
	InCopy(dir string) (r sandbox.Runner, remove func() error, err error)
	// Check returns the settings' check for a tree, which is the workspace or a copy of
	// it, behind walls; nil if the settings have none.
	Check(tree *workspace.Tree, w Walls) check.Func
	// ReadOutput returns the findings in the output of a program that ran in a tree, read as the
	// settings say.
	ReadOutput(tree *workspace.Tree, output string, exit int) []check.Finding
	// SetCheck sets the run's check, and its proof if the settings ask for one. A new
	// run with --prove ends with a usage error if the built loop has not set a check.
	//
	// makeCheck is called for the workspace, and for each clean copy of it that the
	// check is proved on. It returns a check that looks at the tree alone and runs its
	// commands behind w. The engine records a check's findings as a step, so that the
	// check may read files directly, and a replayed run does not call it. If w is nil
	// here, makeCheck gets the walls that Role, Command and Toolset{} also use.
	SetCheck(w Walls, makeCheck func(tree *workspace.Tree, w Walls) check.Func)
}

// Notices tells the user texts, each once in a run.
func Notices(r *hone.Run, texts ...string) error {
	for _, text := range texts {
		if err := r.Notice(text); err != nil {
			return err
		}
	}
	return nil
}

// Converse lets a role work on a prompt: a model in a conversation with tools, a command-line agent with its own.
func Converse(ctx context.Context, r *hone.Run, role hone.Role, messages []model.Message) (hone.Conversation, error) {
	if role.Agent {
		return r.Delegate(ctx, role, messages)
	}
	return r.Talk(ctx, role, messages)
}

// Say prints what a model says to the user, once in a run, with [IO.Say]; nil prints nothing.
func Say(ctx context.Context, r *hone.Run, print func(text string), text string) error {
	return Do(ctx, r, "say", text, func(context.Context) error {
		if print != nil {
			print(text)
		}
		return nil
	})
}

// IO is the environment of the user's own checks, and the outputs.
type IO struct {
	// Environ is the user's environment, including keys. It is for the user's own
	// programs, not for commands that a model asked for or wrote.
	Environ []string
	// Terminal is standard input if it is a terminal and its user can be asked; nil if
	// not. It is for the user's own programs, as long as they run.
	Terminal io.Reader
	// CheckOutput receives a check's output while the check runs.
	CheckOutput io.Writer
	// Say prints a model's message to the user.
	Say func(text string)
}

// Walls run commands. [Walls.Grade] states what they keep commands from doing.
type Walls interface {
	sandbox.Runner
	// Start is like Run for a command that keeps running.
	Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error)
	// With returns a runner behind the same walls, whose commands also get the user's
	// variables of these names, even if they are keys.
	With(variables []string) sandbox.Runner
	// Grade returns the grade of the walls; the zero value before they are built.
	Grade() sandbox.Grade
}

// WallPlan changes what commands behind walls can do, compared to the settings. With
// the zero value commands may write the workspace. If the settings name no wall, commands
// run with the user's rights, and their limits and the protection of files remain (ruling G9).
type WallPlan struct {
	// Root is the directory that commands may write; empty means the workspace.
	Root string
	// OwnHome gives commands an empty home directory even if the settings name no wall.
	// If it is false such commands get the user's environment without providers' keys.
	OwnHome bool
	// ReadOnly lets commands read the tree, but not write it.
	ReadOnly bool
	// Hides restricts the wall "auto" to walls that hide the rest of the machine.
	Hides bool
	// After are walls that are built before these; these are of the same kind. Nil means
	// that the settings decide.
	After Walls
	// Later builds the walls only when their first command runs. It serves a loop that
	// may have none, such as one whose check is Go code.
	Later bool

	Net         *bool    // allow the network; nil means that the settings decide
	Protect     []string // paths of the tree that commands may not change
	Write, Read []string // absolute
	Hide        []string // absolute
	Env         []string // names of the user's variables that commands get
	Vars        []string // KEY=VALUE

	// Door returns an opening in the walls for one address. Its argument tells whether
	// commands have a network of their own. Nil means that there is no door.
	Door func(ownNet bool) sandbox.Door
	// Prepare creates what must exist before the walls are built; nil creates nothing.
	Prepare func(ctx context.Context) error
	// OnBuilt is called once, after the walls are built, with the address of Door behind
	// them. It returns additional variables for commands, KEY=VALUE. Nil adds none.
	OnBuilt func(g sandbox.Grade, door string) (vars []string, err error)
}

// Toolset defines the tools of a role. The zero value is read, glob, grep, write,
// edit and bash for the whole tree, behind walls of the zero WallPlan. There is
// no bash if the walls are absent; see [WallSettings].
type Toolset struct {
	// Dir is the directory that the role sees as its whole tree; empty means the
	// workspace.
	Dir string
	// Closed is the name of a directory at the top of that tree that the role's tools
	// do not list, read or change, and Why is the explanation that the role gets. It
	// does not bind commands: their walls do. Empty means that there is none.
	Closed, Why string
	// Walls are the walls of bash; nil means the session's own.
	Walls Walls
	// Programs are the programs that bash may run, as in [allow.Lines]; nil means that
	// only the walls limit what it runs.
	Programs []string
	// Always are more lines that bash may run whatever Programs are, beside the check.
	Always []string
	// ReadOnly omits write and edit, and refuses redirects in bash.
	ReadOnly bool
}

// Lines returns the rules for command lines of the toolset's bash in a directory.
func (t Toolset) Lines(dir string) allow.Lines {
	return allow.Lines{Programs: t.Programs, Always: t.Always, Dir: dir, ReadOnly: t.ReadOnly}
}

// Do is [hone.Step] for what has no result.
func Do(ctx context.Context, r *hone.Run, name string, input any, do func(context.Context) error) error {
	_, err := hone.Step(ctx, r, name, input, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}
