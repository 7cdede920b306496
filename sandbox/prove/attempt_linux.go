package prove

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Attempt is one way to cross walls. The table describes it.
type Attempt struct {
	// Name is its row in the table.
	Name string
	// Try tries to cross the walls. It returns nil if it got through, and
	// otherwise the error that stopped it. An error without an error number of
	// the operating system counts as "held".
	// Contract: it runs behind the walls, in a process that makes other attempts
	// after it, and leaves that process unchanged.
	Try func(Scene) error
	// Short means that it is one of the few attempts before a run.
	Short bool
	// Alone means that it has a process of its own, because it may end or block
	// the process.
	Alone bool
	// Outside means that only the changes found outside count, whatever Try
	// returned.
	Outside bool
	// Set is what it needs in directories of its own.
	Set set
}

// set is what an attempt needs in directories of its own.
type set string

const (
	setNone    set = ""        // no directories
	setFiles   set = "files"   // files outside, and a writable directory
	setGit     set = "git"     // read-only .git/config and .git/hooks in a writable directory
	setMissing set = "missing" // a read-only .config/hone.toml that does not exist
	setSecret  set = "secret"  // a hidden file with the secret, or a hidden directory around it
	setCache   set = "cache"   // an overlay of a directory outside, with a writable file
	// setEndpoint is a hidden socket or FIFO, with another process at its other end,
	// in a writable directory.
	setEndpoint set = "endpoint"
)

// errUnknown means that an attempt cannot be made here.
type errUnknown string

func (e errUnknown) Error() string { return string(e) }

// errHeld means that an attempt failed without an error of the system.
type errHeld string

func (e errHeld) Error() string { return string(e) }

// errNotTried means that an attempt would harm the machine if it got through.
var errNotTried = errors.New("it would harm the machine")

// word returns the word and the text of an attempt's result.
func word(err error) (got, text string) {
	var unknown errUnknown
	var errno unix.Errno
	switch {
	case err == nil:
		return wordOpen, ""
	case errors.As(err, &unknown):
		return wordUnknown, unknown.Error()
	case errors.Is(err, errNotTried):
		return wordNotTried, err.Error()
	case errors.As(err, &errno) && unix.ErrnoName(errno) != "":
		return unix.ErrnoName(errno), err.Error()
	}
	return wordHeld, err.Error()
}
