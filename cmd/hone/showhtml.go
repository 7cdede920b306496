package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/page"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/report"
	"hone/cmd/hone/view"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
)

// mostInFile is how many bytes of each request the self-contained page shows.
const mostInFile = 32 << 10

// showHTML writes the page of a run to a new file, or to stdout if its name is "-".
func (a *app) showHTML(ctx context.Context, o report.Overview, name string) error {
	p, err := view.NewRunPage(o.Own(), view.Calls{Most: mostInFile, Clean: a.redactKnown}).Page(ctx, o, lastRounds)
	if err != nil {
		return err
	}
	p.Version = version()
	if n := p.Shown.From; n > 0 {
		p.Rest = fmt.Sprintf("This file has the details of the last %s. To see an earlier round, type hone show %s --round N where the run was recorded; add --diff for its changes.",
			render.Count(len(p.Rounds)-n, "round"), journal.ShortRun(o.ID))
	}
	p.Attempts = view.Attempts(o, func(a history.Attempt) *page.Run {
		return view.AttemptRow(a, func(home *journal.Home) page.Run {
			row := view.Row(report.Summarize(home, a.Run, recorded.Working(home, a.Run), nil))
			row.Link = "" // nothing serves it
			return row
		})
	})
	if o.Working {
		p.Why = "the run was not finished when this page was written"
	}
	var b bytes.Buffer
	if err := page.New(a.redactKnown).File(&b, p); err != nil {
		return err
	}
	if name == "-" {
		_, err := a.out.Write(b.Bytes())
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return failure.Usage(name+" exists", "remove it, or name another file, or - for standard output")
	case err != nil:
		return cannotCreate(name, err)
	}
	if _, err = f.Write(b.Bytes()); err != nil {
		err = failure.Of(err, "free some disk space")
	}
	if err = errors.Join(err, f.Close()); err == nil {
		fmt.Fprintf(a.err, "wrote %s\n", render.Line(name))
	}
	return err
}

// lastRounds returns the window of the last rounds, without links to other pages.
func lastRounds(all []page.Round) (page.Window, []page.Link) {
	shown, _ := view.Windows(all, "", -1)
	return shown, nil
}

// cannotCreate returns the error if a file that the user named cannot be created.
func cannotCreate(name string, err error) error {
	return failure.Usage(fmt.Sprintf("%s cannot be written: %v", name, cause(err)), "name a file in a directory that exists and that you can write")
}

// cause returns the error of a file without its path, which may be that of a temporary one.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
