package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/harness/internal/state"
	"hone/internal/config"
	"hone/internal/listing"
	"hone/loop"
	"hone/workspace"
)

// Needs are what a folder's own files would run and open, so that the user must
// trust them. What the user typed is not among them.
type Needs struct {
	Folder   string           // absolute
	Programs []string         // the folder's own programs that would run, such as build.sh
	Settings []config.Opening // of its configuration
}

// TrustQuestion asks the user to trust a folder's programs or its settings.
type TrustQuestion struct {
	Needs          // either Programs, or the Settings that are not trusted yet
	Changed bool   // other settings of the folder were trusted before
	Digest  string // of all settings; empty if there are none
}

func (n Needs) lines() []string {
	var lines []string
	for _, s := range n.Settings {
		lines = append(lines, s.String())
	}
	return lines
}

// Digest returns the value of HONE_TRUST that accepts the settings, and with them the
// folder's programs; empty if there are no settings.
func (n Needs) Digest() string {
	if len(n.Settings) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(n.lines())), "\n")))
	return hex.EncodeToString(sum[:])
}

// OwnPrograms returns the programs of a folder that loops of these kinds run although
// the user did not type them: those of the configuration, and the kinds' own.
func OwnPrograms(folder string, file config.File, kinds ...loop.Kind) ([]string, error) {
	programs := file.Programs("")
	for _, k := range kinds {
		programs = append(programs, file.Programs(k.Name)...)
		if k.Programs == nil {
			continue
		}
		own, err := k.Programs(folder)
		if err != nil {
			return nil, err
		}
		programs = append(programs, own...)
	}
	return programs, nil
}

// OwnSettings returns the settings of a folder that need trust: those of its
// configuration, and the keys in its files that replace the user's in loops of these
// kinds.
func OwnSettings(folder string, file config.File, kinds ...loop.Kind) ([]config.Opening, error) {
	settings := slices.Clone(file.Opens)
	tree, err := workspace.Open(folder, workspace.Options{})
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	for _, k := range kinds {
		if k.Key == nil {
			continue
		}
		key, err := k.Key(tree)
		if err != nil {
			return nil, err
		}
		if key.Value == "" {
			continue
		}
		repo, err := listing.Repository(folder, folder)
		theirs := repo == nil // without git nothing says whose the file is
		if err == nil && repo != nil {
			theirs, err = repo.Tracks(context.Background(), filepath.Join(folder, key.File))
		}
		if err != nil {
			return nil, err
		}
		if theirs { // an untracked one is the user's own (ruling G14)
			settings = append(settings, config.Opening{File: key.File, Line: 1, Key: key.Variable, Value: fmt.Sprintf("sha256:%.12x", sha256.Sum256([]byte(key.Value))),
				Opens: "this key replaces yours, so that your files are sent to its owner's account"})
		}
	}
	return settings, nil
}

// Trusted returns nil if the user trusts what a folder needs: by an earlier answer, by
// HONE_TRUST, or by answering now. The error is a usage error that says how to trust it.
func (h Host) Trusted(ctx context.Context, n Needs) error {
	if len(n.Programs) == 0 && len(n.Settings) == 0 {
		return nil
	}
	r, err := loadTrust(n.Folder)
	if err != nil {
		h.Note(err.Error()) // without a record the folder is not trusted
		r = TrustRecord{Folder: n.Folder}
	}
	byDigest, byName := h.typedTrust(n)
	accept := func(q TrustQuestion, add func()) bool {
		if h.Trust == nil || !h.Trust(ctx, q) {
			return false
		}
		add()
		if err := r.save(); err != nil {
			h.Note(err.Error() + "; hone will ask again")
		}
		return true
	}
	if len(n.Programs) > 0 && !r.Programs && !byName &&
		!accept(TrustQuestion{Needs: Needs{Folder: n.Folder, Programs: n.Programs}}, func() { r.Programs = true }) {
		return &hone.UsageError{Why: fmt.Sprintf("%s is not trusted, and its own programs would run: %s", n.Folder, strings.Join(n.Programs, ", ")),
			Next: hone.Next{First: "read them, then", Verb: hone.Accept, Dir: n.Folder,
				Or: &hone.Next{First: "without a terminal accept all of these programs", Flags: []hone.Flag{{Name: "trust"}}, Remark: "or HONE_TRUST=1"}}}
	}
	open := n.untrusted(r)
	if len(open) == 0 || byDigest || accept(TrustQuestion{Needs: Needs{Folder: n.Folder, Settings: open}, Changed: len(r.Settings) > 0, Digest: n.Digest()},
		func() { r.Settings = append(r.Settings, Needs{Settings: open}.lines()...) }) {
		return nil
	}
	var keys []string
	for _, s := range open {
		keys = append(keys, s.Key)
	}
	why := fmt.Sprintf("settings of %s are not trusted: %s", n.Folder, strings.Join(keys, ", "))
	if typed := h.getenv("HONE_TRUST"); typed != "" && typed != "1" {
		why += "; HONE_TRUST does not have their digest"
	}
	return &hone.UsageError{Why: why, Next: hone.Next{First: "to read them, and trust them", Verb: hone.Accept, Dir: n.Folder,
		Remark: "which without a terminal prints the digest for HONE_TRUST"}}
}

// TrustOwn records that the user trusts what a folder needs, because hone wrote all of
// it.
func TrustOwn(n Needs) error {
	return TrustRecord{Folder: n.Folder, Programs: true, Settings: n.lines()}.save()
}

// Untrusted returns the settings that the user does not trust yet, without asking.
func (h Host) Untrusted(n Needs) []config.Opening {
	if settings, _ := h.typedTrust(n); settings {
		return nil
	}
	r, err := loadTrust(n.Folder)
	if err != nil {
		r = TrustRecord{}
	}
	return n.untrusted(r)
}

func (n Needs) untrusted(r TrustRecord) []config.Opening {
	return slices.DeleteFunc(slices.Clone(n.Settings), func(s config.Opening) bool { return slices.Contains(r.Settings, s.String()) })
}

// HONE_TRUST is a list: 1 and digests.
func (h Host) typedTrust(n Needs) (settings, programs bool) {
	typed := strings.Split(h.getenv("HONE_TRUST"), ",")
	digest := n.Digest()
	settings = digest != "" && slices.Contains(typed, digest)
	return settings, settings || h.TrustPrograms || slices.Contains(typed, "1")
}

// Openings says what a loop's settings open, one line each: addresses that are not the
// provider's own, and paths and variables that commands get. The first lines say what may
// change, if that is limited. Nil if nothing is open that is not open in every run. What a run says of its walls names the network.
func (h Host) Openings(l loop.Loop) []string {
	var lines []string
	add := func(format string, list []string) {
		if len(list) > 0 {
			lines = append(lines, fmt.Sprintf(format, strings.Join(list, ", ")))
		}
	}
	for _, m := range loop.AllModels(l) {
		if address := h.foreignAddress(*m); address != "" {
			masked, _ := config.MaskAddress(address)
			line := fmt.Sprintf("%s is asked at %s", m.Name, masked)
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	set := l.Shared()
	lines = append(lines, set.Scopes()...)
	if set.Walls.Absent {
		lines = append(lines, "walls: "+NoWallsHere)
	} else {
		add("commands can change %s", set.Walls.Write)
		add("commands can read %s", set.Walls.Read)
		add("commands get the variables %s", set.Walls.Env)
	}
	add("the check gets the variables %s", config.CheckEnv.In(set.Values))
	add("files that look secret are sent: %s", config.Send.In(set.Values))
	if !config.GuardTools.In(set.Values) {
		lines = append(lines, "files that your own tools run are changed without asking")
	}
	return lines
}

// It is empty if the address is the provider's own.
func (h Host) foreignAddress(m loop.Model) string {
	if m.Agent != nil {
		return h.endpoint(m.Agent)
	}
	p, _, err := splitModel(m.Name)
	if err != nil {
		return ""
	}
	address, err := h.address(m, p)
	if err != nil || address == p.Address {
		return ""
	}
	return address
}

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
