package leg

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"

	"hone/fleet/job"
	"hone/fleet/store"
	"hone/group"
	"hone/internal/artifact"
)

// minKey is the minimum length of a key in bytes.
const minKey = 32

// ReadKey reads the key that workers share: the contents of a file, without surrounding white
// space. It is an error if other users can read the file.
func ReadKey(file string) ([]byte, error) {
	const make = "; to make one: (umask 077 && head -c 32 /dev/urandom | base64 > FILE), and copy it to all workers"
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("the workers' key: %w%s", err, make)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the workers' key: other users can read %s; to change that: chmod 600 %s", file, file)
	}
	key, err := artifact.Input(file)
	if key = bytes.TrimSpace(key); err == nil && len(key) < minKey {
		err = fmt.Errorf("%s has fewer than %d bytes%s", file, minKey, make)
	}
	if err != nil {
		return nil, fmt.Errorf("the workers' key: %w", err)
	}
	return key, nil
}

// Term is a try of a leg. Later ones take over from earlier ones.
type Term struct {
	Scheduled int64  `json:"scheduled"` // when the leg was scheduled, in nanoseconds since 1970
	Attempt   int32  `json:"attempt"`   // of the leg, from 1
	Worker    string `json:"worker"`    // a random id
}

func (t Term) before(other Term) bool {
	return cmp.Or(cmp.Compare(t.Scheduled, other.Scheduled), cmp.Compare(t.Attempt, other.Attempt)) < 0
}

func randomID() string {
	id := make([]byte, 8)
	_, _ = rand.Read(id)
	return hex.EncodeToString(id)
}

type manifest struct {
	Format int          `json:"format"`
	Batch  string       `json:"batch"`
	Job    string       `json:"job"`
	Term   Term         `json:"term"` // of the worker that wrote it
	Hone   string       `json:"hone"` // the version that works on the run
	Commit string       `json:"commit,omitempty"`
	Run    string       `json:"run,omitempty"`   // empty before the first part
	Parts  []string     `json:"parts,omitempty"` // the SHA-256 of each, in order: files of hone export
	Events int          `json:"events"`          // in the last part
	Spent  group.Amount `json:"spent,omitzero"`  // by then, with calls under way in full
	// Outcome is that of the leg, once it has ended; then another try has nothing to do.
	Outcome *job.Outcome `json:"outcome,omitempty"`
}

// format is the only format of manifests that this package reads.
const format = 1

// maxManifest is the maximum size of a manifest in bytes.
const maxManifest = 4 << 20

func mac(key, text []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("hone-fleet manifest\n"))
	m.Write(text)
	return m.Sum(nil)
}

// It is a line with the MAC, and the JSON form.
func (m manifest) seal(key []byte) ([]byte, error) {
	text, err := json.Marshal(m)
	return fmt.Appendf(nil, "%x\n%s\n", mac(key, text), text), err
}

// A worker with the same key has written it.
func unseal(key, stored []byte, batch, name string) (manifest, error) {
	var m manifest
	line, text, _ := bytes.Cut(bytes.TrimSuffix(stored, []byte("\n")), []byte("\n"))
	has, err := hex.DecodeString(string(line))
	if err != nil || !hmac.Equal(has, mac(key, text)) {
		// Another worker may have the right key, so that this is not the end of the job.
		return m, fmt.Errorf("the manifest of job %s in the store was not signed with this worker's key: give all workers the same key; if they have it, another program wrote to the store", name)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if m.Batch != batch || m.Job != name {
		return m, fatal("the manifest of job %s in the store belongs to job %s of batch %s: another program wrote to the store", name, m.Job, m.Batch)
	}
	if m.Format != format {
		return m, fatal("job %s was started by another version of hone-fleet: continue it with that version", name)
	}
	return m, nil
}

func (g *leg) name(what string) string { return g.Batch + "/" + g.Job.Name + "/" + what }

func (g *leg) read(ctx context.Context) (m manifest, version string, err error) {
	stored, version, err := store.Read(ctx, g.Store, g.name("manifest"), maxManifest)
	if err == nil {
		m, err = unseal(g.Key, stored, g.Batch, g.Job.Name)
	}
	return m, version, err
}

// From then on, the manifests of others conflict. It does so even if the leg is interrupted: only the manifest says what the
// run has spent.
func (g *leg) takeOver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishing)
	defer cancel()
	version, err := g.honeVersion(ctx)
	if err != nil {
		return err
	}
	before, match, err := g.read(ctx)
	if errors.Is(err, store.ErrNotFound) {
		before, err = manifest{Format: format, Batch: g.Batch, Job: g.Job.Name, Hone: version}, nil
	}
	switch {
	case err != nil:
		return err
	case g.term.before(before.Term):
		return errSuperseded
	case before.Term.Scheduled != g.term.Scheduled || g.term.Scheduled == 0:
		before.Outcome = nil // of another leg
	}
	if before.Run != "" && before.Hone != version {
		return fatal("run %s was started by %s, but this worker has %s: keep the old version on the workers until the batch has ended", before.Run, before.Hone, version)
	}
	before.Term, before.Hone, g.match = g.term, version, match
	return g.put(ctx, before)
}

// If another worker has taken over, the error is errSuperseded.
func (g *leg) put(ctx context.Context, m manifest) error {
	sealed, err := m.seal(g.Key)
	if err != nil {
		return err
	}
	version, err := g.Store.Put(ctx, g.name("manifest"), bytes.NewReader(sealed), g.match)
	if errors.Is(err, store.ErrConflict) {
		return errSuperseded
	}
	if err == nil {
		g.at, g.match = m, version
	}
	return err
}
