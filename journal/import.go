package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"hone/internal/lazyregexp"
)

const importedSuffix = ".imported"

const tempSuffix = ".new"

// Imported says that a run was imported.
type Imported struct {
	// Head is the [Event.Hash] of the last event that was imported. Nothing was recorded
	// here yet if it is the run's last one.
	Head string `json:"head"`
	// Base is the commit that was checked out where the run was exported; empty if there
	// was none. The journal gives it no meaning.
	Base string `json:"base,omitempty"`
	// Placed means that the tree was made that of the run; see [Home.SetPlaced].
	Placed bool `json:"placed,omitempty"`
}

// validRun matches the ids that [Home.NewRun] makes.
var validRun = lazyregexp.New(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{1,16}$`)

// ValidRun reports whether a text is the id of a run, so that it may be part of the name
// of a file.
func ValidRun(id string) bool { return validRun.MatchString(id) }

// Parse reads the events of a complete journal and checks their chain. Unlike
// [Home.Read] it accepts no incomplete last line. A line that is not right is a
// [*DamageError].
func Parse(run string, data []byte) ([]Event, error) {
	events, size, err := parse(run, bytes.NewReader(data))
	if err == nil && size < int64(len(data)) {
		err = &DamageError{Line: len(events) + 1, Why: "it is incomplete"}
	}
	return events, err
}

// Lines returns the lines of events, as they are in a journal.
func Lines(events []Event) []byte {
	var b bytes.Buffer
	for _, e := range events {
		b.Write(e.line)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Import stores the journal of a run that was recorded elsewhere. It replaces the run's
// journal here, if there is one: the caller knows that this one continues it. Whoever
// recorded the events, the [Owner] must accept them before [Home.Open] opens the run.
//
// The objects that the events name are durable already: the caller stored and synced them
// with the run's [Home.Pack]. The caller holds the workspace's
// lock. A process that is killed leaves the run as it was, or imported.
func (h *Home) Import(events []Event, base string) error {
	if len(events) == 0 || !ValidRun(events[0].Run) {
		return errors.New("import a run: it has no events, or no valid id")
	}
	run := events[0].Run
	// A note without its journal says nothing, because no event has that hash.
	err := h.setImported(run, Imported{Head: events[len(events)-1].Hash(), Base: base})
	if err == nil {
		err = h.replaceFile(runFile(run), Lines(events))
	}
	if err != nil {
		return fmt.Errorf("import run %s: %w", run, err)
	}
	return nil
}

// SetPlaced records that the workspace's tree is that of an imported run.
func (h *Home) SetPlaced(run string) error {
	i := h.Imported(run)
	i.Placed = true
	return h.setImported(run, i)
}

func (h *Home) setImported(run string, i Imported) error {
	note, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return h.replaceFile(importedFile(run), append(note, '\n'))
}

func (h *Home) replaceFile(name string, content []byte) error {
	temp := name + tempSuffix
	f, err := h.in.Root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = h.in.SyncFile(name, f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = h.in.Root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, h.in.Root.Remove(temp))
	}
	return h.in.Sync(path.Dir(name))
}

// Imported returns what is known about the import of a run; zero if it was not imported.
func (h *Home) Imported(run string) Imported {
	f, err := h.in.Open(importedFile(run))
	if err != nil {
		return Imported{}
	}
	defer f.Close()
	var i Imported
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil || json.Unmarshal(b, &i) != nil {
		return Imported{}
	}
	return i
}

func importedFile(run string) string { return runsDir + "/" + run + importedSuffix }
