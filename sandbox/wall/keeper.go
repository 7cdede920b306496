package wall

import "hone/sandbox/internal/process"

// Keeper stops the commands of this process if the process ends before it has stopped
// them, for example because it was killed, on systems other than Linux. On Unix each command has a
// second process of this program, which kills its process group. Helper of the package
// wall must be the first call of the program's main; without it, or if both
// processes are killed at the same moment, commands may outlive this process. On Windows a
// job object does so.
//
// On Linux each command has a supervisor, and a keeper only marks commands: if a process and
// its supervisors were killed at once, EndEarlier of the next keeper stops what the commands
// left running.
type Keeper = process.Keeper

// NewKeeper returns a keeper of commands that run for a directory. Close ends it. Call
// EndEarlier for the same directory, as the same user, after the earlier process has ended.
func NewKeeper(dir string) *Keeper { return process.NewKeeper(dir) }
