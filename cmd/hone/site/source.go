// Package site is what hone web shows: the list of runs, the page of each run and the results
// of hone eval. [Source] reads them from the directories of a server, and [Actor] lets the user
// act on runs.
package site

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/page"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/report"
	"hone/cmd/hone/web"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/story"
)

// Source is what a web server shows of the runs in some directories. It implements
// [web.Source].
type Source struct {
	dirs  []string
	html  *page.Renderer
	clean func(string) string
	acts  *Actor // nil if the user may only look

	mu    sync.Mutex
	pages map[string]*page.Maker // by run
	rows  map[string]listed      // by run

	copies sync.Map // of a run's id: its [attempts.Found], if it works in a copy
	groups sync.Map // the ids of runs with attempts: a later run may apply another attempt

	own   string      // the run of this process; empty if it has none
	reply *page.Reply // that the run waits for; nil if this process has no run
	shown shownRun
}

// shownRun is the page of the process's own run as it was rendered last. While a reply
// arrives, only that is rendered again.
type shownRun struct {
	name, state string
	at          time.Time
	view        web.View // without the part about the reply
	wait        page.Wait
}

// longestShown is how long a page may show the same working time of its run.
const longestShown = 5 * time.Second

// listed is a run in the list as it was in some state.
type listed struct {
	state string
	run   page.Run
}

var _ web.Source = (*Source)(nil)

// New returns the source of some directories. clean removes secrets from a text.
func New(dirs []string, clean func(string) string) *Source {
	return &Source{dirs: dirs, html: page.New(clean), clean: clean, pages: map[string]*page.Maker{}, rows: map[string]listed{}}
}

// SetOwn says which run is that of this process, and what has arrived of the reply that it
// waits for.
func (s *Source) SetOwn(run string, reply *page.Reply) { s.own, s.reply = run, reply }

// Renderer returns what renders the pages.
func (s *Source) Renderer() *page.Renderer { return s.html }

// mostInRound is how many bytes of a request the page of a run shows, with a link to the rest.
const mostInRound = 4 << 10

// callOf returns the run of a page, and the number of the event that begins the call on the
// page; 0 if the page shows the run itself.
func callOf(name string) (run string, seq int64) {
	run, call, _ := strings.Cut(name, "/call/")
	seq, err := strconv.ParseInt(call, 10, 64)
	if err != nil {
		return name, 0
	}
	return run, seq
}

// State returns the lengths of the journals on a page, whether processes work on them, and
// how much of a reply has arrived.
func (s *Source) State(name string) (string, error) {
	if strings.HasPrefix(name, web.Evaluations) {
		file, ok := s.evaluations()[name]
		if !ok {
			return "", web.ErrNotFound
		}
		return evalState(file), nil
	}
	if name != "" {
		run, _ := callOf(name)
		run, _ = page.ShownRound(run)
		home, err := s.find(run)
		if err != nil {
			return "", err
		}
		defer home.Close()
		state := s.runState(home, run)
		if run == s.own {
			state += " " + s.reply.State()
		}
		return state, nil
	}
	var state strings.Builder
	err := s.eachHome(func(home *journal.Home) error {
		text, err := homeState(home)
		state.WriteString(text)
		return err
	})
	for _, name := range slices.Sorted(maps.Keys(s.evaluations())) {
		fmt.Fprintln(&state, name)
	}
	return state.String(), err
}

// homeState returns a text that changes with the runs of a directory.
func homeState(home *journal.Home) (string, error) {
	ids, err := home.Runs()
	var state strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&state, "%s %s\n", id, runState(home, id))
	}
	return state.String(), err
}

// runState returns a text that changes with the journal of a run, and with what the user
// can do with the run.
func (s *Source) runState(home *journal.Home, run string) string {
	state := runState(home, run) + s.acts.state(run)
	if _, ok := s.groups.Load(run); ok {
		others, _ := homeState(home) // the page can be read without it
		state += others
	}
	return state
}

// runState returns a text that changes with the journal of a run, and when a process
// starts or ends to work on it.
func runState(home *journal.Home, run string) string {
	size, _ := home.Size(run) // one that cannot be read has no size
	return fmt.Sprint(size, recorded.Working(home, run))
}

// eachHome calls do with the home of each directory that has runs.
func (s *Source) eachHome(do func(*journal.Home) error) error {
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

// find opens the home of a run or of an attempt. The caller must close it.
func (s *Source) find(run string) (*journal.Home, error) {
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
	if copied, ok := s.findCopy(run); ok {
		if home := recorded.Copy(copied.Attempt); home != nil {
			return home, nil
		}
	}
	return nil, web.ErrNotFound
}

// findCopy returns the attempt whose run has the id.
func (s *Source) findCopy(run string) (found attempts.Found, ok bool) {
	if known, ok := s.copies.Load(run); ok {
		return known.(attempts.Found), true
	}
	err := s.eachHome(func(home *journal.Home) error {
		if one, none := attempts.Find(home, run); none == nil && one.Run == run {
			found, ok = one, true
			s.copies.Store(run, one)
		}
		return nil
	})
	return found, ok && err == nil
}

// View returns a page.
func (s *Source) View(ctx context.Context, name string) (web.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" {
		return s.list()
	}
	if strings.HasPrefix(name, web.Evaluations) {
		return s.evaluation(name)
	}
	run, call := callOf(name)
	run, round := page.ShownRound(run)
	home, err := s.find(run)
	if err != nil {
		return web.View{}, err
	}
	defer home.Close()
	v, err := s.runView(ctx, home, name, run, round, call)
	if err == nil || errors.Is(err, web.ErrNotFound) || ctx.Err() != nil {
		return v, err
	}
	return s.unreadableView(home, run, err)
}

// unreadableView returns the page of a run that cannot be read: why, and what to type.
func (s *Source) unreadableView(home *journal.Home, run string, err error) (web.View, error) {
	of := report.Summarize(home, run, recorded.Working(home, run), nil)
	short, result := journal.ShortRun(run), of.Standing.Text
	if of.Past != nil { // a stored object is damaged, and not the journal
		result, err = "unreadable", failure.Of(err, fmt.Sprintf("restore %s from a backup; hone show %s shows what can still be read", render.Line(home.Dir()), short+failure.Elsewhere(home.Workspace())))
	}
	title := fmt.Sprintf("%s %s: run %s", story.Failed, result, short)
	part, err := s.html.Refusal(title, explanation(err, failure.Elsewhere(home.Workspace())))
	return web.View{Title: title, Place: short, Parts: []page.Part{part}}, err
}

// runView returns the page of a run, or of a call in it if call is not 0.
func (s *Source) runView(ctx context.Context, home *journal.Home, name, run string, round int, call int64) (web.View, error) {
	state := s.runState(home, run)
	if was := s.shown; was.name == name && was.state == state && time.Since(was.at) < longestShown {
		return s.withReply(run, was)
	}
	r, err := recorded.Read(home, run)
	if err != nil {
		return web.View{}, err
	}
	if call > 0 {
		return s.call(home, run, r.Past.Events(), call)
	}
	shown := shownRun{name: name, state: state, at: time.Now()}
	if shown.view, err = s.run(ctx, r, round); err != nil {
		return web.View{}, err
	}
	if r.Working {
		shown.wait = s.pages[run].Waits()
	}
	if run == s.own {
		s.shown = shown
	}
	return s.withReply(run, shown)
}

// withReply adds what the run waits for.
func (s *Source) withReply(run string, shown shownRun) (web.View, error) {
	if run == s.own {
		shown.wait.Text = s.reply.Text()
	}
	part, err := s.html.Wait(shown.wait)
	shown.view.Parts = append(slices.Clip(shown.view.Parts), part)
	return shown.view, err
}

// run returns the page of a run, and the rounds of one of its windows.
func (s *Source) run(ctx context.Context, r *recorded.Run, round int) (web.View, error) {
	run := r.ID
	made := s.pages[run]
	if made == nil {
		made = &page.Maker{Own: r.Own(), Calls: page.Calls{Most: mostInRound, Clean: s.clean, Link: func(seq int64) string { return fmt.Sprintf("/run/%s/call/%d", run, seq) }}}
		s.pages[run] = made
	}
	o := report.Of(r)
	o.Asked = s.acts.asks(o)
	p, err := made.Page(ctx, o, func(all []page.Round) (page.Window, []page.Link) { return page.Windows(all, run, round) })
	if err != nil {
		return web.View{}, err
	}
	if of, ok := s.copies.Load(run); ok {
		of := of.(attempts.Found)
		p.Up = page.Link{Text: fmt.Sprintf("attempt %d of run %s", of.Number, journal.ShortRun(of.Of)), Address: "/run/" + of.Of}
	}
	p.Attempts = page.AttemptsOf(o, func(a history.Attempt, home *journal.Home) page.Run {
		s.copies.Store(a.Run, attempts.Found{Attempt: a, Of: run})
		return s.row(home, a.Run)
	})
	if p.Attempts != nil {
		s.groups.Store(run, true)
	}
	v, err := s.viewOf(p, journal.ShortRun(run))
	if err != nil || s.acts == nil {
		return v, err
	}
	return s.acts.add(ctx, v, o)
}

// call returns the page of a model call.
func (s *Source) call(home *journal.Home, run string, events []history.Event, seq int64) (web.View, error) {
	call, ok, err := page.WholeCall(events, seq, home.Get)
	if err != nil {
		return web.View{}, err
	}
	if !ok {
		return web.View{}, web.ErrNotFound
	}
	short := journal.ShortRun(run)
	part, err := s.html.Call(call, "run "+short, page.CallAddress(run, events, seq))
	return web.View{Title: fmt.Sprintf("%s: what %s was asked", short, call.Name), Place: short, Parts: []page.Part{part}}, err
}

// viewOf renders the page of a run.
func (s *Source) viewOf(p page.Page, place string) (web.View, error) {
	head, err := s.html.Head(p)
	v := web.View{Title: p.Title(), Place: place, Parts: head}
	for _, r := range p.InWindow() {
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
func (s *Source) list() (web.View, error) {
	var l page.List
	err := s.eachHome(func(home *journal.Home) error {
		ids, err := home.Runs()
		f := page.Folder{Name: render.Line(home.Workspace())}
		for i := len(ids) - 1; i >= 0; i-- {
			f.Runs = append(f.Runs, s.row(home, ids[i]))
		}
		if use, err := report.UseOf(home); err == nil {
			f.Note = use.String()
		}
		l.Folders = append(l.Folders, f)
		return err
	})
	if err != nil {
		return web.View{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.evaluations())) {
		l.Evaluations = append(l.Evaluations, s.evalLink(name))
	}
	part, err := s.html.List(l)
	return web.View{Title: "hone: runs", Parts: []page.Part{part}}, err
}

// row returns a run in the list. It reads the run again only if its state has changed.
func (s *Source) row(home *journal.Home, run string) page.Run {
	state := runState(home, run)
	known, ok := s.rows[run]
	if !ok || known.state != state {
		known = listed{state: state}
		of := report.Summarize(home, run, recorded.Working(home, run), nil)
		known.run = page.RunOf(of)
		s.rows[run] = known
	}
	return known.run
}
