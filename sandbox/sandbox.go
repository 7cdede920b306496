// Package sandbox runs commands and limits their time, output and processes.
// Commands that a model asks for run behind walls. The package defines the types
// that its subpackages share and contains no wall itself.
//
// A [Runner] runs one [Command] to its end. The package wall has those runners: None
// is for the user's own programs, such as checkers, builds and hooks, and walls are built from a
// [Policy]; their [Grade] describes what they hold back on this machine. The package workshop makes a policy for the toolchains of this
// machine. A [Running] command, such as a server, stays open and can be
// connected to. A [Door] lets commands behind walls reach one address outside
// or behind other walls ([ForwardBy]).
//
// When Run returns, the command and every process that it started have ended, as
// far as the system can find them; see None in the package wall. A command that fails or exceeds a
// limit is a [Result]; an error means that it did not start. A wall that cannot
// be built is a [*WallError], never a weaker wall.
//
// No wall guards what happens to the files that a command wrote: they may have
// been written to attack the programs that read them. The comments on [Hidden]
// and the other walls say what each leaves open, and the table of the package
// prove shows it, attempt by attempt.
//
// The other exported names are for the subpackages: they read a policy
// ([Policy.Entries]) or run a command in another process ([Command.Exec],
// [Start]).
package sandbox

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"
)

// Runner runs a command to its end. A command that ran and failed, or that a
// limit or the context stopped, is a Result and not an error. An error means
// that it could not be started.
type Runner interface {
	Run(ctx context.Context, c Command) (Result, error)
}

// Command is a command to run. It has no terminal.
type Command struct {
	// Argv is the program and its arguments. A program without a slash is
	// looked up in the PATH of Env. No shell is involved.
	Argv []string
	// Dir is the working directory; empty is not allowed.
	Dir string
	// Env is the complete environment, as KEY=VALUE; nil means an empty one. On
	// Linux HONE_COMMAND_ID is added to it, which identifies the processes that
	// the command leaves behind.
	Env []string
	// Stdin is what the command reads; nil means nothing (the null device). The
	// command receives an *os.File itself, and may do with it all that it was
	// opened for, also behind walls. Walls refuse a directory. Without Landlock
	// in the kernel a command can open a regular file again, also for writing.
	//
	// A goroutine copies any other reader through a pipe until the reader ends
	// or fails, which both end the command's input, or until the command ends.
	// It is not an error if the command does not read all of it; bytes that were
	// copied by then are lost.
	// Contract: a Read that blocks delays Run by at most half a second after the
	// command has ended. It may return later; no other Read follows it.
	Stdin io.Reader
	// Timeout stops the command and all that it started; 0 means that only the
	// context does.
	Timeout time.Duration
	// MaxOutput is how many bytes of each of the two streams are kept; 0
	// means 64 MiB. Further bytes are counted and discarded.
	MaxOutput int64
	// Live, if not nil, receives both streams as they arrive, interleaved, from
	// one goroutine at a time. Its errors are ignored. If it blocks, the command
	// and Run wait for it.
	Live io.Writer
	// LiveOut and LiveErr are the same for one of the streams. All three may be
	// set.
	LiveOut, LiveErr io.Writer
}

// Shell returns the arguments that run a line in the shell of this system.
func Shell(line string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", line}
	}
	return []string{"sh", "-c", line}
}

// Result describes how a command ended.
type Result struct {
	Exit      int           // its exit status; -1 if a signal or a limit stopped it
	Signal    string        // the signal that stopped it, such as "killed"; empty if none did
	TimedOut  bool          // Command.Timeout stopped it
	Stdout    []byte        // at most MaxOutput bytes
	Stderr    []byte        // at most MaxOutput bytes
	Discarded int64         // the bytes of both streams beyond MaxOutput, which were discarded
	Duration  time.Duration // by the monotonic clock

	// OverLimit is the limit of the policy that stopped it, memory or processes;
	// empty if none did.
	OverLimit string
	// Restored are the protected paths that the command changed and that were
	// restored afterwards, except those whose NotRestored is not empty.
	Restored []Restored
	// Repositories are those that commands have made since the last result. Not every
	// Runner sets it.
	Repositories []Repository
	// Hidden are files that look secret, which the walls hide and the command seems to
	// have needed; nil if there are none. Not every Runner sets it.
	Hidden []string
}

// HiddenNote explains Hidden to a model; empty if there are none.
func (r Result) HiddenNote() string {
	if len(r.Hidden) == 0 {
		return ""
	}
	const limit = 10
	names := strings.Join(r.Hidden[:min(len(r.Hidden), limit)], ", ")
	if n := len(r.Hidden) - limit; n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	return "commands cannot read " + names + ": the walls hide what looks secret, and only the user can allow it ([guard] send). Do not replace or remove such a file; if nothing else is wrong, say so in your answer."
}
