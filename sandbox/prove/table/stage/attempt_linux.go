// Package stage makes attempts to cross walls: it sets up a scene outside the walls,
// starts this program again behind them, where each [Attempt] tries one way out, and
// inspects the scene afterwards. It knows no attempt itself.
//
// Call [Helper] in main, and [Run].
package stage

import (
	"errors"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// Attempt is one way to cross walls. Name and Try are required.
type Attempt struct {
	Name string
	// About says what it tries.
	About string
	// Try tries to cross the walls. It returns nil if it got through, and
	// otherwise the error that stopped it. An error without an error number of
	// the operating system counts as "held".
	// Contract: it runs behind the walls, in a process that makes other attempts
	// after it, and leaves that process unchanged.
	Try func(Scene) error
	// Prepare makes outside what Try needs; what it returns is [Scene.Given] there.
	// With an [Unknown] error the attempt cannot be made on this machine.
	Prepare func(*Stage, Scene) (string, error)
	// Policy adds to the policy of the walls.
	Policy func(Scene, *sandbox.Policy)
	// Intact are paths in its own writable directory that must be the same afterwards,
	// as must everything of it outside.
	Intact []string
	// Child is what this program does if Try or Prepare starts it as [Scene.Again].
	Child func(args []string) error
	// Alone means that it has a process of its own, because it may end or block
	// the process, and that the limits apply to it.
	Alone bool
	// Env are more variables of that process.
	Env []string
	// Outside means that only the changes found outside count, whatever Try
	// returned.
	Outside bool
	// Open means that it must get through, because the policy allows it.
	Open bool
	// Landlock is the first ABI with which the landlock wall stops it: 0 if each does,
	// Never if none does.
	Landlock int
}

// Never is an ABI that Landlock will not reach.
const Never = 1 << 30

// Unknown means that an attempt cannot be made here.
type Unknown string

func (e Unknown) Error() string { return string(e) }

// Held means that an attempt failed without an error of the system.
type Held string

func (e Held) Error() string { return string(e) }

// ErrNotTried means that an attempt would harm the machine if it got through.
var ErrNotTried = errors.New("it would harm the machine")

// The words of a result, in addition to the names of error numbers.
const (
	WordOpen     = "open"      // it got through
	WordHeld     = "held"      // it failed without an error number
	WordNotTried = "not tried" // it would harm the machine, and counts as open
	WordUnknown  = "unknown"   // it could not be set up here
)

// word returns the word and the text of an attempt's result.
func word(err error) (got, text string) {
	var unknown Unknown
	var errno unix.Errno
	switch {
	case err == nil:
		return WordOpen, ""
	case errors.As(err, &unknown):
		return WordUnknown, unknown.Error()
	case errors.Is(err, ErrNotTried):
		return WordNotTried, err.Error()
	case errors.As(err, &errno) && unix.ErrnoName(errno) != "":
		return unix.ErrnoName(errno), err.Error()
	}
	return WordHeld, err.Error()
}

// OpenBehind reports whether the attempt gets through as documented behind walls of a
// grade. Without walls every one may.
func (a Attempt) OpenBehind(g sandbox.Grade) bool {
	return a.Open || g.Wall == sandbox.NoWall || g.Wall == sandbox.Landlock && g.Landlock < a.Landlock
}
