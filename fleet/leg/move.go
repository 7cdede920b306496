package leg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"hone/group"
	"hone/history"
	"hone/internal/child"
	"hone/journal/bundle"
)

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
	e.Run, e.Events, e.Spent = run, b.Header.Events, spent(history.Read(b.Events))
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return g.put(ctx, e, part)
}

// Calls under way count in full.
func spent(past *history.Past) group.Amount {
	l := past.Facts().Ledger
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
