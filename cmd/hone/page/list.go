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

// Run is a run in the list.
type Run struct {
	ID, Link     string
	Mark, Result string
	Loop, About  string
	Model        string
	Ticks        []Tick  // one for each round
	Points       []Point // the findings that the rounds left
	Findings     string  // that are left; empty if that is not known
	Tokens, Cost string
	Share        float64 // of the budget of tokens, from 0 to 1; 0 if there is none
	Took         string  // active time
	Age, When    string
}

// Tick is a round in the strip of a run.
type Tick struct{ Mark, Title string }

// maxTicks is how many rounds a strip shows. The ones in the middle are left out.
const maxTicks = 24

// Strip returns the ticks that are shown, and how many are left out before the last
// half of them.
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
