package loop

import (
	"context"
	"io"

	"hone"
	"hone/check"
	"hone/internal/git"
	"hone/sandbox"
	"hone/tool"
	"hone/tool/allow"
	"hone/workspace"
	"hone/workspace/secret"
)

// Session is one run that is being put together: the workspace, locked, its
// models, and the walls of its commands. The package harness implements it.
type Session interface {
	// Root is the workspace's folder, absolute.
	Root() string
	// Repo is the repository whose top the workspace is; nil if there is none.
	Repo() *git.Repo
	// IO returns what checks run with, and where output goes.
	IO() IO
	// Guard finds what is withheld from models, keys of providers included.
	Guard() *secret.Guard
	// Replayed reports whether a recorded run is replayed: then no command runs
	// and no model is asked.
	Replayed() bool

	// NewRun returns the run, whose changes are reviewed by the rules. It is
	// called once.
	NewRun(rules workspace.Rules) *hone.Run
	// Role returns a role with the settings' model and the tools of Toolset{}.
	// It is called after NewRun, as are the methods below.
	Role(name, system string) hone.Role
	// SetModel gives a role its model. A command-line agent works behind the
	// walls, which may be nil for any other model.
	SetModel(role *hone.Role, m *Model, w Walls) error
	// Tools returns what a role can call.
	Tools(t Toolset) ([]tool.Tool, error)
	// Walls plans walls. They are built when a round begins or a command needs
	// them, and taken down with the session.
	Walls(p WallPlan) Walls
	// Command returns a check that runs a command line in the workspace, behind
	// the session's own walls, and passes if it exits 0.
	Command(line string) check.Func
	// Check returns the settings' check in a folder, which is the workspace or
	// a copy of it, behind walls; nil if the settings have none.
	Check(dir string, w Walls) check.Func
	// SetCheck gives the run its check, and the proof of it if the settings want
	// one. makeCheck returns the check for a folder, which is the workspace or a
	// copy, and the walls around it. Nil walls are the session's own, which
	// are also those of Role, Command and a Toolset without Walls.
	SetCheck(w Walls, makeCheck func(dir string, w Walls) check.Func)
}

// IO is what a program's own checks run with, and where output goes.
type IO struct {
	// Environ is the user's environment, keys included. It is for programs of
	// the user's own, not for what a model asks for or wrote.
	Environ []string
	// CheckOutput shows a check's output as it comes.
	CheckOutput io.Writer
	// Say prints what a model wants its user to know.
	Say func(text string)
}

// Walls run commands. They cannot be crossed as far as [Walls.Grade] says.
type Walls interface {
	sandbox.Runner
	// Start is Run for a command that is held open.
	Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error)
	// With is a runner behind the same walls, whose commands also have the
	// user's variables of these names, be they keys.
	With(variables []string) sandbox.Runner
	// Grade says what stands; the zero value before the walls do.
	Grade() sandbox.Grade
}

// WallPlan says what commands behind walls have beside what the settings give
// them. The zero value adds nothing: commands may write the workspace, and
// where the settings want no wall they run with the user's rights.
type WallPlan struct {
	// Root is the folder that commands may write; empty is the workspace.
	Root string
	// Bounded keeps protected files as they are and bounds commands also where
	// the settings want no wall.
	Bounded bool
	// OwnHome gives commands an empty home also where the settings want no wall
	// and Bounded is set; false gives them the user's environment, but for
	// providers' keys.
	OwnHome bool
	// ReadOnly lets the tree be read and not written.
	ReadOnly bool
	// Hides takes for the wall "auto" only walls that hide the rest.
	Hides bool
	// After are walls that stand before these; these are of the same kind. Nil
	// chooses by the settings.
	After Walls
	// Later builds the walls when their first command runs; false builds them
	// when a round begins.
	Later bool

	Net         *bool    // allow the network; nil allows what the settings do
	Protect     []string // paths of the tree that commands may not change
	Write, Read []string // absolute
	Hide        []string // absolute
	Env         []string // names of variables that are passed on
	Vars        []string // KEY=VALUE

	// Door is a way out for one address; it is told whether commands have a
	// network of their own. Nil: there is none.
	Door func(ownNet bool) sandbox.Door
	// Prepare makes what the walls need to find. Nil makes nothing.
	Prepare func(ctx context.Context) error
	// Stood is called once, when the walls stand, with the address of Door
	// behind them. It returns variables, KEY=VALUE, that commands have as well.
	// Nil adds none.
	Stood func(g sandbox.Grade, door string) (vars []string, err error)
}

// Toolset says which tools a role has. The zero value is read, glob, grep, write,
// edit and bash for the whole tree, behind walls of WallPlan{Bounded: true}.
type Toolset struct {
	// Folder is what the role sees as its whole tree; empty is the workspace.
	Folder string
	// Closed is a folder at the top of that tree that the role cannot look into,
	// and Why what it is told; empty: there is none.
	Closed, Why string
	// Walls are those of bash; nil are the session's own.
	Walls Walls
	// Programs are those that bash may run, as in [allow.Lines]: nil means that
	// only the walls bound what it runs.
	Programs []string
	// ReadOnly leaves out write and edit, and refuses redirects in bash.
	ReadOnly bool
}

// Lines are the command lines that the bench's bash takes, in a folder.
func (b Toolset) Lines(dir string) allow.Lines {
	return allow.Lines{Programs: b.Programs, Dir: dir, ReadOnly: b.ReadOnly}
}
