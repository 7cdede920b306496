// Package sandbox runs commands: behind walls where a model asked for them,
// and bounded in time, output and processes in any case. It holds the words for
// that and knows no particular wall.
//
// What to call: a [Runner] runs one [Command] to its end. [None] is the one
// without walls, for programs that are the user's own: checkers, builds and
// hooks. The package wall has the one with walls; it is built by a [Policy],
// and its [Grade] says what the walls reached on this machine. The package
// workshop makes a policy for the toolchains of this machine. A [Running]
// command, such as a server, is held open, and connected to. A [Door] lets
// commands behind walls reach one place outside of them ([Forward]), or behind
// others ([ForwardBy]).
//
// What is guaranteed: when Run returns, the command and all that it started have
// ended, as far as the system lets them be found; see [None]. A command that
// fails or is ended by a limit is a [Result], an error says that it did not
// start. A missing wall is a [*WallError], never a weaker wall.
//
// What is not: nobody guards what becomes of the files that a command wrote.
// They may have been written to attack whoever reads them. What each wall leaves
// open is in the comments on [Hidden] and the others, and, tried, in the table
// of the package prove.
//
// Other packages below this one need what is exported here beside that, to look
// at a policy ([Policy.Entries]) or to run a command in another process
// ([Command.Exec], [Hold]).
package sandbox

import (
	"context"
	"io"
	"time"

	"hone/sandbox/internal/process"
)

// Runner runs a command to its end. A command that ran and failed, was ended
// by a limit or by the context is a Result, not an error; the error says that
// it could not be started.
type Runner interface {
	Run(ctx context.Context, c Command) (Result, error)
}

// Command is what to run. It has no terminal.
type Command struct {
	// Argv is the program and its arguments. A program without a slash is
	// looked up in PATH; it is never given to a shell.
	Argv []string
	// Dir is the working directory; empty is not allowed.
	Dir string
	// Env is the whole environment, as KEY=VALUE; nil means an empty one. On
	// Linux HONE_COMMAND_ID is added to it, by which what the command leaves
	// behind is known.
	Env []string
	// Stdin is what the command reads; nil means nothing (an empty device). A
	// *os.File is handed over as it is: the command can do with it all that it
	// was opened for, behind walls too. What a wall must not let through must
	// not be given: there a folder is refused, and a regular file can be opened
	// anew, for writing as well, where the kernel has no Landlock.
	//
	// Anything else is copied through a pipe by a goroutine, until it ends or
	// fails, which both are the end of the input for the command, or until the
	// command ends. A command that reads none of it, or not all, is no error;
	// whatever was read by then is lost.
	// Contract: a Read that blocks does not hold up Run for more than half a
	// second after the command; it may return later, and none follows it.
	Stdin io.Reader
	// Timeout ends the command and all that it started; 0 means none but the
	// context's.
	Timeout time.Duration
	// MaxOutput is how many bytes of each of the two streams are kept; 0
	// means 64 MiB. What comes after is read, thrown away and counted.
	MaxOutput int64
	// Live, if not nil, is given both streams as they come, interleaved, from
	// one goroutine at a time. Its errors are ignored. It must not block for
	// ever: the command waits for it, and Run with it.
	Live io.Writer
	// LiveOut and LiveErr are Live for one of the streams alone; all may be
	// given.
	LiveOut, LiveErr io.Writer
}

// DefaultMaxOutput is what a Command.MaxOutput of 0 means.
const DefaultMaxOutput = process.DefaultMaxOutput

// Result is how a command ended.
type Result struct {
	Exit     int           // its exit status; -1 where a signal or a limit ended it
	Signal   string        // the signal that ended it, such as "killed"; empty otherwise
	TimedOut bool          // Command.Timeout passed
	Stdout   []byte        // at most MaxOutput bytes
	Stderr   []byte        // at most MaxOutput bytes
	Lost     int64         // bytes of both streams past MaxOutput
	Duration time.Duration // by the monotonic clock

	// OverLimit names the limit of the policy that ended it: memory or
	// processes; empty otherwise.
	OverLimit string
	// Restored are the protected paths that the command changed, and that are
	// now as they were, unless Lost says otherwise.
	Restored []Restored
}
