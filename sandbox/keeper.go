package sandbox

import "hone/sandbox/internal/process"

// Keeper stops the commands of this process if the process ends before it has stopped
// them, for example because it was killed. On Linux a keeper kills everything that they
// started, even processes that left their session and lost their parents; on other Unix
// systems it kills their process groups. On Windows a job object does so, without a keeper.
//
// A keeper is a second process of this program, which the first command starts; if it is
// killed, another one takes its place within milliseconds. [Helper] must be the first call
// of the program's main. Without it, or if both processes are killed at the same moment,
// commands may outlive this process. A keeper does not stop processes of other users, or
// what a command asked another program to start, such as a container.
type Keeper = process.Keeper

// NewKeeper returns a keeper of commands that run for a directory. Close ends it. If both
// the process and its keeper were killed, EndEarlier of the next keeper stops what the
// commands left running (on Linux only). Call it for the same directory, as the same user,
// after the earlier process has ended.
func NewKeeper(dir string) *Keeper { return process.NewKeeper(dir) }

// Helper does the work of a [Keeper] and exits if this process was started as one;
// otherwise it returns at once. The Helper of the package wall calls it.
func Helper() { process.Helper() }
