package leg

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"hone/fleet/job"
	"hone/fleet/store"
	"hone/group"
	"hone/history"
	"hone/internal/artifact"
	"hone/internal/child"
	"hone/journal/bundle"
)

// minKey is the minimum length of a key in bytes.
const minKey = 32

// ReadKey reads the key that workers share: the contents of a file, without surrounding white
// space. It is an error if other users can read the file.
func ReadKey(file string) ([]byte, error) {
	const make = "; to make one: (umask 077 && head -c 32 /dev/urandom | base64 > FILE), and copy it to all workers"
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("the workers' key: %w%s", err, make)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the workers' key: other users can read %s; to change that: chmod 600 %s", file, file)
	}
	key, err := artifact.Input(file)
	if key = bytes.TrimSpace(key); err == nil && len(key) < minKey {
		err = fmt.Errorf("%s has fewer than %d bytes%s", file, minKey, make)
	}
	if err != nil {
		return nil, fmt.Errorf("the workers' key: %w", err)
	}
	return key, nil
}

// Term is a try of a leg. Later ones take over from earlier ones.
type Term struct {
	Scheduled int64  `json:"scheduled"` // when the leg was scheduled, in nanoseconds since 1970
	Attempt   int32  `json:"attempt"`   // of the leg, from 1
	Worker    string `json:"worker"`    // a random id
}

func (t Term) before(other Term) bool {
	return cmp.Or(cmp.Compare(t.Scheduled, other.Scheduled), cmp.Compare(t.Attempt, other.Attempt)) < 0
}

// entry is one entry of the log of a job, in the store: a line with its MAC, which is its seal, a
// line with its JSON form, and a part of the run, if it has one.
type entry struct {
	Number int          `json:"number"` // 1 is the first
	After  string       `json:"after"`  // the seal of the entry before it
	Batch  string       `json:"batch"`
	Job    string       `json:"job"`
	Term   Term         `json:"term"` // of the worker that wrote it
	Hone   string       `json:"hone"` // the version that works on the run
	Commit string       `json:"commit,omitempty"`
	Run    string       `json:"run,omitempty"`  // empty before the first part
	Part   string       `json:"part,omitempty"` // the SHA-256 of the part, a file of hone export
	Events int          `json:"events"`         // in the last part
	Spent  group.Amount `json:"spent,omitzero"` // by then, with calls under way in full
	// Outcome is that of the leg, once it has ended; then another try has nothing to do.
	Outcome *job.Outcome `json:"outcome,omitempty"`
}

// maxEntry is the maximum size of the lines of an entry in bytes, and maxPart that of its part.
const maxEntry, maxPart = 4 << 20, 4 << 30

const help = "restore it from a backup of the store, or submit the job again to start over"

func (g *leg) seal(text []byte) string {
	m := hmac.New(sha256.New, g.Key)
	m.Write([]byte("hone-fleet entry\n"))
	m.Write(text)
	return hex.EncodeToString(m.Sum(nil))
}

func (g *leg) name(what string) string { return g.Batch + "/" + g.Job.Name + "/" + what }

func (g *leg) entryName(n int) string { return g.name(fmt.Sprintf("log/%06d", n)) }

// It writes the part to a file; a nil file leaves it out.
func (g *leg) read(ctx context.Context, n int, part io.Writer) (e entry, seal string, err error) {
	name := g.entryName(n)
	in, err := g.Store.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		err = fatal("the store has lost %s, and the run cannot continue without it: %s", name, help)
	}
	if err != nil {
		return e, "", err
	}
	defer in.Close()
	lines := bufio.NewReaderSize(in, maxEntry)
	line, err := lines.ReadSlice('\n')
	seal = string(bytes.TrimSuffix(line, []byte("\n")))
	var text []byte
	if err == nil {
		text, err = lines.ReadSlice('\n')
	}
	if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
		return e, "", fmt.Errorf("read %s from the store: %w", name, err)
	}
	if text = bytes.TrimSuffix(text, []byte("\n")); !hmac.Equal([]byte(seal), []byte(g.seal(text))) {
		// Another worker may have the right key, so that this is not the end of the job.
		return e, "", fmt.Errorf("%s in the store was not signed with this worker's key: give all workers the same key; if they have it, another program wrote to the store", name)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, "", err
	}
	if e.Batch != g.Batch || e.Job != g.Job.Name || e.Number != n {
		return e, "", fatal("%s in the store belongs to job %s of batch %s: another program wrote to the store", name, e.Job, e.Batch)
	}
	if part != nil && e.Part != "" {
		sum := sha256.New()
		if _, err := io.Copy(io.MultiWriter(part, sum), io.LimitReader(lines, maxPart)); err != nil {
			return e, "", fmt.Errorf("read %s from the store: %w", name, err)
		}
		if hex.EncodeToString(sum.Sum(nil)) != e.Part {
			return e, "", fatal("%s in the store is not what the worker wrote: %s", name, help)
		}
	}
	return e, seal, nil
}

// last is the state of the job; an empty log has a zero entry.
func (g *leg) last(ctx context.Context) (e entry, seal string, err error) {
	names, err := g.Store.List(ctx, g.name("log/"))
	if err != nil || len(names) == 0 {
		return entry{Batch: g.Batch, Job: g.Job.Name}, "", err
	}
	var n int
	if _, err := fmt.Sscanf(names[len(names)-1], g.name("log/")+"%d", &n); err != nil {
		return e, "", fatal("the store has %s, which is no entry: another program wrote to the store", names[len(names)-1])
	}
	return g.read(ctx, n, nil)
}

// From then on, other workers cannot write the entries of this one. It does so even if the leg is interrupted: only the log
// says what the run has spent.
func (g *leg) takeOver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishing)
	defer cancel()
	g.lock.Lock()
	if g.version == "" {
		r, err := child.Command{Program: g.Hone, Dir: ".", Args: []string{"version"}, Env: g.environ()}.Output(ctx)
		if errors.Is(err, fs.ErrNotExist) {
			err = fatal("the worker has no hone: %w", err)
		} else if err != nil {
			err = fmt.Errorf("ask hone for its version: %w", err)
		}
		if err != nil {
			g.lock.Unlock()
			return err
		}
		g.version, _, _ = strings.Cut(strings.TrimSpace(r.Printed), ",") // without the system, which may differ
	}
	version := g.version
	g.lock.Unlock()
	before, seal, err := g.last(ctx)
	switch {
	case err != nil:
		return err
	case g.term.before(before.Term):
		return errSuperseded
	case before.Term.Scheduled != g.term.Scheduled || g.term.Scheduled == 0:
		before.Outcome = nil // of another leg
	}
	if before.Run != "" && before.Hone != version {
		return fatal("run %s was started by %s, but this worker has %s: keep the old version on the workers until the batch has ended", before.Run, before.Hone, version)
	}
	g.at, g.sealed = before, seal
	before.Term, before.Hone = g.term, version
	return g.put(ctx, before, nil)
}

// put writes the next entry. If another worker has taken over, the error is errSuperseded.
func (g *leg) put(ctx context.Context, e entry, part io.ReadSeeker) error {
	e.Number, e.After, e.Part = g.at.Number+1, g.sealed, ""
	if part != nil {
		sum := sha256.New()
		if _, err := io.Copy(sum, part); err != nil {
			return err
		}
		e.Part = hex.EncodeToString(sum.Sum(nil))
		if _, err := part.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	seal := g.seal(text)
	file, err := os.Create(filepath.Join(g.dir, "entry"))
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err = fmt.Fprintf(file, "%s\n%s\n", seal, text); err == nil && part != nil {
		_, err = io.Copy(file, part)
	}
	if err == nil {
		err = g.Store.Create(ctx, g.entryName(e.Number), file)
	}
	if errors.Is(err, store.ErrExists) { // perhaps of an earlier try of the request
		var there string
		if _, there, err = g.read(ctx, e.Number, nil); err == nil && there != seal {
			err = errSuperseded
		}
	}
	if err == nil {
		g.at, g.sealed = e, seal
	}
	return err
}

func (g *leg) ship(ctx context.Context, run string) error {
	file := filepath.Join(g.dir, "part.hone")
	defer os.Remove(file)
	err := g.hone(ctx, "export", run, "-o", file, "--force", "--since", strconv.Itoa(g.at.Events), "--without", g.at.Commit)
	if err != nil {
		return err
	}
	part, err := os.Open(file)
	if err != nil {
		return err
	}
	defer part.Close()
	b, err := bundle.NewReader(part, maxPart)
	if err != nil {
		return err
	}
	defer b.Close()
	if b.Header.Events == g.at.Events {
		return nil
	}
	e := g.at
	e.Run, e.Events, e.Spent = run, b.Header.Events, group.Outcome{Past: history.Read(b.Events)}.Used()
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return g.put(ctx, e, part)
}

// The worker's patience limits the retries.
func (g *leg) keepShipping(ctx context.Context, run string) error {
	patience := g.Patience
	if patience == 0 {
		patience = time.Minute
	}
	for wait, began := 100*time.Millisecond, time.Now(); ; wait = min(2*wait, 5*time.Second) {
		err := g.ship(ctx, run)
		if err == nil || errors.Is(err, errSuperseded) || time.Since(began)+wait > patience {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// It trusts the run: the seals of the entries, each of which has that of the one before it, show that workers wrote it.
func (g *leg) restore(ctx context.Context) error {
	args, before := []string{"import"}, ""
	for n := 1; n <= g.at.Number; n++ {
		file, err := os.Create(filepath.Join(g.dir, fmt.Sprintf("part-%d.hone", n)))
		if err != nil {
			return err
		}
		defer os.Remove(file.Name())
		e, seal, err := g.read(ctx, n, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		if e.After != before {
			return fatal("%s in the store does not belong to this run: another program wrote to the store; %s", g.entryName(n), help)
		}
		if before = seal; e.Part != "" {
			args = append(args, file.Name())
		}
	}
	if err := g.hone(ctx, args...); err != nil {
		return err
	}
	return g.hone(ctx, "trust", g.at.Run, "--trust")
}

func (g *leg) hone(ctx context.Context, args ...string) error {
	_, err := child.Command{Program: g.Hone, Dir: g.repo, Args: args, Env: g.honeEnv()}.Output(ctx)
	if err = errors.Join(ctx.Err(), err); err != nil {
		err = fmt.Errorf("hone %s: %w", args[0], err)
	}
	return err
}
