package leg

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"hone/fleet/store"
	"hone/journal"
	"hone/journal/bundle"
)

// maxPart is the maximum size of a part in bytes.
const maxPart = 4 << 30

// restore imports the run from the store into the clone, and trusts it: the MAC shows that
// a worker wrote it.
func (g *leg) restore(ctx context.Context) error {
	kept := filepath.Join(g.dir, "objects")
	if err := os.Mkdir(kept, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(kept)
	events, size, err := g.fetchEvents(ctx, kept)
	if err != nil {
		return err
	}
	if err := g.importRun(ctx, events, kept); err != nil {
		return err
	}
	g.offset = size
	return g.meetGuard(ctx, events[0])
}

// fetchEvents reads the events of the run, and returns them with the size of its journal.
func (g *leg) fetchEvents(ctx context.Context, kept string) ([]journal.Event, int64, error) {
	text, err := g.fetchParts(ctx, kept)
	if err != nil {
		return nil, 0, err
	}
	events, err := journal.Parse(g.at.Run, text)
	if err == nil && (len(events) == 0 || events[len(events)-1].Hash() != g.at.Head) {
		err = errors.New("it does not end with the event that the manifest names")
	}
	if err != nil {
		return nil, 0, fatal("run %s in the store is damaged: %w", g.at.Run, err)
	}
	return events, int64(len(text)), nil
}

// fetchParts reads the parts of the run from the last to the first. It returns the
// journal, and writes the objects to a directory.
func (g *leg) fetchParts(ctx context.Context, kept string) ([]byte, error) {
	var lines [][]byte
	for digest := g.at.Part; digest != ""; {
		name := g.name("parts/" + digest)
		part, _, err := store.Read(ctx, g.Store, name, maxPart)
		if errors.Is(err, store.ErrNotFound) {
			return nil, fatal("the store has lost %s, and run %s cannot continue without it: restore it from a backup of the store, or submit the job again to start over", name, g.at.Run)
		}
		if err != nil {
			return nil, err
		}
		if fmt.Sprintf("%x", sha256.Sum256(part)) != digest {
			return nil, fatal("%s in the store is not what the worker wrote: restore it from a backup of the store, or submit the job again to start over", name)
		}
		h, text, err := g.readPart(part, kept)
		if err != nil {
			return nil, fatal("read %s: %w", name, err)
		}
		lines, digest = append(lines, text), h.Before
	}
	slices.Reverse(lines)
	return bytes.Join(lines, nil), nil
}

// readPart reads one part.
func (g *leg) readPart(part []byte, kept string) (h header, text []byte, err error) {
	z, err := zstd.NewReader(bytes.NewReader(part), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return h, nil, err
	}
	defer z.Close()
	for t := tar.NewReader(z); ; {
		e, err := t.Next()
		if err == io.EOF {
			return h, text, nil
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(t)
		}
		if err != nil {
			return h, nil, err
		}
		object, isObject := strings.CutPrefix(e.Name, objectPrefix)
		switch {
		case e.Name == headerName:
			err = json.Unmarshal(content, &h)
		case e.Name == journalName:
			text = content
		case isObject && object == fmt.Sprintf("%x", sha256.Sum256(content)):
			g.has[object] = true
			err = os.WriteFile(filepath.Join(kept, object), content, 0o600)
		default:
			err = fmt.Errorf("%q does not belong to it", e.Name)
		}
		if err != nil {
			return h, nil, err
		}
	}
}

// importRun imports the run with hone import, and trusts it.
func (g *leg) importRun(ctx context.Context, events []journal.Event, kept string) error {
	in, out := io.Pipe()
	go func() {
		out.CloseWithError(g.writeBundle(out, events, kept))
	}()
	defer in.Close()
	if err := g.hone(ctx, in, "import", "-", "--max-size", "1000GB"); err != nil {
		return err
	}
	return g.hone(ctx, nil, "trust", g.at.Run, "--trust")
}

// writeBundle writes a run as hone export does: with the files of the commit, from the
// clone, and the objects that are kept.
func (g *leg) writeBundle(out io.Writer, events []journal.Event, kept string) error {
	places := map[string]string{}
	for digest, path := range g.files {
		places[digest] = filepath.Join(g.repo, path)
	}
	for object := range g.has {
		places[object] = filepath.Join(kept, object)
	}
	var list []bundle.Object
	for _, name := range slices.Sorted(maps.Keys(places)) {
		list = append(list, bundle.Object{Name: name, Size: -1})
	}
	return bundle.Write(out, bundle.Header{Hone: "hone-fleet", Base: g.at.Commit}, events, list, func(name string) (io.ReadCloser, error) {
		return os.Open(places[name])
	})
}

// hone runs a command of hone in the clone.
func (g *leg) hone(ctx context.Context, in io.Reader, args ...string) error {
	c := exec.CommandContext(ctx, g.Hone, args...)
	c.Dir, c.Env, c.Stdin = g.repo, g.honeEnv(), in
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("hone %s: %w: %s", args[0], errors.Join(ctx.Err(), err), strings.TrimSpace(said.String()))
	}
	return nil
}
