package harness

import (
	"context"
	"fmt"
	"os"
	"slices"

	"hone/harness/runs"
	"hone/sandbox"
)

// Landlock can only grant, and grants the whole tree.
func (w *Walls) exposes(home string) bool {
	return w.Grade().Wall == sandbox.Landlock &&
		slices.ContainsFunc(w.policy.Write, func(path string) bool { return sandbox.Within(path, home) })
}

// homeNote tells the user that commands can write the runs recorded in the tree; empty
// if they cannot, or if there are none.
func (w *Walls) homeNote() string {
	home := runs.HomePath(w.Root)
	if _, err := os.Stat(home); err != nil || !w.exposes(home) {
		return ""
	}
	return exposedNote(home)
}

func exposedNote(home string) string {
	return "commands behind landlock can change and delete the runs in " + home
}

// It returns a note for the user; empty if nothing changed.
func (s *Session) leaveTree(ctx context.Context, w *Walls) string {
	from := s.Home.Dir()
	if s.homeStays || !w.exposes(from) {
		return ""
	}
	if err := s.LeaveTree(ctx, s.journal); err != nil {
		s.homeStays = true
		return fmt.Sprintf("%s, because hone cannot record them outside the tree: %v", exposedNote(from), err)
	}
	return fmt.Sprintf("runs are now recorded in %s, because commands behind landlock could change and delete them in %s", s.Home.Dir(), from)
}
