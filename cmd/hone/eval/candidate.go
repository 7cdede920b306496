package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"

	"hone/internal/artifact"
)

// Candidate is a model that is compared.
type Candidate struct {
	asked []string // its names, by the tries in turn; never empty
}

// NewCandidate resolves a model's name. The file of a script becomes absolute, because
// each try starts in its own tree. If it is a directory, the tries take its files in turn.
func NewCandidate(name string) (Candidate, error) {
	file, ok := strings.CutPrefix(name, "script/")
	if !ok {
		return Candidate{[]string{name}}, nil
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return Candidate{}, err
	}
	var c Candidate
	files, _ := filepath.Glob(filepath.Join(file, "*"))
	for _, f := range files {
		c.asked = append(c.asked, "script/"+f)
	}
	if len(files) == 0 {
		c.asked = []string{"script/" + file}
	}
	return c, nil
}

// At returns the model that a try asks; 1 is the first.
func (c Candidate) At(time int) string { return c.asked[(time-1)%len(c.asked)] }

// Tries returns the tries of a job with the model. id identifies all that their results depend
// on, but for the contents of a script.
func (c Candidate) Tries(job *Job, id string, times int) []*Try {
	var tries []*Try
	for n := 1; n <= times; n++ {
		key := id
		if file, ok := strings.CutPrefix(c.At(n), "script/"); ok {
			script, _ := artifact.Input(file) // nil with an error, which the run reports
			key = Digest(id, string(script))
		}
		tries = append(tries, &Try{Job: job, Time: n, Key: Digest(key, n)})
	}
	return tries
}

// Digest returns a digest of values that JSON can represent.
func Digest(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil {
		panic(err) // the caller made them
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
