package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ReflogEntry is one step of HEAD: a commit, a merge, an amended or
// rebased commit, a reset, a checkout.
type ReflogEntry struct {
	ID string // the commit that HEAD moved to
	// Action is the operation, such as "commit", "commit (amend)", "reset" or
	// "merge x"; empty if the reflog does not say.
	Action string
	// Subject describes the operation, for example with a commit's first line.
	// Both are raw: they may contain control characters and may not be UTF-8.
	// Together they are truncated to 1000 bytes.
	Subject string
	// When is the time of the step in whole seconds, by the clock of the
	// computer that made it.
	When time.Time
}

// MaxReflog is the maximum number of entries returned. A result of this length
// may be incomplete.
const MaxReflog = 10_000

// Reflog returns the steps of this work tree's HEAD between two times,
// inclusive, oldest first. A zero since means from the beginning, a zero until
// means to the end. Steps between two returned ones are included whatever their
// own time: a rebase may use the time of a commit's author. Steps to commits that
// no longer exist are left out. The result is empty
// if there were none, if HEAD names no commit, or if there is no reflog: git keeps none if
// core.logAllRefUpdates is off, and any process that can write to the git
// directory can empty it.
func (r *Repo) Reflog(ctx context.Context, since, until time.Time) ([]ReflogEntry, error) {
	file, err := r.gitPath(ctx, "logs/HEAD")
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() { // git would read it for ever
		return nil, fmt.Errorf("read the reflog of %s: %s is not a regular file", r.root, file)
	}
	head, err := r.runLine(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", "HEAD"}, emptyExit: 1})
	if err != nil || head == "" {
		return nil, err
	}
	out, err := r.runLine(ctx, call{args: []string{
		"log", "--walk-reflogs", "--no-show-signature", "--no-patch", "--no-ext-diff", "--no-textconv", "--no-notes",
		"--no-mailmap", "--no-decorate", "--no-color", "--date=raw", "--max-count=" + strconv.Itoa(MaxReflog),
		"--format=tformat:%H%x00%gd%x00%gs", "HEAD", "--",
	}})
	if err != nil {
		return nil, err
	}
	var entries []ReflogEntry
	last := 0 // number of entries up to the last one whose own time is between the two
	for _, line := range slices.Backward(strings.Split(out, "\n")) {
		parts := strings.SplitN(line, "\x00", 3)
		if len(parts) != 3 {
			continue
		}
		seconds, _, _ := strings.Cut(strings.TrimPrefix(parts[1], "HEAD@{"), " ")
		at, err := strconv.ParseInt(seconds, 10, 64)
		inside := at >= since.Unix() && (until.IsZero() || at <= until.Unix())
		if err != nil || !inside && len(entries) == 0 {
			continue
		}
		const most = 1000
		action, subject, ok := strings.Cut(parts[2][:min(len(parts[2]), most)], ": ")
		if !ok {
			action, subject = "", action
		}
		entries = append(entries, ReflogEntry{ID: parts[0], Action: action, Subject: subject, When: time.Unix(at, 0)})
		if inside {
			last = len(entries)
		}
	}
	return entries[:last], nil
}

// Linked work trees and submodules keep it elsewhere.
func (r *Repo) gitPath(ctx context.Context, name string) (string, error) {
	path, err := r.runLine(ctx, call{args: []string{"rev-parse", "--git-path", name}})
	if err != nil || filepath.IsAbs(path) {
		return path, err
	}
	return filepath.Join(r.root, filepath.FromSlash(path)), nil
}
