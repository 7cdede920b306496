package screen_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/crashtest/waittest"
	"hone/journal"
	"hone/story"
)

// eventAt returns an event of a time.
func eventAt(at time.Time, e journal.Entry) history.Event {
	return history.Event{Event: journal.Event{Type: e.Type, Phase: e.Phase, Step: e.Step, Time: at}, Payload: e.Payload}
}

func retry(n, limit int, wait time.Duration) journal.Entry {
	return journal.Entry{Type: "retry", Payload: history.Retried{Attempt: n, Limit: limit, Error: "overloaded (HTTP 503): no room", Wait: wait.Milliseconds()}}
}

// TestOutageIsTwoLines: without a terminal an outage is a line when it begins, and one
// when it ends, however many attempts there were; one of less than a minute is one line.
func TestOutageIsTwoLines(t *testing.T) {
	start := time.Date(2026, 3, 1, 2, 14, 0, 0, time.Local)
	reply := journal.Entry{Type: "reply", Phase: journal.Record, Step: at(1, "editor"), Payload: history.Replied{Model: "m"}}
	show := func(o screen.Options, last time.Time) string {
		out := newBuffer()
		s := screen.New(out, o)
		for i := range 100 {
			wait := time.Second
			if i == 99 {
				wait = last.Sub(start)
			}
			s.Show(eventAt(start, retry(i, 0, wait)))
		}
		s.Show(eventAt(last, reply))
		s.Close()
		return out.String()
	}
	begins := "  ! overloaded (HTTP 503): no room; trying again in 1.0s, then until the model replies\n"
	ends := "  ! the model replies again after an outage from 02:14 to 02:51 (37m00s, 100 attempts): overloaded (HTTP 503): no room\n"
	for _, o := range []screen.Options{{}, {Quiet: true}, {Options: story.Options{Verbose: true}}, {Options: story.Options{Whole: true}}} {
		if got := show(o, start.Add(37*time.Minute)); !strings.HasPrefix(got, begins) || !strings.Contains(got, ends) || strings.Count(got, "503") != 2 {
			t.Errorf("%+v: the screen shows\n%s", o, got)
		}
		if got := show(o, start.Add(59*time.Second)); !strings.HasPrefix(got, begins) || strings.Count(got, "503") != 1 {
			t.Errorf("%+v: after 59 s the screen shows\n%s", o, got)
		}
	}
}

// TestWaitSaysSinceWhen: on a terminal the wait says since when there was no reply.
func TestWaitSaysSinceWhen(t *testing.T) {
	out := newBuffer()
	s := screen.New(out, screen.Options{Size: size(120, 24), Followed: true})
	defer s.Close()
	now := time.Now()
	since := now.Add(-12 * time.Minute)
	feed(t, s, askedModel(1))
	s.Show(eventAt(since, retry(0, 0, 0)))
	s.Show(eventAt(now, retry(7, 0, time.Hour)))
	want := regexp.MustCompile(fmt.Sprintf(`⏸ no reply since %s \(12m\d\ds\) · try 9 in (60:00|59:\d\d) · overloaded \(HTTP 503\): no room\n`, since.Format("15:04")))
	for late := time.After(waittest.Limit); !want.MatchString(terminal(out.String(), 120)); {
		select {
		case <-out.writes:
		case <-late:
			t.Fatalf("the screen shows\n%s", terminal(out.String(), 120))
		}
	}
}
