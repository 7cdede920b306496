package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"hone/cmd/hone/page"
)

// Actor performs the actions of the forms on the pages of runs. Its methods may be called from
// several goroutines.
type Actor interface {
	// Act starts an action on a run, and does not wait for its end. The page of the run shows
	// the result, or why the action was refused. The error is [ErrNotFound] if the run or the
	// action does not exist.
	Act(ctx context.Context, run, action string, form url.Values) error
	// Preview returns a page that shows what an action would do. It changes nothing. The error
	// is [ErrNotFound] as in Act, or [ErrRefused].
	Preview(ctx context.Context, run, action string, form url.Values) (View, error)
}

// ErrRefused means that the action was refused; the page of the run says why.
var ErrRefused = errors.New("it was refused")

// Allow lets the user act. Without Allow, or with nil, the server refuses all actions. Call
// it before [Server.Serve].
func (s *Server) Allow(actor Actor) { s.actor = actor }

// maxForm is the maximum size of a form in bytes.
const maxForm = 64 << 10

// actions adds the handlers of actions.
func (s *Server) actions(mux *http.ServeMux) {
	mux.Handle("POST /act/{action}/{name...}", s.allowed(s.act))
	mux.Handle("GET /preview/{action}/{name...}", s.allowed(s.preview))
}

// allowed refuses requests if the user may not act on this server, and reads their forms.
func (s *Server) allowed(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.actor == nil {
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
		next(w, r)
	})
}

// act starts an action, and sends the browser back to the page of the run.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	if err := s.actor.Act(r.Context(), r.PathValue("name"), r.PathValue("action"), r.PostForm); err != nil {
		s.refuse(w, err)
		return
	}
	s.toRun(w, r)
}

// toRun sends the browser to the page of the run that a request is about.
func (s *Server) toRun(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, (&url.URL{Path: s.root + pathOf(r.PathValue("name"))}).EscapedPath(), http.StatusSeeOther)
}

// preview serves the page that shows what an action would do.
func (s *Server) preview(w http.ResponseWriter, r *http.Request) {
	v, err := s.actor.Preview(r.Context(), r.PathValue("name"), r.PathValue("action"), r.Form)
	switch {
	case errors.Is(err, ErrRefused):
		s.toRun(w, r)
		return
	case err != nil:
		s.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = s.pages.Serve(w, page.Served{Title: v.Title, Version: s.version, Place: v.Place, Parts: v.Parts})
}
