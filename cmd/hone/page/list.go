package page

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

// Counts returns how many runs ended with each result, in the order of the list.
func (f Folder) Counts() (counts []struct {
	Mark, Result string
	Runs         int
}) {
	at := map[string]int{}
	for _, r := range f.Runs {
		i, ok := at[r.Result]
		if !ok {
			i = len(counts)
			at[r.Result] = i
			counts = append(counts, struct {
				Mark, Result string
				Runs         int
			}{r.Mark, r.Result, 0})
		}
		counts[i].Runs++
	}
	return counts
}

// Run is a run in the list.
type Run struct {
	ID, Link     string
	Mark, Result string
	Loop, About  string
	Model        string
	Ticks        []Tick  // one for each round
	Points       []Point // the findings that the rounds left
	Findings     string  // the number that is left; empty if unknown
	Tokens, Cost string
	Share        float64 // of the budget of tokens, from 0 to 1; 0 if there is none
	Took         string  // active time
	Age, When    string
}

// Tick is a round in the strip of a run.
type Tick struct{ Mark, Title string }

// maxTicks is how many rounds a strip shows. The ones in the middle are left out.
const maxTicks = 24

// Strip returns the ticks to show, and how many are left out between First and Last.
func (r Run) Strip() (strip struct {
	First, Last []Tick
	Hidden      int
}) {
	if strip.First = r.Ticks; len(r.Ticks) > maxTicks {
		strip.First, strip.Last = r.Ticks[:maxTicks/2], r.Ticks[len(r.Ticks)-maxTicks/2:]
		strip.Hidden = len(r.Ticks) - maxTicks
	}
	return strip
}
