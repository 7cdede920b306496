package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hone/check"
	"hone/cmd/hone/page"
	"hone/cmd/hone/rounds"
	"hone/cmd/hone/view"
	"hone/cmd/hone/web"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
)

// runSource is what a web server shows of the runs in some directories. It implements
// [web.Source].
type runSource struct {
	app  *app
	dirs []string
	html *page.Renderer

	mu    sync.Mutex
	pages map[string]*runPage // by run
	rows  map[string]listed   // by run
}

// listed is a run in the list as it was in some state.
type listed struct {
	state string
	run   page.Run
	began time.Time
}

var _ web.Source = (*runSource)(nil)

func newRunSource(a *app, dirs []string, html *page.Renderer) *runSource {
	return &runSource{app: a, dirs: dirs, html: html, pages: map[string]*runPage{}, rows: map[string]listed{}}
}

// mostInRound is how many bytes of a request a page shows that links to all of it.
const mostInRound = 4 << 10

// callOf returns the run of a page, and the number of the event that begins the call which
// the page shows; 0 if it shows the run itself.
func callOf(name string) (run string, seq int64) {
	run, call, _ := strings.Cut(name, "/call/")
	seq, err := strconv.ParseInt(call, 10, 64)
	if err != nil {
		return name, 0
	}
	return run, seq
}

// State returns how long the journals are that a page shows, and whether processes work
// on them.
func (s *runSource) State(name string) (string, error) {
	if name != "" {
		run, _ := callOf(name)
		home, err := s.find(run)
		if err != nil {
			return "", err
		}
		defer home.Close()
		return runState(home, run), nil
	}
	var state strings.Builder
	err := s.eachHome(func(home *journal.Home) error {
		ids, err := home.Runs()
		for _, id := range ids {
			fmt.Fprintf(&state, "%s %s\n", id, runState(home, id))
		}
		return err
	})
	return state.String(), err
}

// runState returns a text that changes with the journal of a run, and when a process
// starts or ends to work on it.
func runState(home *journal.Home, run string) string {
	size, _ := home.Size(run) // one that cannot be read has no size
	return fmt.Sprint(size, works(home, run))
}

// eachHome calls do with the home of each directory that has runs.
func (s *runSource) eachHome(do func(*journal.Home) error) error {
	for _, dir := range s.dirs {
		home, err := runs.Open(dir)
		if errors.Is(err, runs.ErrNone) {
			continue
		}
		if err != nil {
			return err
		}
		err = do(home)
		home.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// find opens the home of a run. The caller closes it.
func (s *runSource) find(run string) (*journal.Home, error) {
	for _, dir := range s.dirs {
		home, err := runs.Open(dir)
		if err != nil {
			continue
		}
		if found, err := home.FindRun(run); err == nil && found == run {
			return home, nil
		}
		home.Close()
	}
	return nil, web.ErrNotFound
}

// View returns a page.
func (s *runSource) View(ctx context.Context, name string) (web.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" {
		return s.list()
	}
	run, call := callOf(name)
	home, err := s.find(run)
	if err != nil {
		return web.View{}, err
	}
	defer home.Close()
	working := works(home, run) // before reading, so that nothing it still writes is missed
	past, start, err := readRun(home, run)
	if err != nil {
		return web.View{}, err
	}
	if call > 0 {
		return s.call(home, run, past.Events(), call)
	}
	made := s.pages[run]
	if made == nil {
		made = newRunPage(ownOf(start), view.Calls{Most: mostInRound, Clean: s.app.redactKnown, Link: func(seq int64) string { return fmt.Sprintf("/run/%s/call/%d", run, seq) }})
		s.pages[run] = made
	}
	p, err := made.page(ctx, s.app.overviewOf(home, run, past, start, working))
	if err != nil {
		return web.View{}, err
	}
	return s.viewOf(p, journal.ShortRun(run))
}

// call returns the page of a model call.
func (s *runSource) call(home *journal.Home, run string, events []history.Event, seq int64) (web.View, error) {
	call, ok, err := view.WholeCall(events, seq, home.Get)
	if err != nil {
		return web.View{}, err
	}
	if !ok {
		return web.View{}, web.ErrNotFound
	}
	short := journal.ShortRun(run)
	part, err := s.html.Call(call, "run "+short, fmt.Sprintf("/run/%s#c%d", run, seq))
	return web.View{Title: fmt.Sprintf("%s: what %s was asked", short, call.Name), Place: short, Parts: []page.Part{part}}, err
}

// viewOf renders the page of a run.
func (s *runSource) viewOf(p page.Page, place string) (web.View, error) {
	head, err := s.html.Head(p)
	v := web.View{Title: p.Title, Place: place, Parts: []page.Part{head}}
	for _, r := range p.Rounds {
		if err != nil {
			return v, err
		}
		var part page.Part
		part, err = s.html.Round(r)
		v.Parts = append(v.Parts, part)
	}
	return v, err
}

// list returns the page of all runs.
func (s *runSource) list() (web.View, error) {
	var l page.List
	err := s.eachHome(func(home *journal.Home) error {
		ids, err := home.Runs()
		f := page.Folder{Name: render.Line(home.Workspace())}
		for i := len(ids) - 1; i >= 0; i-- {
			f.Runs = append(f.Runs, s.row(home, ids[i]))
		}
		if use, err := useOf(home); err == nil {
			f.Note = use.String()
		}
		l.Folders = append(l.Folders, f)
		return err
	})
	if err != nil {
		return web.View{}, err
	}
	part, err := s.html.List(l)
	return web.View{Title: "hone: runs", Parts: []page.Part{part}}, err
}

// row returns a run in the list. It reads the run again only if its state has changed.
func (s *runSource) row(home *journal.Home, run string) page.Run {
	state := runState(home, run)
	known, ok := s.rows[run]
	if !ok || known.state != state {
		known = listed{state: state}
		of, _ := readSummary(home, run, works(home, run))
		known.run, known.began = rowOf(of), of.When
		s.rows[run] = known
	}
	row := known.run
	row.Age = age(known.began, time.Now())
	return row
}

// rowOf returns a run in the list.
func rowOf(s summary) page.Run {
	row := page.Run{ID: journal.ShortRun(s.Run), Link: "/run/" + s.Run, Mark: string(s.mark), Result: s.Result, Loop: s.Loop, About: s.Subject,
		Model: strings.Join(s.models, " · ")}
	if s.past == nil {
		return row
	}
	row.Tokens, row.When, row.Ticks = render.Short(s.Tokens)+" tokens", s.When.Local().Format(time.DateTime), ticks(s.past.Events())
	if s.Cost != nil {
		row.Cost = render.Cost(s.Cost, s.Unconfirmed > 0)
	}
	if limit := s.past.Limits().Tokens; limit > 0 {
		row.Share = min(1, float64(s.Tokens)/float64(limit))
	}
	if st := s.past.State(); st.Round > 0 {
		row.Findings = render.Count(blockingCount(st.Findings), "finding")
	}
	return row
}

// blockingCount returns how many findings keep a run going.
func blockingCount(findings []check.Finding) int {
	return check.Count(slices.DeleteFunc(slices.Clone(findings), func(f check.Finding) bool { return !f.Blocks() }))
}

// ticks returns a tick for each round.
func ticks(events []history.Event) []page.Tick {
	var list []page.Tick
	for _, r := range rounds.Of(events, nil, nil) {
		if r.Number > 0 {
			list = append(list, page.Tick{Mark: string(r.Outcome), Title: r.Name() + ": " + r.Verdict})
		}
	}
	return list
}
