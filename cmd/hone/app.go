package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hone"
	"hone/harness"
	"hone/internal/render"
	"hone/journal"
)

// app is the program with the world that it runs in.
type app struct {
	in       *os.File
	out, err io.Writer
	env      func(string) string
	environ  []string
	terminal bool // a user sees the output and can answer questions
	colour   bool
	observer journal.Observer
	began    bool // the command line was understood, and a command is at work
	exit     int
}

// conceal keeps keys out of whatever is printed.
func (a *app) conceal(keys []string) {
	if clean := harness.Redactor(keys); clean != nil {
		a.out, a.err = redacted{a.out, clean}, redacted{a.err, clean}
	}
}

// redacted is a writer that keys do not get through. Callers write whole
// lines, so that no key is split.
type redacted struct {
	w     io.Writer
	clean func(string) string
}

func (r redacted) Write(b []byte) (int, error) {
	if _, err := io.WriteString(r.w, r.clean(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// hinter is an error of a lower room that knows what to do about it.
type hinter interface{ Hint() string }

// fail prints an error of a command and returns its exit status. An error that
// explains nothing came from the command line itself, or else from the disk and
// the like.
func (a *app) fail(c *cobra.Command, err error) int {
	f, ok := explained(err)
	if !ok {
		f = &failure{kind: hone.KindUsage, why: err.Error(), hint: helpFor(c)}
		if a.began {
			f.kind, f.hint = hone.KindFailed, "hone doctor"
		}
		if h := hinter(nil); errors.As(err, &h) {
			f.hint = h.Hint()
		}
	}
	a.say("error", f.Error())
	a.say("hint", f.hint)
	return exitStatus(f.kind)
}

// helpFor is what to type to learn how a command is used.
func helpFor(c *cobra.Command) string {
	_, sub, _ := strings.Cut(c.CommandPath(), " ")
	return strings.TrimSpace("hone help " + sub)
}

// say prints a text in the form of all errors and hints, one line each.
func (a *app) say(what, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(a.err, "hone: %s: %s\n", what, strings.TrimRight(render.Escape(text), "\n"))
}

// oneRun wants a run, and nothing else, after a command's name.
func oneRun(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return usage(fmt.Sprintf("%s needs one RUN: an id from hone runs, a unique prefix of an id, or last", c.Name()), helpFor(c))
}
