package leg

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"hone/harness"
	"hone/history"
	"hone/internal/config"
	"hone/journal"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace/secret"
)

// shipper stores what a run has recorded.
type shipper struct {
	at     manifest // as it is stored
	match  string   // the version of the manifest in the store
	offset int64    // in the journal: the end of what is stored
	has    map[string]bool
	files  map[string]string // of the commit: paths by digest
	guard  *secret.Guard     // nil until it is needed
}

// header is the first entry of a part.
type header struct {
	Format int    `json:"format"`
	Before string `json:"before,omitempty"` // the part before this one; empty if it is the first
}

// Names of the entries of a part. The objects follow the journal.
const (
	headerName   = "part.json"
	journalName  = "journal.jsonl"
	objectPrefix = "objects/"
)

// ship stores the recorded events that the store lacks.
func (g *leg) ship(ctx context.Context, run string) error {
	events, end, err := g.tail(run)
	if err != nil || len(events) == 0 {
		return err
	}
	objects, err := g.objects(ctx, events)
	if err != nil {
		return err
	}
	part, err := encodePart(header{Format: format, Before: g.at.Part}, events, objects)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(part)
	m := g.at
	last := events[len(events)-1]
	m.Run, m.Part, m.Events, m.Head = run, hex.EncodeToString(digest[:]), last.Seq, last.Hash()
	for _, e := range events {
		m.Spent = spentAfter(m.Spent, history.Decode(e))
	}
	if _, err := g.Store.Put(ctx, g.name("parts/"+m.Part), part, ""); err != nil {
		return err
	}
	if err := g.put(ctx, m); err != nil {
		return err
	}
	g.offset = end
	for name := range objects {
		g.has[name] = true
	}
	return nil
}

// keepShipping calls ship, and retries it within the worker's patience if the store fails.
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

// tail returns the events after those that are stored, and where they end in the journal.
func (g *leg) tail(run string) (events []journal.Event, end int64, err error) {
	if !journal.ValidRun(run) {
		return nil, 0, fmt.Errorf("%q is not the id of a run", run)
	}
	f, err := os.Open(filepath.Join(g.repo, journal.HomeName, "runs", run+".jsonl"))
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if _, err := f.Seek(g.offset, io.SeekStart); err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(f)
	end = g.offset
	for err == nil {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		if !whole {
			break
		}
		var e journal.Event
		if e, err = journal.ParseLine(line); err == nil {
			events, text, end = append(events, e), rest, end+int64(len(line))+1
		}
	}
	return events, end, err
}

// objects returns, by name, the contents that events need and that the store lacks, except
// files of the commit and files that look secret.
func (g *leg) objects(ctx context.Context, events []journal.Event) (map[string][]byte, error) {
	home, err := journal.FindHome(g.repo)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	needs, err := history.NeededObjects(home, events)
	if err != nil {
		return nil, err
	}
	if err := g.meetGuard(ctx, events[0]); err != nil {
		return nil, err
	}
	objects := map[string][]byte{}
	for _, n := range needs {
		if g.has[n.Name] || g.files[n.Name] != "" {
			continue
		}
		content, err := home.Get(n.Name)
		if err != nil {
			return nil, err
		}
		if !g.secret(n, content) {
			objects[n.Name] = content
		}
	}
	return objects, nil
}

// secret reports whether contents are those of a file that looks secret.
func (g *leg) secret(n history.Needed, content []byte) bool {
	for _, path := range n.Paths {
		if _, secret := g.guard.Withheld(path, content); secret {
			return true
		}
	}
	return false
}

// meetGuard sets the guard that decides which files look secret, from the settings in the
// run's first event.
func (g *leg) meetGuard(ctx context.Context, first journal.Event) error {
	if g.guard != nil {
		return nil
	}
	var settings loop.Settings
	if start, ok := history.Decode(first).Payload.(history.Start); ok {
		_ = json.Unmarshal(start.Settings, &settings) // unreadable settings send nothing that looks secret
	}
	env := g.environ()
	var err error
	g.guard, err = harness.NewGuard(ctx, func(name string) string { return sandbox.EnvValue(env, name) }, g.repo, config.Send.In(settings.Values), settings.Variables(), env)
	return err
}

// encodePart returns a part: a tar archive, compressed with zstd.
func encodePart(h header, events []journal.Event, objects map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	add := func(name string, content []byte) error {
		err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o600})
		if err == nil {
			_, err = t.Write(content)
		}
		return err
	}
	head, err := json.Marshal(h)
	err = errors.Join(err, add(headerName, head), add(journalName, journal.Lines(events)))
	for name, content := range objects {
		err = errors.Join(err, add(objectPrefix+name, content))
	}
	if err = errors.Join(err, t.Close(), z.Close()); err != nil {
		return nil, fmt.Errorf("write a part of the run: %w", err)
	}
	return b.Bytes(), nil
}
