package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// helperName is the program's name when it is started to make attempts.
const helperName = "hone-table"

// Helper does the work of a helper and exits if this process was started as one;
// otherwise it returns at once. Every program that proves walls must call it in
// main, right after Helper of the package wall, with all attempts that it makes.
func Helper(attempts func() []Attempt) {
	if len(os.Args) < 3 || filepath.Base(os.Args[0]) != helperName {
		return
	}
	syscall.Exit(status(help(attempts(), os.Args[1], os.Args[2:]))) // at once: under the race detector os.Exit waits a second
}

func help(all []Attempt, what string, args []string) error {
	switch {
	case what == "try":
		return tryAll(os.Stdout, args[0], all, args[1:])
	case what == "child":
		a, err := find(all, args[0])
		if err != nil {
			return err
		}
		return a.Child(args[1:])
	}
	return fmt.Errorf("there is no helper %q", what)
}

func find(all []Attempt, name string) (Attempt, error) {
	i := slices.IndexFunc(all, func(a Attempt) bool { return a.Name == name })
	if i < 0 {
		return Attempt{}, fmt.Errorf("there is no attempt %s", name)
	}
	return all[i], nil
}

// status returns an exit status that contains the error's number.
func status(err error) int {
	var errno unix.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno) && errno < 126:
		return int(errno)
	}
	fmt.Fprintln(os.Stderr, err)
	return 126
}

// note is a helper's report: an attempt begins, or its result.
type note struct {
	Begin string `json:"begin,omitempty"`
	End   string `json:"end,omitempty"`
	Got   string `json:"got,omitempty"`
	Text  string `json:"text,omitempty"`
}

// tryAll makes attempts one after the other. The walls may end the process at any
// of them.
func tryAll(out io.Writer, scene string, all []Attempt, names []string) error {
	text, err := os.ReadFile(scene)
	if err != nil {
		return err
	}
	var s Scene
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	tell := json.NewEncoder(out)
	for _, name := range names {
		a, err := find(all, name)
		if err != nil {
			return err
		}
		_ = tell.Encode(note{Begin: name})
		if why, lacks := s.Lacking[name]; lacks {
			err = Unknown(why)
		} else {
			err = a.Try(s.of(name))
		}
		got, text := word(err)
		_ = tell.Encode(note{End: name, Got: got, Text: text})
	}
	return nil
}
