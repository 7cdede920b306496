package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hone/cmd/hone/attempts"
	"hone/cmd/hone/eval"
	"hone/cmd/hone/page"
	"hone/cmd/hone/report"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
)

var errNotFound = errors.New("there is no such page")

type reading struct {
	title string
	place string // the page's name in the bar; empty for the list of runs
	parts []page.Part
	sums  []string   // of the parts
	wait  *page.Wait // the last part, which is rendered at each look; nil if there is none

	state string    // of what it was read from
	used  time.Time // the last time
}

func (r reading) id() string { return strings.Join(r.sums, ".") }

func (r reading) since(id string) (parts []page.Part) {
	had := strings.Split(id, ".")
	for i, p := range r.parts {
		if !slices.Contains(had, r.sums[i]) {
			parts = append(parts, p)
		}
	}
	return parts
}

// keepTime is how long a page that nobody looks at is kept.
const keepTime = time.Minute

// An empty name is the list of runs. A page is read again only if its state has changed, for all viewers.
func (s *Server) read(ctx context.Context, name string) (reading, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	state, err := s.state(name)
	if err != nil {
		return reading{}, err
	}
	r := s.readings[name]
	if r == nil || r.state != state {
		if r, err = s.view(ctx, name); err != nil {
			return reading{}, err
		}
		for _, part := range r.parts {
			r.sums = append(r.sums, s.sum(part))
		}
		r.state, s.readings[name] = state, r
	}
	r.used = time.Now()
	maps.DeleteFunc(s.readings, func(_ string, other *reading) bool { return r.used.Sub(other.used) > keepTime })
	shown := *r
	if r.wait != nil {
		wait := *r.wait
		if s.isOwn(name) {
			wait.Text = s.Own.Reply.Text()
		}
		part, err := s.html.View(wait)
		if err != nil {
			return reading{}, err
		}
		shown.parts, shown.sums = append(slices.Clip(r.parts), part), append(slices.Clip(r.sums), s.sum(part))
	}
	return shown, nil
}

func (s *Server) sum(part page.Part) string {
	return strconv.FormatUint(maphash.Comparable(s.seed, part), 36)
}

// It changes with a page: with the lengths of the journals, with whether processes work on the runs, and with what the user can
// do.
func (s *Server) state(name string) (string, error) {
	if strings.HasPrefix(name, evaluations) {
		e, ok := s.evaluations()[name]
		if !ok {
			return "", errNotFound
		}
		return e.state, nil
	}
	if run := name; run != "" {
		home, err := s.find(run)
		if err != nil {
			return "", err
		}
		defer home.Close()
		state := runState(home, run) + s.acted(run)
		if s.groups[run] {
			others, _ := homeState(home) // the page can be read without it
			state += others
		}
		if s.isOwn(run) {
			state += fmt.Sprint(" ", time.Now().Unix()/5) // its working time
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

// It changes with the runs of the directory.
func homeState(home *journal.Home) (string, error) {
	ids, err := home.Runs()
	var state strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&state, "%s %s\n", id, runState(home, id))
	}
	return state.String(), err
}

// It changes with the journal of the run, and when a process starts or ends to work on it.
func runState(home *journal.Home, run string) string {
	size, _ := home.Size(run) // one that cannot be read has no size
	return fmt.Sprint(size, report.Working(home, run))
}

func (s *Server) eachHome(do func(*journal.Home) error) error {
	for _, dir := range s.Dirs {
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

// The run may be that of an attempt. The caller must close the home.
func (s *Server) find(run string) (*journal.Home, error) {
	for _, dir := range s.Dirs {
		home, err := runs.Open(dir)
		if err != nil {
			continue
		}
		if found, err := home.FindRun(run); err == nil && found == run {
			return home, nil
		}
		home.Close()
	}
	if _, known := s.copies[run]; !known {
		_ = s.eachHome(func(home *journal.Home) error {
			if one, err := attempts.Find(home, run); err == nil && one.Run == run {
				s.copies[run] = one
			}
			return nil
		})
	}
	if copied, ok := s.copies[run]; ok {
		if home := report.Copy(copied.Attempt); home != nil {
			return home, nil
		}
	}
	return nil, errNotFound
}

func (s *Server) view(ctx context.Context, name string) (*reading, error) {
	switch {
	case name == "":
		return s.list()
	case strings.HasPrefix(name, evaluations):
		return s.evaluation(name)
	}
	home, err := s.find(name)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	r, err := report.Read(home, name)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, r)
}

func (s *Server) run(ctx context.Context, r *report.Run) (*reading, error) {
	run := r.ID
	made := s.pages[run]
	if made == nil {
		made = &page.Maker{Own: r.Own(), Clean: s.Clean}
		s.pages[run] = made
	}
	o := report.Of(r)
	o.Asked = s.Say != nil && !o.Start.Redacted && (!o.Working || s.isOwn(run))
	p, err := made.Page(ctx, o)
	if err != nil {
		return nil, err
	}
	if of, ok := s.copies[run]; ok {
		p.Up = page.Link{Text: fmt.Sprintf("attempt %d of run %s", of.Number, journal.ShortRun(of.Of)), Address: "/run/" + of.Of}
	}
	p.Attempts = page.AttemptsOf(o, func(a history.Attempt, home *journal.Home) page.Run {
		s.copies[a.Run] = attempts.Found{Attempt: a, Of: run}
		return s.row(home, a.Run)
	})
	s.groups[run] = p.Attempts != nil
	v := &reading{title: p.Title(), place: journal.ShortRun(run)}
	v.parts, err = s.html.Run(p)
	if err == nil && s.Say != nil {
		var part page.Part
		part, err = s.acts(ctx, o)
		v.parts = slices.Insert(v.parts, 1, part)
	}
	if v.wait = (&page.Wait{}); err == nil && r.Working {
		*v.wait = made.Waits()
	}
	return v, err
}

func (s *Server) list() (*reading, error) {
	var l page.List
	err := s.eachHome(func(home *journal.Home) error {
		ids, err := home.Runs()
		f := page.Folder{Name: render.Line(home.Workspace())}
		for _, id := range slices.Backward(ids) {
			f.Runs = append(f.Runs, s.row(home, id))
		}
		if use, err := report.UseOf(home); err == nil {
			f.Note = use.String()
		}
		l.Folders = append(l.Folders, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	found := s.evaluations()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		l.Evaluations = append(l.Evaluations, page.Link{Text: found[name].title, Address: "/" + name})
	}
	part, err := s.html.View(l)
	return &reading{title: "hone: runs", parts: []page.Part{part}}, err
}

type listed struct {
	state string
	run   page.Run
}

// The run is read again only if its state has changed.
func (s *Server) row(home *journal.Home, run string) page.Run {
	state := runState(home, run)
	known, ok := s.rows[run]
	if !ok || known.state != state {
		of := report.Summarize(home, run, report.Working(home, run), nil)
		known = listed{state, page.RunOf(of)}
		s.rows[run] = known
	}
	return known.run
}

// evaluations is the prefix of the names of pages of evaluations.
const evaluations = "eval/"

// evalSuffix ends the name of the file in which hone eval records results.
const evalSuffix = ".results.jsonl"

// maxEval is the maximum size in bytes of such a file; a larger one has no page.
const maxEval = 64 << 20

type evaluation struct{ file, title, state string }

// Direct subdirectories are searched too. The keys are the names of the pages.
func (s *Server) evaluations() map[string]evaluation {
	all := map[string]evaluation{}
	for i, dir := range s.Dirs {
		for _, pattern := range []string{"*", "*/*"} {
			found, _ := fs.Glob(os.DirFS(dir), pattern+evalSuffix)
			for _, name := range found {
				file, title := filepath.Join(dir, name), filepath.FromSlash(name)
				info, err := os.Lstat(file)
				if err != nil || !info.Mode().IsRegular() || info.Size() > maxEval {
					continue
				}
				if len(s.Dirs) > 1 {
					title = file
				}
				all[fmt.Sprintf("%s%d/%s", evaluations, i, name)] = evaluation{file, strings.TrimSuffix(title, evalSuffix), fmt.Sprint(info.Size(), info.ModTime())}
			}
		}
	}
	return all
}

func (s *Server) evaluation(name string) (*reading, error) {
	e, ok := s.evaluations()[name]
	if !ok {
		return nil, errNotFound
	}
	record, err := eval.OpenRecord(e.file)
	if err != nil {
		return nil, err
	}
	part, err := s.html.View(page.EvaluationOf(e.title, slices.SortedFunc(maps.Values(record.Results), func(x, y eval.Result) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Key, y.Key))
	})))
	return &reading{title: "hone eval: " + e.title, place: e.title, parts: []page.Part{part}}, err
}
