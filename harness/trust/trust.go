// Package trust records what the user trusts in a folder (ruling G14): that its own
// programs run, and the settings of its configuration. The records lie outside every
// workspace, where no repository and no command behind walls can write.
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/harness/internal/state"
)

// Record is what the user trusts in a folder. The zero Record trusts nothing.
type Record struct {
	Folder   string   `json:"folder"`             // absolute, without symbolic links
	Programs bool     `json:"programs"`           // the folder's own programs may run
	Settings []string `json:"settings,omitempty"` // trusted settings, one line each
}

// Untrusted returns the settings that are not trusted.
func (r Record) Untrusted(settings []string) []string {
	var missing []string
	for _, s := range settings {
		if !slices.Contains(r.Settings, s) {
			missing = append(missing, s)
		}
	}
	return missing
}

// Digest returns a digest of settings, which does not depend on their order.
func Digest(settings []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(settings)), "\n")))
	return hex.EncodeToString(sum[:])
}

const dirName = "trust"

func file(dir, folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return filepath.Join(dir, hex.EncodeToString(sum[:16])+".json")
}

// Load returns the record of a folder. A folder without one is not trusted.
func Load(folder string) (Record, error) {
	none := Record{Folder: folder}
	dir, err := state.Find(dirName)
	r := none
	if err == nil {
		r, err = read(file(dir, folder))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err == nil && r.Folder != folder {
		return none, nil
	}
	return r, err
}

func read(path string) (Record, error) {
	var r Record
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("read the record of trust %s: %w; remove the file, and trust the folder again", path, err)
	}
	return r, err
}

// Save replaces the record of the folder.
func (r Record) Save() error {
	dir, err := state.Make(dirName)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := state.Write(file(dir, r.Folder), append(text, '\n')); err != nil {
		return fmt.Errorf("record trust: %w", err)
	}
	return nil
}

// List returns all records, sorted by folder. It skips records that it cannot read,
// and returns why.
func List() ([]Record, error) {
	dir, err := state.Make(dirName)
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	var all []Record
	for _, path := range paths {
		r, readErr := read(path)
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Record) int { return strings.Compare(a.Folder, b.Folder) })
	return all, err
}

// Revoke removes the record of a folder. It returns false if there is none.
func Revoke(folder string) (bool, error) {
	dir, err := state.Make(dirName)
	if err != nil {
		return false, err
	}
	err = os.Remove(file(dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
