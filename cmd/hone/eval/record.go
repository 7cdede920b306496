package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"hone/group"
	"hone/internal/artifact"
	"hone/internal/render"
	"hone/loop"
)

// Result is the result of one try. A record has one in each line.
type Result struct {
	Key       string    `json:"key"` // of what was tried; see [Try]
	Case      string    `json:"case"`
	Model     string    `json:"model"`
	Time      int       `json:"time"` // 1 is the first
	Passed    bool      `json:"passed"`
	Kind      string    `json:"result"` // how the run ended, such as "done" or "rounds"; "judge" if only the judge failed; or [Already]
	Why       string    `json:"why"`
	Rounds    int       `json:"rounds"`
	Tokens    int64     `json:"tokens"`         // unconfirmed ones included
	Cost      *float64  `json:"cost,omitempty"` // USD; nil if it is not known
	Gain      *float64  `json:"gain,omitempty"` // of a run with a number as its judge, in percent; nil if nothing was measured
	Malformed int       `json:"malformed"`      // replies that hone could not read, or had a call that it could not read
	Refused   int       `json:"refused"`        // replies with an edit that hone did not make
	Seconds   float64   `json:"seconds"`        // of active time
	Run       string    `json:"run"`
	Hone      string    `json:"hone"` // the version that ran it
	At        time.Time `json:"at"`
}

// Already is the kind of a result that does not count, because the check passes without a
// model.
const Already = "already"

func (r Result) active() time.Duration { return time.Duration(r.Seconds * float64(time.Second)) }

func (r Result) used() group.Amount {
	a := group.Amount{Tokens: r.Tokens, Time: r.active()}
	if r.Cost != nil {
		a.Cost = group.Dollars(*r.Cost)
	}
	return a
}

// Line returns a result in a few words.
func (r Result) Line() string {
	verdict := "passed"
	if !r.Passed {
		why, _, _ := strings.Cut(r.Why, "\n")
		verdict = "failed: " + render.Line(why)
	}
	if r.Kind == Already {
		verdict = "does not count: " + r.Why
	}
	if r.Gain != nil {
		verdict += fmt.Sprintf(", gain %.1f %%", *r.Gain)
	}
	figures := append([]string{render.Count(r.Rounds, "round"), render.Duration(r.active())}, render.UsageParts(r.Tokens, 0, r.Cost, render.Tokens)...)
	return fmt.Sprintf("%s (%s)", verdict, strings.Join(figures, ", "))
}

// Record is the file with the results of an evaluation, a JSON object in each line. Only
// complete tries are in it, so that the same command continues where it was stopped.
type Record struct {
	path    string
	size    int64 // of the complete lines
	results map[string]Result
}

// OpenRecord reads a record; a file that does not exist is an empty one. A last line
// without an end, which a full disk or a lost machine leaves, does not count.
func OpenRecord(path string) (*Record, error) {
	r := &Record{path: path, results: map[string]Result{}}
	text, err := artifact.Input(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, loop.UsageOf(err, "name another file with --output")
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	r.size = int64(len(text))
	for i, line := range bytes.Split(text, []byte("\n")) {
		var one Result
		if len(line) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &one); err != nil || one.Key == "" {
			return nil, loop.Usage(fmt.Sprintf("%s:%d: it is not a result of hone eval", path, i+1),
				"remove the line, whose try then runs again; or name another file with --output")
		}
		r.results[one.Key] = one
	}
	return r, nil
}

// Result returns the result of a try.
func (r *Record) Result(key string) (Result, bool) {
	one, ok := r.results[key]
	return one, ok
}

// Of returns the results of the tries that have one.
func (r *Record) Of(tries []*Try) []Result {
	var all []Result
	for _, t := range tries {
		if one, ok := r.results[t.Key]; ok {
			one.Case, one.Model, one.Time = t.Case, t.Model, t.Time // an earlier name may have been another
			all = append(all, one)
		}
	}
	return all
}

// Results returns all results, the oldest first.
func (r *Record) Results() (all []Result) {
	for _, one := range r.results {
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y Result) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Key, y.Key)) })
	return all
}

// CanAdd makes the file ready for Add, and returns why that is not possible.
func (r *Record) CanAdd() error {
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return loop.UsageOf(err, "name another file with --output")
	}
	return errors.Join(f.Truncate(r.size), f.Close())
}

// Add appends a result, and returns when it is on the disk.
func (r *Record) Add(one Result) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("record a result: %w", err)
	}
	r.results[one.Key] = one
	return nil
}
