package rounds

import (
	"fmt"
	"time"

	"hone/history"
	"hone/internal/render"
)

// OutageText says when and why a model did not answer. The text is not safe to print.
func OutageText(o history.Outage, now time.Time) string {
	when := "since " + o.Since.Local().Format("15:04")
	if !o.Until.IsZero() {
		when = fmt.Sprintf("from %s to %s", o.Since.Local().Format("15:04"), o.Until.Local().Format("15:04"))
	}
	return fmt.Sprintf("no answer %s (%s, %s): %s", when, render.Duration(o.Lasted(now)), render.Count(o.Tries, "attempt"), o.Error)
}

// OutagesText says when and why models did not answer, in one line; empty if all
// answered within a minute. The text is not safe to print.
func OutagesText(events []history.Event, now time.Time) string {
	all := history.Outages(events, now)
	switch len(all) {
	case 0:
		return ""
	case 1:
		return OutageText(all[0], now)
	}
	longest, sum := all[0], time.Duration(0)
	for _, o := range all {
		sum += o.Lasted(now)
		if o.Lasted(now) > longest.Lasted(now) {
			longest = o
		}
	}
	return fmt.Sprintf("no answer %d times, %s in all; the longest time: %s", len(all), render.Duration(sum), OutageText(longest, now))
}
