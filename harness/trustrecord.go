package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"hone/harness/internal/state"
)

// TrustRecord is what the user trusts in a folder (ruling G14): that its own programs run, and the
// settings of its configuration. The zero TrustRecord trusts nothing. The records lie outside every
// workspace, where no repository and no command behind walls can write.
type TrustRecord struct {
	Folder   string   `json:"folder"`             // absolute, without symbolic links
	Programs bool     `json:"programs"`           // the folder's own programs may run
	Settings []string `json:"settings,omitempty"` // trusted settings, one line each
}

const trustDir = "trust"

func trustFile(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return hex.EncodeToString(sum[:16]) + ".json"
}

// A folder without a record is not trusted.
func loadTrust(folder string) (TrustRecord, error) {
	r, err := readTrust(trustFile(folder))
	if errors.Is(err, fs.ErrNotExist) || err == nil && r.Folder != folder {
		return TrustRecord{Folder: folder}, nil
	}
	return r, err
}

func readTrust(name string) (r TrustRecord, err error) {
	if _, err := state.Find(); err != nil { // it is no fault of the record
		return r, err
	}
	if err := state.Load(&r, trustDir, name); err != nil {
		return TrustRecord{}, fmt.Errorf("read the record of trust %w; remove the file, and trust the folder again", err)
	}
	return r, nil
}

func (r TrustRecord) save() error {
	if err := state.Save(r, trustDir, trustFile(r.Folder)); err != nil {
		return fmt.Errorf("record trust: %w", err)
	}
	return nil
}

// TrustRecords returns all records, sorted by folder. It skips records that it cannot read,
// and returns why.
func TrustRecords() ([]TrustRecord, error) {
	dir, err := state.Make(trustDir)
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	var all []TrustRecord
	for _, path := range paths {
		r, readErr := readTrust(filepath.Base(path))
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b TrustRecord) int { return strings.Compare(a.Folder, b.Folder) })
	return all, err
}

// RevokeTrust removes the record of a folder. It returns false if there is none.
func RevokeTrust(folder string) (bool, error) { return state.Remove(trustDir, trustFile(folder)) }
