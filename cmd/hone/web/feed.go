package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"hone/cmd/hone/page"
)

// feed is a page with viewers. It is read once for all of them.
type feed struct {
	source Source
	name   string
	epoch  string // of the feed: numbers of another one's changes mean nothing

	users int       // guarded by Server.mu
	left  time.Time // when the last one left; guarded by Server.mu

	mu    sync.Mutex
	state string // of the source when it was read
	last  reading
}

// reading is a page as it was read last.
type reading struct {
	epoch   string
	n       int // how often the page has changed
	view    View
	changed map[string]int // by a part's ID: the change in which it became what it is
}

// id names the reading, as Last-Event-ID does.
func (r reading) id() string { return r.epoch + "-" + strconv.Itoa(r.n) }

// since returns the parts that changed after a reading.
func (r reading) since(id string) []page.Part {
	after := -1
	if epoch, n, ok := strings.Cut(id, "-"); ok && epoch == r.epoch {
		if number, err := strconv.Atoi(n); err == nil {
			after = number
		}
	}
	var parts []page.Part
	for _, p := range r.view.Parts {
		if r.changed[p.ID] > after {
			parts = append(parts, p)
		}
	}
	return parts
}

// keepTime is how long a feed outlives its users, so that the stream of a page that was
// just loaded continues with the numbers that the page has.
const keepTime = time.Minute

// open returns the feed of a page. The caller closes it.
func (s *Server) open(name string) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.feeds, func(_ string, f *feed) bool { return f.users == 0 && time.Since(f.left) > keepTime })
	f := s.feeds[name]
	if f == nil {
		f = &feed{source: s.source, name: name, epoch: rand.Text()[:8]}
		s.feeds[name] = f
	}
	f.users++
	return f
}

// close ends a use of a feed.
func (s *Server) close(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.users--
	f.left = time.Now()
}

// read returns the page as it is now. It reads the source only if that has changed.
func (f *feed) read(ctx context.Context) (reading, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state, err := f.source.State(f.name)
	if err != nil || state == f.state && f.last.changed != nil {
		return f.last, err
	}
	view, err := f.source.View(ctx, f.name)
	if err != nil {
		return reading{}, err
	}
	next := reading{epoch: f.epoch, n: f.last.n + 1, view: view, changed: map[string]int{}}
	before := map[string]string{}
	for _, p := range f.last.view.Parts {
		before[p.ID] = p.HTML
	}
	for _, p := range view.Parts {
		if next.changed[p.ID] = next.n; before[p.ID] == p.HTML {
			next.changed[p.ID] = f.last.changed[p.ID]
		}
	}
	f.state, f.last = state, next
	return next, nil
}

const (
	pollTime   = 300 * time.Millisecond // between two looks at the source
	writeTime  = 10 * time.Second       // for a reader to take what it is sent
	aliveTime  = 15 * time.Second       // after which an idle stream is written to
	maxViewers = 256                    // streams at a time
)

// stream sends the parts of a page that change, until the reader goes away. Each message
// has the number of the change, from which a reader that was cut off continues.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	name, seen := r.PathValue("name"), r.URL.Query().Get("after")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		seen = id
	}
	f := s.open(name)
	defer s.close(f)
	w.Header().Set("Content-Type", "text/event-stream")
	out := writer{w: w, control: http.NewResponseController(w), sent: time.Now()}
	if out.write(": hone\n\n") != nil {
		return
	}
	for {
		began := time.Now()
		got, err := f.read(r.Context())
		if errors.Is(err, ErrNotFound) || r.Context().Err() != nil {
			return
		}
		if err == nil && got.id() != seen {
			if err = out.send(got.id(), got.since(seen)); err != nil {
				return
			}
			seen = got.id()
		} else if out.idle() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.done:
			return
		case <-time.After(max(pollTime, 4*time.Since(began))): // a page that is slow to read is read less often
		}
	}
}

// enter counts a viewer. It returns false if there are too many.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers >= maxViewers {
		return false
	}
	s.viewers++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewers--
}

// writer writes a stream.
type writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sent    time.Time
}

// write writes a text. A reader that does not take it in time is given up.
func (o *writer) write(text string) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	o.sent = time.Now()
	return o.control.Flush()
}

// send sends parts.
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

// idle writes a comment if nothing was written for a while, to find out whether the
// reader is still there.
func (o *writer) idle() error {
	if time.Since(o.sent) < aliveTime {
		return nil
	}
	return o.write(": \n\n")
}
