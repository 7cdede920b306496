package history

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Score is what a round measured in a run with a number as its judge, and the best so far.
type Score struct {
	Name    string  `json:"name"`
	Lower   bool    `json:"lower,omitempty"` // the lower, the better
	First   float64 `json:"first"`           // the number of the tree before the first round
	Best    float64 `json:"best"`            // of the tree that the round left: the median of its last measurement
	Noise   float64 `json:"noise"`           // how far the 95 % confidence interval of Best reaches from it, as a part of it
	Samples int     `json:"samples"`         // of a measurement
	Values  int     `json:"values"`          // how many values of the name one output has
	Tried   int     `json:"tried,omitempty"` // how many rounds have been judged, this one included
	Gains   int     `json:"gains,omitempty"` // how many of them were kept
	// Kept means that the round's change is the best now; Why is why it is not, empty before the
	// first round.
	Kept bool   `json:"kept,omitempty"`
	Why  string `json:"why,omitempty"`
	Idea string `json:"idea,omitempty"` // the model's last words about the change
	// Value is the number of the round's change, the median of New; nil if it was not measured.
	Value *float64 `json:"value,omitempty"`
	// New and Old are the samples of the change and of the best so far, measured in turn;
	// before the first round New are those of the tree.
	New   []float64          `json:"new,omitempty"`
	Old   []float64          `json:"old,omitempty"`
	P     float64            `json:"p,omitempty"`     // of the test that decided
	Shown map[string]float64 `json:"shown,omitempty"` // the other numbers, each a median
	// Profile is the beginning of what the user's profile printed of the tree, if it is the best now.
	Profile string `json:"profile,omitempty"`
}

// NothingChanged is why a round without a change has no number.
const NothingChanged = "nothing was changed"

// Next returns the score of a round that has measured nothing yet, when s is that of the
// best so far.
func (s Score) Next() Score {
	return Score{Name: s.Name, Lower: s.Lower, First: s.First, Best: s.Best, Noise: s.Noise, Samples: s.Samples, Values: s.Values, Tried: s.Tried + 1, Gains: s.Gains}
}

// Gain returns how much better a number is than another, in percent; negative if it is worse.
func (s Score) Gain(from, to float64) float64 {
	if from == 0 {
		return 0
	}
	gain := (from - to) / math.Abs(from) * 100
	if !s.Lower {
		gain = -gain
	}
	return gain
}

// Better reports whether a number is better than another.
func (s Score) Better(a, b float64) bool { return a != b && (a < b) == s.Lower }

// Change says in a few words what the run has gained, such as "p95_ms 812 → 690 (−15 % ± 1.2 %)".
func (s Score) Change() string {
	if s.First == s.Best {
		return fmt.Sprintf("%s %s ± %s %%", s.Name, Figure(s.Best), Part(s.Noise*100))
	}
	return fmt.Sprintf("%s %s → %s (%s ± %s %%)", s.Name, Figure(s.First), Figure(s.Best), percent(s.First, s.Best), Part(s.Noise*100))
}

// Tally says what the run has gained, and how many of its changes were kept.
func (s Score) Tally() string {
	if s.Tried == 0 {
		return s.Change()
	}
	return fmt.Sprintf("%s, %d kept of %d", s.Change(), s.Gains, s.Tried)
}

// Verdict says in a few words what became of the round's change.
func (s Score) Verdict() string {
	text := ""
	if s.Value != nil {
		text = Figure(*s.Value)
		if len(s.Old) > 0 {
			old := Median(s.Old)
			text = fmt.Sprintf("%s → %s (%s)", Figure(old), text, percent(old, *s.Value))
		}
	}
	switch {
	case s.Kept:
		return s.Name + " " + text + ", kept"
	case s.Why == "": // at the start
		return s.Change()
	case s.Why == NothingChanged:
		return s.Why
	case text == "":
		return "taken back: " + s.Why
	}
	return s.Name + " " + text + ", taken back: " + s.Why
}

func percent(from, to float64) string {
	if from == 0 {
		return "from 0"
	}
	change := (to - from) / math.Abs(from) * 100
	sign := "+"
	if change < 0 {
		sign, change = "−", -change
	}
	return sign + Part(change) + " %"
}

// Part returns a percentage: whole from 10 on.
func Part(percent float64) string {
	if percent >= 10 {
		return strconv.FormatFloat(percent, 'f', 0, 64)
	}
	return strconv.FormatFloat(math.Round(percent*10)/10, 'f', -1, 64)
}

// Figure returns a number with four digits that count, or more before the point.
func Figure(v float64) string {
	if a := math.Abs(v); a >= 1000 && a < 1e15 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Median returns the median of samples, of which there is one at least.
func Median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ShownNames returns the names of the other numbers, sorted.
func (s Score) ShownNames() []string { return slices.Sorted(maps.Keys(s.Shown)) }
