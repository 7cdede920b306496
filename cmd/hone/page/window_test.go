package page

import (
	"fmt"
	"testing"

	"hone/story"
)

// TestWindows: a page shows the last rounds, or those around the one that it names, and
// each round is on one of the linked pages.
func TestWindows(t *testing.T) {
	t.Parallel()
	rounds := func(n int) (list []Round) {
		for i := range n {
			list = append(list, Round{Round: story.Round{Number: i}})
		}
		return list
	}
	for _, c := range []struct {
		rounds, round, from, to, links int
		here                           string
	}{
		{0, -1, 0, 0, 0, ""},
		{30, -1, 0, 0, 0, ""},
		{30, 5, 0, 0, 0, ""},
		{31, -1, 1, 31, 3, "last 30"},
		{31, 0, 0, 30, 3, "0–29"},
		{31, 30, 30, 31, 3, "30"},
		{95, 31, 30, 60, 5, "30–59"},
		{95, 200, 65, 95, 5, "last 30"},
	} {
		shown, links := Windows(rounds(c.rounds), "R", c.round)
		here := ""
		for _, l := range links {
			if l.Address == "" {
				here += l.Text
			}
		}
		if shown != (Window{From: c.from, To: c.to}) || len(links) != c.links || here != c.here {
			t.Errorf("%d rounds, round %d: %v, here %q, %v", c.rounds, c.round, shown, here, links)
		}
	}
	_, links := Windows(rounds(95), "R", -1)
	for i, want := range []string{"/run/R/round/0", "/run/R/round/30", "/run/R/round/60", "/run/R/round/90"} {
		if links[i].Address != want {
			t.Errorf("link %d leads to %s", i, links[i].Address)
		}
	}
	for name, want := range map[string]string{"R": "R -1", "R/round/7": "R 7", "R/round/x": "R/round/x -1", "R/round/-2": "R/round/-2 -1", "R/round/": "R/round/ -1"} {
		if run, round := ShownRound(name); fmt.Sprint(run, " ", round) != want {
			t.Errorf("%s: %s, %d", name, run, round)
		}
	}
}
