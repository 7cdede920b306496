package hone

import "fmt"

// Next is what the user can do after a run has ended. It holds no command line:
// only the program that the user typed knows how its commands are written.
type Next struct {
	// First is what the user has to do before: a clause in the imperative, such
	// as "free some disk space". Empty means nothing.
	First string `json:"first,omitempty"`
	// Shell is a command line of the shell that has to run before. Empty means
	// none.
	Shell string `json:"shell,omitempty"`
	// Verb is what to do then. Empty means nothing in particular.
	Verb  Verb   `json:"verb,omitempty"`
	Flags []Flag `json:"flags,omitempty"` // of the verb, in order
	// Or is what the user can do instead: a clause like First. Empty means
	// nothing.
	Or string `json:"or,omitempty"`
}

// Verb is something that the user can have done.
type Verb string

// The verbs. All but the last two are about the run that ended.
const (
	Resume Verb = "resume"
	Show   Verb = "show"
	Undo   Verb = "undo"
	NewRun Verb = "new run"
	Doctor Verb = "doctor" // examine the machine
)

// Flag bounds or widens what a verb does.
type Flag struct {
	Name  string `json:"name"`            // "max-tokens"
	Value string `json:"value,omitempty"` // "200000"; empty where the name says all
}

// IsZero reports whether there is nothing to do.
func (n Next) IsZero() bool { return n.First == "" && n.Verb == "" && n.Or == "" }

// resumeWith is to resume the run with a limit raised.
func resumeWith(flag string, value any) Next {
	return Next{Verb: Resume, Flags: []Flag{{flag, fmt.Sprint(value)}}}
}

// resumeAfter is to resume the run when something else was done.
func resumeAfter(first string) Next { return Next{First: first, Verb: Resume} }

// cleaned is a next action without keys.
func (n Next) cleaned(clean func(string) string) Next {
	n.First, n.Shell, n.Or = clean(n.First), clean(n.Shell), clean(n.Or)
	flags := n.Flags
	n.Flags = nil
	for _, f := range flags {
		n.Flags = append(n.Flags, Flag{f.Name, clean(f.Value)})
	}
	return n
}
