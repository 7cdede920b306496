package rounds

import (
	"fmt"
	"time"

	"hone/history"
	"hone/internal/render"
)

// OutageText returns when and why a model did not reply. The text is not safe to print.
func OutageText(o history.Outage, now time.Time) string {
	when := "since " + o.Since.Local().Format("15:04")
	if !o.Until.IsZero() {
		when = fmt.Sprintf("from %s to %s", o.Since.Local().Format("15:04"), o.Until.Local().Format("15:04"))
	}
	return fmt.Sprintf("outage %s (%s, %s): %s", when, render.Duration(o.Lasted(now)), render.Count(o.Tries, "attempt"), o.Error)
}

// OutagesText returns when and why models did not reply, in one line; empty if no outage
// lasted a minute. The text is not safe to print.
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
	return fmt.Sprintf("%d outages, %s in all; longest %s", len(all), render.Duration(sum), OutageText(longest, now))
}
