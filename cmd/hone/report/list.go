package report

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/story"
)

// Summary is one run in the list.
type Summary struct {
	Run    string `json:"run"`
	Loop   string `json:"loop"`
	Model  string `json:"model"`
	Result string `json:"result"` // "running" or "died" if it has no end
	Exit   *int   `json:"exit,omitempty"`
	story.Numbers
	When    time.Time `json:"when"`
	Subject string    `json:"subject,omitempty"` // such as the task's words
	Models  []string  `json:"models,omitempty"`  // as [kinds.ModelNames] words them
	// Attempts are the runs that it started in copies of the directory; nil if it is no run
	// of attempts.
	Attempts []history.Attempt `json:"attempts,omitempty"`
	// Foreign means that the user recorded the run neither here nor accepted it.
	Foreign bool `json:"foreign,omitempty"`

	Standing story.Standing `json:"-"`
	Past     *history.Past  `json:"-"` // nil if the journal is unreadable
}

// Table returns a line for each run and attempt, below a heading.
func Table(all []Summary, c render.Colours) []string {
	rows := [][]string{{"ID", "RESULT", "LOOP", "ROUNDS", "TOKENS", "AGE", "TASK"}}
	for _, s := range all {
		result, age := s.Standing.Line(c), render.Age(s.When, time.Now())
		if s.Foreign {
			result += ", foreign"
		}
		rows = append(rows, []string{render.Line(journal.ShortRun(s.Run)), result, render.Line(s.Loop), fmt.Sprint(s.Rounds), s.TokensText(), age, render.Line(s.Subject)})
		for _, one := range s.Attempts { // which are as old
			standing := story.AttemptStanding(one, s.Result == "running")
			rows = append(rows, []string{" " + render.Line(journal.ShortRun(one.Run)), standing.Line(c), fmt.Sprintf("attempt %d", one.Number),
				fmt.Sprint(one.Rounds), render.Short(one.Tokens), "", render.Line(story.ModelName(one.Model))})
		}
	}
	return render.Aligned(rows, false, false, false, true, true, true)
}

// Summarize returns the summary of a run, even if its journal is unreadable. working means that
// a process works on the run. foreign is that of [runs.Foreign]; nil means that it does not
// matter whose run it is.
func Summarize(home *journal.Home, run string, working bool, foreign func(string, []journal.Event) int64) Summary {
	s := Summary{Run: run, Result: "damaged"}
	events, err := home.Read(run)
	if runs.OtherVersion(err) != "" {
		s.Result = "other version"
	}
	s.Standing = story.Standing{Mark: story.Failed, Result: s.Result, Text: s.Result}
	if err != nil || len(events) == 0 {
		return s
	}
	if start, err := runs.Started(run, events); err == nil {
		s.Loop, s.Model = start.Loop, start.Model
		l := kinds.Recorded(start)
		s.Subject, s.Models = kinds.Subject(l), kinds.ModelNames(l, start)
	}
	s.When = events[0].Time
	s.Foreign = foreign != nil && foreign(run, events) != 0
	s.Past = history.Read(events)
	s.Numbers = story.NumbersOf(s.Past, attempts.Spent(home, run, s.Past), time.Duration(s.Past.Last().Active)*time.Millisecond)
	s.Standing, s.Attempts = story.StandingOf(s.Past, working), s.Past.Attempts()
	s.Result = s.Standing.Result
	if now := s.Past.Facts(); now.Ended {
		exit := failure.ExitStatus(now.End.Kind)
		s.Exit = &exit
	}
	return s
}

// Use says how much disk space the runs of a directory need.
type Use struct {
	Runs int    `json:"runs"`
	Size int64  `json:"size"` // bytes; 0 means unknown
	Home string `json:"home"`
}

// UseOf returns how much disk space the runs of a home need.
func UseOf(home *journal.Home) (Use, error) {
	ids, err := home.Runs()
	size, sizeErr := home.TotalSize()
	return Use{len(ids), size, home.Dir()}, errors.Join(err, sizeErr)
}

func (u Use) String() string {
	if u.Size == 0 {
		return fmt.Sprintf("%s in %s", render.Count(u.Runs, "run"), HomeText(u.Home))
	}
	return fmt.Sprintf("%s · %s in %s", render.Count(u.Runs, "run"), render.Bytes(u.Size), HomeText(u.Home))
}

// HomeText returns the name of a home in the workspace, and the path of any other.
func HomeText(home string) string {
	if filepath.Base(home) == journal.HomeName {
		return journal.HomeName
	}
	return render.Line(home)
}
