package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hone/cmd/hone/page"
)

// maxRounds is how many rounds a page shows. Browsers are slow with thousands of diffs.
const maxRounds = 30

// ShownRound returns the run of a page, and a round on it; -1 for the page of the last rounds.
func ShownRound(name string) (run string, round int) {
	run, number, _ := strings.Cut(name, "/round/")
	round, err := strconv.Atoi(number)
	if err != nil || round < 0 {
		return name, -1
	}
	return run, round
}

// Windows returns the rounds on a page, and links to the pages of the others; no links if
// all rounds fit on one page.
func Windows(rounds []page.Round, run string, round int) (shown page.Window, links []page.Link) {
	if len(rounds) <= maxRounds {
		return shown, nil
	}
	at := slices.IndexFunc(rounds, func(r page.Round) bool { return r.Number == round })
	link := func(text, address string, here bool) {
		if here {
			address = ""
		}
		links = append(links, page.Link{Text: text, Address: address})
	}
	for from := 0; from < len(rounds); from += maxRounds {
		w := page.Window{From: from, To: min(from+maxRounds, len(rounds))}
		here := at >= w.From && at < w.To
		if here {
			shown = w
		}
		first, last := rounds[w.From].Number, rounds[w.To-1].Number
		text := fmt.Sprintf("%d–%d", first, last)
		if first == last {
			text = strconv.Itoa(first)
		}
		link(text, fmt.Sprintf("/run/%s/round/%d", run, first), here)
	}
	if at < 0 {
		shown = page.Window{From: len(rounds) - maxRounds, To: len(rounds)}
	}
	link(fmt.Sprintf("last %d", maxRounds), "/run/"+run, at < 0)
	return shown, links
}
