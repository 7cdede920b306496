package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"hone/internal/artifact"
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
	Malformed int       `json:"malformed"`      // replies; see [Outcome]
	Refused   int       `json:"refused"`
	Active    Seconds   `json:"seconds"`
	Run       string    `json:"run"`
	Hone      string    `json:"hone"` // the version that ran it
	At        time.Time `json:"at"`
}

// Already is the kind of a result that does not count, because the check passes without a
// model.
const Already = "already"

// counts reports whether a result counts: whether a model made it.
func (r Result) counts() bool { return r.Kind != Already && !(r.Passed && r.Rounds == 0) }

// Record is the file with the results of an evaluation, a JSON object in each line. Only
// complete tries are in it, so that the same command continues where it was stopped.
type Record struct {
	path    string
	results map[string]Result
	torn    bool // the last line has no end
}

// OpenRecord reads a record; a file that does not exist is an empty one. A last line
// without an end, which a full disk or a lost machine leaves, does not count.
func OpenRecord(path string) (*Record, error) {
	r := &Record{path: path, results: map[string]Result{}}
	text, err := artifact.Input(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, loop.Usage(err.Error(), "name another file with --output")
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		var one Result
		err := json.Unmarshal(line, &one)
		if line[len(line)-1] != '\n' {
			r.torn = true
			continue
		}
		if err != nil || one.Key == "" {
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
func (r *Record) Results() []Result {
	return slices.SortedFunc(maps.Values(r.results), func(x, y Result) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Key, y.Key))
	})
}

// CanAdd returns why a result cannot be added; nil if it can, as far as is known. It
// creates the file.
func (r *Record) CanAdd() error {
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return loop.Usage(err.Error(), "name another file with --output")
	}
	return f.Close()
}

// Add appends a result, and returns when it is on the disk.
func (r *Record) Add(one Result) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("record a result: %w", err)
	}
	if r.torn {
		err = cutLastLine(f)
	}
	if err == nil {
		_, err = f.Write(append(line, '\n'))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		r.torn = true // perhaps
		return fmt.Errorf("record a result: %w", err)
	}
	r.torn = false
	r.results[one.Key] = one
	return nil
}

// cutLastLine removes an unfinished last line.
func cutLastLine(f *os.File) error {
	text, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	return f.Truncate(int64(bytes.LastIndexByte(text, '\n') + 1))
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var seconds float64
	err := json.Unmarshal(text, &seconds)
	*s = Seconds(seconds * float64(time.Second))
	return err
}
