package leg

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hone/fleet/store"
	"hone/group"
	"hone/history"
	"hone/journal/bundle"
)

// maxPart is the maximum size of a part in bytes, and of what it contains.
const maxPart = 4 << 30

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
	sum := sha256.New()
	if _, err := io.Copy(sum, part); err != nil {
		return err
	}
	if _, err = part.Seek(0, io.SeekStart); err != nil {
		return err
	}
	b, err := bundle.NewReader(part, maxPart)
	if err != nil {
		return err
	}
	defer b.Close()
	if b.Header.Events == g.at.Events {
		return nil
	}
	m := g.at
	m.Run, m.Events = run, b.Header.Events
	m.Parts = append(m.Parts[:len(m.Parts):len(m.Parts)], fmt.Sprintf("%x", sum.Sum(nil)))
	m.Spent = spent(history.Read(b.Events))
	if _, err := g.Store.Put(ctx, g.name("parts/"+m.Parts[len(m.Parts)-1]), part, ""); err != nil {
		return err
	}
	return g.put(ctx, m)
}

// Calls under way count in full.
func spent(past *history.Past) group.Amount {
	l := past.Ledger()
	return group.Amount{Tokens: l.Tokens, Cost: group.Dollars(l.Cost)}
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

// It trusts the run: the MAC of the manifest, which names the parts, shows that a worker wrote it.
func (g *leg) restore(ctx context.Context) error {
	args := []string{"import"}
	for i, digest := range g.at.Parts {
		file := filepath.Join(g.dir, fmt.Sprintf("part-%d.hone", i))
		defer os.Remove(file)
		if err := g.fetch(ctx, digest, file); err != nil {
			return err
		}
		args = append(args, file)
	}
	if err := g.hone(ctx, args...); err != nil {
		return err
	}
	return g.hone(ctx, "trust", g.at.Run, "--trust")
}

func (g *leg) fetch(ctx context.Context, digest, file string) error {
	const help = "restore it from a backup of the store, or submit the job again to start over"
	name := g.name("parts/" + digest)
	in, _, err := g.Store.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return fatal("the store has lost %s, and run %s cannot continue without it: %s", name, g.at.Run, help)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), io.LimitReader(in, maxPart))
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("read %s from the store: %w", name, err)
	}
	if fmt.Sprintf("%x", sum.Sum(nil)) != digest {
		return fatal("%s in the store is not what the worker wrote: %s", name, help)
	}
	return nil
}

func (g *leg) hone(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, g.Hone, args...)
	c.Dir, c.Env = g.repo, g.honeEnv()
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("hone %s: %w: %s", args[0], errors.Join(ctx.Err(), err), strings.TrimSpace(said.String()))
	}
	return nil
}
