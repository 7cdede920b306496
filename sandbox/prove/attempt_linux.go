package prove

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Attempt is one way to cross walls. What it tries, in words, stands in the
// table.
type Attempt struct {
	// Name is its row in the table.
	Name string
	// Try crosses the walls: nil says that it got through, else the error says
	// what stopped it. An error without a number of the operating system's is
	// shown as "held".
	// Contract: it runs behind the walls, in a process that tries others after
	// it, and leaves that process as it was.
	Try func(Scene) error
	// Short says that it is among the few that are tried before each run.
	Short bool
	// Alone says that it gets a process of its own, as it may end or block it.
	Alone bool
	// Outside says that only what is seen outside afterwards counts, whatever
	// Try returned.
	Outside bool
	// Set is what it needs in folders of its own.
	Set set
}

// set is what an attempt needs of the scene in folders of its own.
type set string

// What an attempt may need.
const (
	setNone    set = ""        // nothing, not even the folders
	setFiles   set = "files"   // files outside, and a folder that may be written
	setGit     set = "git"     // .git/config and .git/hooks may be read only, in a folder that may be written
	setMissing set = "missing" // .config/hone.toml may be read only, and is not there
	setSecret  set = "secret"  // a file with the secret is hidden, or the folder that it lies in
)

// errUnknown says that an attempt could not be made here.
type errUnknown string

func (e errUnknown) Error() string { return string(e) }

// errHeld says that an attempt came to nothing without an error of the system.
type errHeld string

func (e errHeld) Error() string { return string(e) }

// errNotTried says that an attempt would harm the machine if it got through.
var errNotTried = errors.New("it would harm the machine")

// word is a result's word, and its text.
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
