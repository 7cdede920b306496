package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/report"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/story"
)

// List is what the page of runs says.
type List struct {
	Folders     []Folder
	Evaluations []Link
}

// Folder is a workspace with its runs, the newest first.
type Folder struct {
	Name string
	Note string // such as how much disk space the runs need
	Runs []Run
}

// Count is how many runs ended with a result.
type Count struct {
	story.Standing
	Runs int
}

// Counts returns how many runs ended with each result, in the order of the list.
func (l List) Counts() (counts []Count) {
	for _, f := range l.Folders {
		for _, r := range f.Runs {
			i := slices.IndexFunc(counts, func(c Count) bool { return c.Text == r.Standing.Text })
			if i < 0 {
				i, counts = len(counts), append(counts, Count{r.Standing, 0})
			}
			counts[i].Runs++
		}
	}
	return counts
}

// Several reports whether the list has runs of several folders.
func (l List) Several() bool { return len(l.Folders) > 1 }

// Trend is what the runs of a loop with the same models have in common.
type Trend struct {
	Loop, Models string
	Runs, Done   int
	story.Numbers
}

// Percent returns how many of a hundred runs are done.
func (t Trend) Percent() int { return 100 * t.Done / t.Runs }

// Mean returns the figures of one run: its share of the sums.
func (t Trend) Mean() story.Numbers {
	n := story.Numbers{Tokens: t.Tokens / int64(t.Runs), Unconfirmed: t.Unconfirmed / int64(t.Runs), Active: t.Active / time.Duration(t.Runs)}
	if t.Cost != nil {
		n.Cost = new(*t.Cost / float64(t.Runs))
	}
	return n
}

// Trends returns the runs that have ended, by loop and models, in the order of the list; nil if
// no two runs have these in common.
func (l List) Trends() (trends []Trend) {
	most := 0
	for _, f := range l.Folders {
		for _, r := range f.Runs {
			if r.Exit == nil {
				continue
			}
			i := slices.IndexFunc(trends, func(t Trend) bool { return t.Loop == r.Loop && t.Models == r.ModelNames() })
			if i < 0 {
				i, trends = len(trends), append(trends, Trend{Loop: r.Loop, Models: r.ModelNames(), Numbers: story.Numbers{Cost: new(0.0)}})
			}
			t := &trends[i]
			if t.Runs++; *r.Exit == 0 {
				t.Done++
			}
			t.Tokens, t.Unconfirmed, t.Active = t.Tokens+r.Tokens, t.Unconfirmed+r.Unconfirmed, t.Active+r.Active
			if r.Cost == nil || t.Cost == nil {
				t.Cost = nil
			} else {
				t.Cost = new(*t.Cost + *r.Cost)
			}
			most = max(most, t.Runs)
		}
	}
	if most < 2 {
		return nil
	}
	return trends
}

// Run is a run in the list.
type Run struct {
	report.Summary
	Link  string
	First *int   // how many findings the first round that was checked left; nil if none was
	Ticks []Tick // one for each round
}

// RunOf returns a run in the list.
func RunOf(s report.Summary) Run {
	r := Run{Summary: s, Link: "/run/" + s.Run}
	if s.Past == nil {
		return r
	}
	for _, one := range story.RoundsOf(s.Past.Events(), nil, nil, s.Result == "running") {
		if one.Checked() && r.First == nil {
			r.First = new(one.Left())
		}
		if one.Number > 0 {
			r.Ticks = append(r.Ticks, Tick{string(one.Outcome), one.Name() + ": " + one.Verdict})
		}
	}
	return r
}

// ID returns the short name of the run.
func (r Run) ID() string { return journal.ShortRun(r.Run) }

// ModelNames returns the names of its models.
func (r Run) ModelNames() string { return strings.Join(r.Models, " · ") }

// Left returns how many findings the first and the last checked round left, such as 60→0;
// empty if that is unknown.
func (r Run) Left() string {
	switch {
	case r.Findings == nil:
		return ""
	case r.First == nil || *r.First == *r.Findings:
		return fmt.Sprint(*r.Findings)
	}
	return fmt.Sprintf("%d→%d", *r.First, *r.Findings)
}

// Started returns when the run began; empty if that is unknown.
func (r Run) Started() string {
	if r.When.IsZero() {
		return ""
	}
	return r.When.Local().Format(time.DateTime)
}

// Age returns how long ago that was.
func (r Run) Age() string { return render.Age(r.When, time.Now()) }

// Tick is a round in the strip of a run.
type Tick struct{ Mark, Title string }

// Attempt is one of several attempts at the same task.
type Attempt struct {
	Number  int  // 1 is the first
	Applied bool // its changes are in the tree
	Why     string
	Take    string // the command that applies it in place of another; empty if it cannot be
	Run
}

// AttemptsOf returns the attempts of a run; nil if it has none. row reads the run of an attempt
// from the home in its copy, as a list shows it. If the copy was deleted, there is what the run
// itself knows of the attempt.
func AttemptsOf(a report.Account, row func(history.Attempt, *journal.Home) Run) (all []Attempt) {
	applied, _, err := attempts.Applied(a.Home, a.ID, "")
	for _, last := range a.Past.Attempts() {
		one := Attempt{Number: last.Number, Applied: last.Applied}
		one.Why, _, _ = strings.Cut(last.Why, "\n")
		if err == nil { // as it is now
			one.Applied = last.Number == applied
		}
		if home := report.Copy(last); home != nil {
			one.Run = row(last, home)
			home.Close()
		} else {
			one.Run.Summary = report.Summary{Run: last.Run, Numbers: story.Numbers{Tokens: last.Tokens, Findings: last.Findings}, Standing: story.AttemptStanding(last, a.Working)}
		}
		one.Models = []string{story.ModelName(last.Model)}
		if !one.Applied && !a.Working && last.Run != "" {
			one.Take = "hone take " + journal.ShortRun(last.Run) + failure.Elsewhere(a.Home.Workspace())
		}
		all = append(all, one)
	}
	return all
}
