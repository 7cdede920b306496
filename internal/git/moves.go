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

// Move is one step of HEAD, as the reflog has it: a commit, a merge, an amended
// or rebased commit, a reset, a checkout.
type Move struct {
	// ID is the commit that HEAD came to. It need not be there any more; all
	// zeros mean that HEAD came to name none.
	ID string
	// Action is what was done, such as "commit", "commit (amend)", "reset" or
	// "merge x"; empty where the reflog does not say.
	Action string
	// Subject is what it was done with, such as a commit's first line. Both are
	// raw: they may hold control characters and need not be UTF-8. What a move
	// says of itself is cut after 1000 bytes.
	Subject string
	// When is what the clock of whoever moved HEAD said, in whole seconds.
	When time.Time
}

// MaxMoves is how many moves are returned at most. Who gets as many may lack
// some.
const MaxMoves = 10_000

// Moves are the steps of this work tree's HEAD between two times, both seconds
// included, oldest first. A zero since is the beginning, a zero until the end.
// Those that stand between two of them are among them whatever their own time
// is: a rebase may give a step the time of the commit's author. An empty answer
// means that there was none, or that there is no reflog: git keeps none where
// core.logAllRefUpdates is off, and whoever can write the git directory can
// empty it.
func (r *Repo) Moves(ctx context.Context, since, until time.Time) ([]Move, error) {
	file, err := r.gitPath(ctx, "logs/HEAD")
	if err != nil {
		return nil, err
	}
	i := interval{since: since.Unix(), until: until.Unix(), open: until.IsZero()}
	err = i.readFile(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		err = r.movesElsewhere(ctx, &i)
	}
	if err != nil {
		return nil, fmt.Errorf("read the reflog of %s: %w", r.root, err)
	}
	return i.moves[:i.last], nil
}

// gitPath is where a file of the git directory is: a linked work tree and a
// submodule have theirs elsewhere.
func (r *Repo) gitPath(ctx context.Context, name string) (string, error) {
	path, err := r.line(ctx, call{args: []string{"rev-parse", "--git-path", name}})
	if err != nil || filepath.IsAbs(path) {
		return path, err
	}
	return filepath.Join(r.root, filepath.FromSlash(path)), nil
}

// interval gathers the moves between two times, in seconds since 1970.
type interval struct {
	since, until int64
	open         bool // without an end
	moves        []Move
	last         int // how many there are up to the last that lies between by its own time
}

// take adds the next move, unless it comes before the first that counts. It
// reports whether there is room for more.
func (i *interval) take(m Move) bool {
	when := m.When.Unix()
	inside := when >= i.since && (i.open || when <= i.until)
	if !inside && len(i.moves) == 0 {
		return true
	}
	i.moves = append(i.moves, m)
	if inside {
		i.last = len(i.moves)
	}
	return len(i.moves) < MaxMoves
}

// readFile takes in a reflog that is a file. One of any size is read in little
// memory, from its beginning.
func (i *interval) readFile(ctx context.Context, file string) error {
	// A pipe in its place would hold hone up for ever.
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
		line, err := beginningOfLine(in)
		if m, ok := parseMove(line); ok {
			more = i.take(m)
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

// beginningOfLine is the next line without its end, or as much of it as fits
// in the reader's buffer.
func beginningOfLine(in *bufio.Reader) (string, error) {
	part, err := in.ReadSlice('\n')
	line := strings.TrimSuffix(string(part), "\n")
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = in.ReadSlice('\n')
	}
	return line, err
}

// parseMove reads "OLD NEW NAME <ADDRESS> SECONDS ZONE", a tab and what was
// done. The tab is not there where nothing is said.
func parseMove(line string) (Move, bool) {
	head, message, _ := strings.Cut(line, "\t")
	fields := strings.Fields(head[strings.LastIndexByte(head, '>')+1:])
	ids := strings.SplitN(head, " ", 3)
	if len(fields) != 2 || len(ids) != 3 || !isID(ids[0]) || !isID(ids[1]) {
		return Move{}, false
	}
	return newMove(ids[1], fields[0], message)
}

func newMove(id, seconds, message string) (Move, bool) {
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Move{}, false
	}
	const most = 1000
	message = message[:min(len(message), most)]
	action, subject, ok := strings.Cut(message, ": ")
	if !ok {
		action, subject = "", message
	}
	return Move{ID: id, Action: action, Subject: subject, When: time.Unix(at, 0)}, true
}

// isID reports whether a text is an object's name, by either hash.
func isID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// movesElsewhere takes in a reflog that no file holds, which a repository with
// reference tables has. Of others there is none.
func (r *Repo) movesElsewhere(ctx context.Context, i *interval) error {
	tables, err := r.gitPath(ctx, "reftable/tables.list")
	if err != nil {
		return err
	}
	if _, err := os.Lstat(tables); err != nil {
		return nil
	}
	return r.walkReflog(ctx, i)
}

// walkReflog has git read the reflog. It leaves out steps to commits that are
// not there any more, and has nothing to say while HEAD names no commit.
func (r *Repo) walkReflog(ctx context.Context, i *interval) error {
	head, err := r.line(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", "HEAD"}, none: 1})
	if err != nil || head == "" {
		return err
	}
	out, err := r.line(ctx, call{args: []string{
		"log", "--walk-reflogs", "--no-show-signature", "--no-patch", "--no-ext-diff", "--no-textconv", "--no-notes",
		"--no-mailmap", "--no-decorate", "--no-color", "--date=raw", "--max-count=" + strconv.Itoa(MaxMoves),
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
		if m, ok := newMove(parts[0], seconds, parts[2]); ok {
			i.take(m)
		}
	}
	return nil
}
