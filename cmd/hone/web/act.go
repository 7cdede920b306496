package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/page"
	"hone/cmd/hone/report"
	"hone/history"
	"hone/internal/child"
	"hone/journal"
	"hone/story"
)

// resumed is a run at work in a child of this process.
type resumed struct {
	run  string
	stop func()
}

// maxForm is the maximum size of a form in bytes.
const maxForm = 64 << 10

// allowed refuses requests if the user may only look, and reads their forms.
func (s *Server) allowed(do func(w http.ResponseWriter, r *http.Request, home *journal.Home, run string) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Say == nil {
			http.Error(w, "This page only shows runs. To answer, stop, resume or undo on it, start it with: hone web --allow-actions", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			status := http.StatusBadRequest
			if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
				status = http.StatusRequestEntityTooLarge
			}
			http.Error(w, "The form cannot be read: "+err.Error(), status)
			return
		}
		s.mu.Lock()
		over := s.ctx.Err()
		if over == nil {
			s.running.Add(1)
		}
		s.mu.Unlock()
		if over != nil { // nothing would wait for what it starts
			s.refuse(w, over)
			return
		}
		defer s.running.Done()
		run := r.PathValue("name")
		s.reading.Lock()
		home, err := s.find(run)
		s.reading.Unlock()
		if err == nil {
			defer home.Close()
			err = do(w, r, home, run)
		}
		if err != nil {
			s.refuse(w, err)
		}
	})
}

// The page of the run shows the result, or why it was refused.
func (s *Server) act(w http.ResponseWriter, r *http.Request, home *journal.Home, run string) error {
	action := r.PathValue("action")
	act := map[string]func(context.Context, *journal.Home, string, url.Values) error{"stop": s.stop, "resume": s.resume, "answer": s.answer, "undo": s.undo}[action]
	if act == nil {
		return errNotFound
	}
	s.Say(fmt.Sprintf("requested on the page: %s %s", action, journal.ShortRun(run)))
	s.note(run, "")
	if err := act(r.Context(), home, run, r.PostForm); err != nil {
		s.refused(run, err)
	}
	s.toRun(w, r)
	return nil
}

func (s *Server) toRun(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, (&url.URL{Path: s.root + "/run/" + r.PathValue("name")}).EscapedPath(), http.StatusSeeOther)
}

func (s *Server) note(run, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said[run] = text
}

func (s *Server) refused(run string, err error) {
	s.note(run, explanation(err))
	s.Say("refused: " + err.Error())
}

func explanation(err error) string {
	if f, _ := failure.Explain(err, ""); f.Hint != "" {
		return err.Error() + "\nnext: " + f.Hint
	}
	return err.Error()
}

func (s *Server) isOwn(run string) bool { return s.Own != nil && s.Own.ID == run }

// It changes when the user's actions have something new to show about a run.
func (s *Server) acted(run string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.said[run]
	if s.isOwn(run) {
		if q := s.Own.question(); q != nil {
			text += q.Digest(run)
		}
	}
	return text
}

func (s *Server) command(dir, run string, args ...string) child.Command {
	return child.Command{Dir: ".", Env: s.Environ, Keeper: s.keeper, Args: slices.Concat(args, []string{"-C", dir, "--", run})}
}

// Ctrl-C does the same.
func (s *Server) stop(_ context.Context, home *journal.Home, run string, _ url.Values) error {
	if s.isOwn(run) {
		s.Own.stop()
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := false
	for _, r := range s.resumed {
		if r.run == run {
			r.stop()
			own = true
		}
	}
	switch {
	case own:
		return nil
	case !report.Working(home, run):
		return failure.Usage("no process works on this run", "")
	}
	err := home.SignalHolder(syscall.SIGTERM)
	if errors.Is(err, errors.ErrUnsupported) {
		return failure.Usage("on this system the page cannot stop the run of another process", "press Ctrl-C in its terminal")
	}
	return err
}

func (s *Server) resume(ctx context.Context, home *journal.Home, run string, form url.Values) error {
	r, err := report.Read(home, run)
	if err != nil {
		return err
	}
	var flags []string
	for _, l := range page.LimitsOf(r.Past.Facts().Limits) {
		if value := strings.TrimSpace(form.Get(l.Flag)); value != "" && value != l.Value {
			flags = append(flags, "--"+l.Flag+"="+value)
		}
	}
	s.start(ctx, home.Workspace(), run, flags)
	return nil
}

// The form names each question by its digest.
func (s *Server) answer(ctx context.Context, home *journal.Home, run string, form url.Values) error {
	var flags []string
	for _, digest := range slices.Sorted(maps.Keys(form)) {
		text := digest + "=" + strings.TrimSpace(form.Get(digest))
		if strings.HasSuffix(text, "=") {
			continue // a text that was left empty
		}
		if s.isOwn(run) {
			return s.Own.answer(text)
		}
		flags = append(flags, "--answer="+text)
	}
	if flags == nil {
		return failure.Usage("no question was answered", "choose yes or no, or type an answer")
	}
	s.start(ctx, home.Workspace(), run, flags)
	return nil
}

// It returns when the child has recorded an event or has ended. The lock of the directory lets only one child work there.
func (s *Server) start(ctx context.Context, dir, run string, flags []string) {
	during, stop := context.WithCancel(s.ctx)
	r, begun, ended := &resumed{run, stop}, make(chan struct{}), make(chan struct{})
	s.mu.Lock()
	s.resumed = append(s.resumed, r)
	s.mu.Unlock()
	command := s.command(dir, run, slices.Concat([]string{"resume"}, flags)...)
	first := sync.OnceFunc(func() { close(begun) })
	command.Event = func(history.Event) { first() }
	s.running.Go(func() {
		defer close(ended)
		defer stop()
		result, err := command.Run(during)
		s.mu.Lock()
		s.resumed = slices.DeleteFunc(s.resumed, func(one *resumed) bool { return one == r })
		s.mu.Unlock()
		if err = cmp.Or(err, result.Error()); err != nil {
			s.refused(run, err)
			return
		}
		s.Say(fmt.Sprintf("run %s, which was resumed on the page, ended with status %d", journal.ShortRun(run), result.Exit))
	})
	select {
	case <-begun:
	case <-ended:
	case <-ctx.Done():
	}
}

// The plan must still be the one that the user saw.
func (s *Server) undo(ctx context.Context, home *journal.Home, run string, form url.Values) error {
	r, err := s.command(home.Workspace(), run, "undo", "--plan="+form.Get("plan")).Output(context.WithoutCancel(ctx))
	text := strings.TrimSpace(r.Printed)
	if err == nil || text == "" {
		s.note(run, text)
		return err
	}
	return fmt.Errorf("%s\n%w", text, err)
}

func (s *Server) preview(w http.ResponseWriter, r *http.Request, home *journal.Home, run string) error {
	got, err := s.command(home.Workspace(), run, "undo", "--dry-run", "--json").Output(r.Context())
	var would struct {
		Plan           string
		Restored, Left []string
		Conflicts      []history.Conflict
	}
	if err == nil {
		err = json.Unmarshal([]byte(got.Printed), &would)
	}
	if err != nil {
		s.refused(run, err)
		s.toRun(w, r)
		return nil
	}
	short := journal.ShortRun(run)
	p := page.Plan{Run: run, Short: short, Restored: would.Restored, Left: would.Left, Force: "hone undo " + short + failure.Elsewhere(home.Workspace()) + " --force"}
	for _, c := range would.Conflicts {
		p.Conflicts = append(p.Conflicts, story.Part{Name: c.Path, Text: c.Why})
	}
	if len(p.Restored) > 0 {
		p.Digest = would.Plan
	}
	part, err := s.html.View(p)
	if err == nil {
		s.serve(w, http.StatusOK, page.Served{Title: "undo " + short, Place: short, Parts: []page.Part{part}})
	}
	return err
}

func (s *Server) acts(ctx context.Context, o report.Account) (part page.Part, err error) {
	s.mu.Lock()
	acts := page.Acts{Run: o.ID, Said: s.said[o.ID], Stop: o.Working}
	s.mu.Unlock()
	var waiting []hone.Question
	switch {
	case o.Start.Redacted:
	case !o.Working:
		waiting = o.Past.Waiting()
		acts.Undo = len(o.Files) > 0
		if !o.Ended || o.End.Kind != hone.KindDone {
			acts.Resume = page.LimitsOf(o.Past.Facts().Limits)
		}
	case s.isOwn(o.ID):
		if q := s.Own.question(); q != nil {
			waiting = []hone.Question{*q}
		}
	case o.Past.Facts().Asking != nil:
		acts.Note = "A question is open in the terminal of the run. Answer it there, or stop the run and answer here."
	}
	for _, q := range waiting {
		one, err := page.QuestionOf(ctx, o.Home, o.ID, q)
		if err != nil {
			return part, err
		}
		acts.Questions = append(acts.Questions, one)
	}
	return s.html.View(acts)
}

// OwnRun is the run of this process. After [OwnRun.Attend] the user can act on it on its page.
type OwnRun struct {
	ID    string
	Reply *page.Reply // that the run waits for; nil if it is not known

	stop     func()
	terminal hone.Human
	say      func(text string)

	mu    sync.Mutex
	waits *hone.Question // nil if none does
	leave func()         // ends the question at the terminal
	given *hone.Answer   // on the page; nil before
}

// Attend lets the user stop the run on the page, and answer its questions there as well as to
// human, who is asked in the terminal; nil asks none. The run must have the returned context,
// which the caller must end with [OwnRun.Stop], and the returned Human.
func (o *OwnRun) Attend(ctx context.Context, human hone.Human, say func(text string)) (context.Context, hone.Human) {
	ctx, o.stop = context.WithCancel(ctx)
	o.terminal, o.say = human, say
	if human == nil {
		return ctx, nil
	}
	return ctx, o
}

// Stop stops the run.
func (o *OwnRun) Stop() { o.stop() }

// Ask asks at the terminal and on the page. The first answer counts.
func (o *OwnRun) Ask(ctx context.Context, q hone.Question) (hone.Answer, error) {
	asking, leave := context.WithCancel(ctx)
	defer leave()
	o.mu.Lock()
	o.waits, o.leave, o.given = &q, leave, nil
	o.mu.Unlock()
	a, err := o.terminal.Ask(asking, q)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits = nil
	if o.given == nil {
		return a, err
	}
	text := cmp.Or(o.given.Text, "no")
	if o.given.Approved {
		text = "yes"
	}
	o.say("  answered on the page: " + text)
	return *o.given, nil
}

func (o *OwnRun) question() *hone.Question {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.given != nil {
		return nil
	}
	return o.waits
}

// answer answers the question that waits, if text is its digest with = and an answer to it.
func (o *OwnRun) answer(text string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	digest, value, _ := strings.Cut(text, "=")
	if o.waits == nil || o.given != nil || o.waits.Digest(o.ID) != digest {
		return failure.Usage("this question no longer waits for an answer", "")
	}
	a, ok := report.ParseAnswer(*o.waits, value)
	if !ok {
		return failure.Usage("the answer to this question is yes or no", "")
	}
	o.given = &a
	o.leave()
	return nil
}
