package view

import (
	"fmt"

	"hone/check"
	"hone/cmd/hone/page"
	"hone/cmd/hone/rounds"
)

// Findings compares the blocking findings of each round with those of the round before. The
// zero value is ready to use.
type Findings struct {
	since map[string]string // the rounds that left the last findings first, by [check.Key]
	known bool              // the check looked in the last round
}

// Next returns the blocking findings of the next round. If the round before was checked,
// change says how they differ from its findings. checked says whether this round was checked.
func (f *Findings) Next(r rounds.Round, checked bool) (list []page.Finding, change string) {
	now, came := map[string]string{}, 0
	for _, one := range r.Findings {
		if !one.Blocks() {
			continue
		}
		key := check.Key(one)
		first, old := f.since[key]
		shown := page.Finding{Name: sourceOf(one), Text: one.Text, New: f.known && !old, Since: first}
		if shown.New {
			came++
		}
		if now[key] = nameOf(r); old {
			now[key] = first
		}
		list = append(list, shown)
	}
	stayed := 0
	for key := range now {
		if _, old := f.since[key]; old {
			stayed++
		}
	}
	if f.known {
		change = fmt.Sprintf("%d new, %d as before, %d gone", came, stayed, len(f.since)-stayed)
	}
	if f.known = checked; checked || len(list) > 0 { // a round that was cut short leaves what was there
		f.since = now
	}
	return list, change
}

// nameOf names a round, or the check before the first.
func nameOf(r rounds.Round) string {
	if r.Number == 0 {
		return "the start"
	}
	return r.Name()
}

// sourceOf says where a finding comes from.
func sourceOf(f check.Finding) string {
	if f.File == "" {
		return f.Source
	}
	return f.Source + ", " + f.Place()
}
