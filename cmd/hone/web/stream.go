package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"hone/cmd/hone/page"
)

const (
	pollTime   = 300 * time.Millisecond // between two looks at the page
	writeTime  = 10 * time.Second       // for a reader to take what it is sent
	aliveTime  = 15 * time.Second       // after which an idle stream is written to
	maxViewers = 256                    // streams at a time
)

// The id of each message names all parts that the reader has then, so that one that was cut off continues.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case s.viewers <- struct{}{}:
		defer func() { <-s.viewers }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	name, seen := r.PathValue("name"), r.URL.Query().Get("after")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		seen = id
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := writer{w: w, control: http.NewResponseController(w)}
	if out.write(": hone\n\n") != nil {
		return
	}
	for {
		began := time.Now()
		got, err := s.read(r.Context(), name)
		if errors.Is(err, errNotFound) || r.Context().Err() != nil {
			return
		}
		switch id := got.id(); {
		case err == nil && id != seen:
			err, seen = out.send(id, got.since(seen)), id
		case time.Since(out.sent) >= aliveTime:
			err = out.write(": \n\n")
		default:
			err = nil
		}
		if err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		case <-time.After(max(pollTime, 4*time.Since(began))): // a page that is slow to read is read less often
		}
	}
}

type writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sent    time.Time
}

// A reader that does not take the text in time is given up.
func (o *writer) write(text string) error {
	o.sent = time.Now()
	if err := o.control.SetWriteDeadline(o.sent.Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	return o.control.Flush()
}

func (o *writer) send(id string, parts []page.Part) error {
	type element struct {
		ID   string `json:"id"`
		HTML string `json:"html"`
	}
	list := []element{}
	for _, p := range parts {
		list = append(list, element(p))
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return o.write(fmt.Sprintf("id: %s\ndata: %s\n\n", id, data))
}
