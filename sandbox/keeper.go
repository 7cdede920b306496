package sandbox

import "hone/sandbox/internal/process"

// Keeper ends what the commands of this process left running when the process ends
// without ending them itself, for example because it was killed. Linux kills all that
// they started, even if it left their session and lost its parents; other Unix systems
// their process groups. On Windows a job object does so, without a keeper.
//
// It is another process, in which this program is started again by the first command.
// [Helper] must be the first call of the program's main; without it, and if the keeper
// itself is killed, commands may outlive this process. It does not end processes of
// other users, or what a command asked another program to start, such as a container.
type Keeper = process.Keeper

// NewKeeper returns a keeper of commands that run for a directory. Close ends it. On
// Linux the next one's EndEarlier ends what they left running even if the keeper was
// killed, too: it is called for the same directory, by the same user, after the other
// process has ended.
func NewKeeper(dir string) *Keeper { return process.NewKeeper(dir) }

// Helper does the work of a [Keeper] and exits if this process was started as one;
// otherwise it returns at once. The Helper of the package wall calls it.
func Helper() { process.Helper() }
