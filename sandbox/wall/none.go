package wall

import (
	"context"
	"time"

	"hone/sandbox"
)

// None runs commands without walls: they may do whatever the user may do. It is
// for the user's own programs, and for users who chose it.
//
// When a command has ended, or its time is over, or the context is done, all that it
// started is stopped as well. On Linux a supervisor does so, as for walls, also if this
// process is killed: it finds daemons, and only processes of another user, such as one that
// sudo started, are not its own to stop. On Windows a job object contains the tree, except
// what the command starts in its first instant. Other systems stop only the process group.
// On Linux the first command makes this process a subreaper, and it remains one.
//
// The zero None is ready to use. [Helper] must be the first call of the program's main.
type None struct {
	// Grace is the time between SIGTERM and SIGKILL for a command that must
	// stop; 0 means two seconds.
	Grace time.Duration
	// Keeper ends commands when this process ends before them, where there are no
	// supervisors; nil means that they may outlive it there.
	Keeper *Keeper
	// As is whom commands run as, with the capabilities of this process.
	As sandbox.User
}

var _ sandbox.Runner = None{}

// Run runs the command to its end; see [sandbox.Runner]. Its error is a [*sandbox.StartError], or
// the context's if that was done before the start.
func (n None) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return n.run(ctx, c, func(<-chan struct{}, sandbox.Dialer) {})
}
