package view

import (
	"strings"
	"time"

	"hone/cmd/hone/page"
	"hone/cmd/hone/report"
	"hone/internal/render"
	"hone/journal"
)

// Row returns a run in the list, without its age.
func Row(s report.Summary) page.Run {
	row := page.Run{ID: journal.ShortRun(s.Run), Link: "/run/" + s.Run, Mark: string(s.Standing.Mark), Result: s.Standing.Text, Loop: s.Loop, About: s.Subject,
		Model: strings.Join(s.Models, " · ")}
	if s.Past == nil {
		return row
	}
	row.Tokens, row.When, row.Took = render.Short(s.Tokens), s.When.Local().Format(time.DateTime), render.Duration(time.Duration(s.Past.Last().Active)*time.Millisecond)
	row.Ticks, row.Points = Strip(s.Past.Events())
	if s.Cost != nil {
		row.Cost = render.Cost(s.Cost, s.Unconfirmed > 0)
	}
	if limit := s.Past.Limits().Tokens; limit > 0 {
		row.Share = min(1, float64(s.Tokens)/float64(limit))
	}
	if n := len(row.Points); n > 0 {
		row.Findings = render.Count(row.Points[n-1].Left, "finding")
	}
	return row
}
