package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	// ID is the commit that HEAD moved to. It may no longer exist. All zeros
	// mean that HEAD then named no commit.
	ID string
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
// own time: a rebase may use the time of a commit's author. The result is empty
// if there were none or if there is no reflog: git keeps none if
// core.logAllRefUpdates is off, and any process that can write to the git
// directory can empty it.
func (r *Repo) Reflog(ctx context.Context, since, until time.Time) ([]ReflogEntry, error) {
	file, err := r.gitPath(ctx, "logs/HEAD")
	if err != nil {
		return nil, err
	}
	i := interval{since: since.Unix(), until: until.Unix(), noEnd: until.IsZero()}
	err = i.readFile(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		err = r.readReftable(ctx, &i)
	}
	if err != nil {
		return nil, fmt.Errorf("read the reflog of %s: %w", r.root, err)
	}
	return i.entries[:i.last], nil
}

// Linked work trees and submodules keep it elsewhere.
func (r *Repo) gitPath(ctx context.Context, name string) (string, error) {
	path, err := r.runLine(ctx, call{args: []string{"rev-parse", "--git-path", name}})
	if err != nil || filepath.IsAbs(path) {
		return path, err
	}
	return filepath.Join(r.root, filepath.FromSlash(path)), nil
}

// interval collects the entries between two times, in seconds since 1970.
type interval struct {
	since, until int64
	noEnd        bool // until is ignored
	entries      []ReflogEntry
	last         int // number of entries up to the last one whose own time is in the interval
}

// Entries before the first one in the interval are skipped. It reports whether there is room for more.
func (i *interval) add(m ReflogEntry) bool {
	when := m.When.Unix()
	inside := when >= i.since && (i.noEnd || when <= i.until)
	if !inside && len(i.entries) == 0 {
		return true
	}
	i.entries = append(i.entries, m)
	if inside {
		i.last = len(i.entries)
	}
	return len(i.entries) < MaxReflog
}

// It needs little memory whatever the size of the file.
func (i *interval) readFile(ctx context.Context, file string) error {
	// A pipe in its place would block.
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 16<<10)
	for more := true; more && ctx.Err() == nil; {
		line, err := nextLine(in)
		if m, ok := parseReflogLine(line); ok {
			more = i.add(m)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// The line is truncated to the reader's buffer.
func nextLine(in *bufio.Reader) (string, error) {
	part, err := in.ReadSlice('\n')
	line := strings.TrimSuffix(string(part), "\n")
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = in.ReadSlice('\n')
	}
	return line, err
}

// A line is "OLD NEW NAME <ADDRESS> SECONDS ZONE", a tab and the operation. Without an operation there is no tab.
func parseReflogLine(line string) (ReflogEntry, bool) {
	head, message, _ := strings.Cut(line, "\t")
	fields := strings.Fields(head[strings.LastIndexByte(head, '>')+1:])
	ids := strings.SplitN(head, " ", 3)
	if len(fields) != 2 || len(ids) != 3 || !isID(ids[0]) || !isID(ids[1]) {
		return ReflogEntry{}, false
	}
	return newReflogEntry(ids[1], fields[0], message)
}

func newReflogEntry(id, seconds, message string) (ReflogEntry, bool) {
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return ReflogEntry{}, false
	}
	const most = 1000
	message = message[:min(len(message), most)]
	action, subject, ok := strings.Cut(message, ": ")
	if !ok {
		action, subject = "", message
	}
	return ReflogEntry{ID: id, Action: action, Subject: subject, When: time.Unix(at, 0)}, true
}

func isID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// A repository with reference tables has no reflog file.
func (r *Repo) readReftable(ctx context.Context, i *interval) error {
	tables, err := r.gitPath(ctx, "reftable/tables.list")
	if err != nil {
		return err
	}
	if _, err := os.Lstat(tables); err != nil {
		return nil
	}
	return r.walkReflog(ctx, i)
}

// Git leaves out steps to commits that no longer exist, and returns nothing while HEAD names no commit.
func (r *Repo) walkReflog(ctx context.Context, i *interval) error {
	head, err := r.runLine(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", "HEAD"}, emptyExit: 1})
	if err != nil || head == "" {
		return err
	}
	out, err := r.runLine(ctx, call{args: []string{
		"log", "--walk-reflogs", "--no-show-signature", "--no-patch", "--no-ext-diff", "--no-textconv", "--no-notes",
		"--no-mailmap", "--no-decorate", "--no-color", "--date=raw", "--max-count=" + strconv.Itoa(MaxReflog),
		"--format=tformat:%H%x00%gd%x00%gs", "HEAD", "--",
	}})
	if err != nil {
		return err
	}
	lines := strings.Split(out, "\n")
	slices.Reverse(lines)
	for _, line := range lines {
		parts := strings.SplitN(line, "\x00", 3)
		if len(parts) != 3 {
			continue
		}
		seconds, _, _ := strings.Cut(strings.TrimPrefix(parts[1], "HEAD@{"), " ")
		if m, ok := newReflogEntry(parts[0], seconds, parts[2]); ok {
			i.add(m)
		}
	}
	return nil
}
