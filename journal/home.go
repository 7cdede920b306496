package journal

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	stdhash "hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// HomeName is the directory at a workspace's root that holds hone's own files.
// No model sees it.
const HomeName = ".hone"

const (
	runsDir    = "runs"
	objectsDir = "objects"
	lockFile   = "lock"
)

// Home is the directory of one workspace's runs: .hone in the workspace, or a
// directory outside that the caller chose. It holds the journals, their
// objects and the lock. An object has a file of its own ([Home.Put]) or shares
// one with others ([Home.NewPack]). All access goes through an [os.Root], so a
// symlink that a hostile repository put in place of the directory leads
// nowhere.
type Home struct {
	// Owner decides which runs Open opens, and signs the events that are appended.
	// Nil opens all runs and signs nothing. Set it before Create and Open.
	Owner *Owner

	workspace string
	dir       string
	root      *os.Root
	packs     packs
	codec     codec
}

// OpenHome opens the directory .hone below the workspace dir. If it does not
// exist, OpenHome creates it with a .gitignore that ignores everything in it.
func OpenHome(dir string) (*Home, error) { return OpenHomeAt(dir, filepath.Join(dir, HomeName)) }

// OpenHomeAt is [OpenHome] for a home at any path, whose parent directory exists.
func OpenHomeAt(workspace, path string) (*Home, error) {
	h, err := findHome(workspace, path, true)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return h, nil
}

// FindHome opens the directory .hone only if it exists; otherwise the error
// wraps [fs.ErrNotExist].
func FindHome(dir string) (*Home, error) { return FindHomeAt(dir, filepath.Join(dir, HomeName)) }

// FindHomeAt is [FindHome] for a home at any path.
func FindHomeAt(workspace, path string) (*Home, error) { return findHome(workspace, path, false) }

func findHome(workspace, path string, create bool) (*Home, error) {
	parent, name := filepath.Split(path)
	top, err := os.OpenRoot(parent)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	if create {
		if err := makeDir(top, name); err != nil {
			return nil, err
		}
	}
	info, err := top.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory: move it away", path)
	}
	root, err := top.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	h := &Home{workspace: workspace, dir: path, root: root}
	if create {
		if err := h.setUp(); err != nil {
			root.Close()
			return nil, err
		}
	}
	return h, nil
}

// setUp creates the contents of a new home.
func (h *Home) setUp() error {
	f, err := h.root.OpenFile(".gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
	case err != nil:
		return err
	default:
		_, err := f.WriteString("*\n")
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return errors.Join(makeDir(h.root, runsDir), makeDir(h.root, objectsDir))
}

func makeDir(root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Dir returns the path of the home itself.
func (h *Home) Dir() string { return h.dir }

// Workspace returns the path of the workspace.
func (h *Home) Workspace() string { return h.workspace }

// Close releases the directory.
func (h *Home) Close() error { return h.root.Close() }

// runTime is the layout of the time at the start of a run id.
const runTime = "20060102-150405"

// NewRun returns an id for a run that starts now: the time in UTC, the fraction
// of the second, and a random number in hex. Ids sort by time, even within a
// second, so that "last" means the run started last. If the clock was set back
// since the newest run started, the id uses the second after that run's.
func (h *Home) NewRun() string {
	id := newRun(time.Now())
	runs, err := h.Runs()
	if err != nil || len(runs) == 0 || runs[len(runs)-1] < id {
		return id
	}
	newest := runs[len(runs)-1]
	if at, err := time.Parse(runTime, newest[:min(len(newest), len(runTime))]); err == nil {
		id = newRun(at.Add(time.Second))
	}
	return id
}

func newRun(at time.Time) string {
	var b [1]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%s-%04x%02x", at.UTC().Format(runTime), at.Nanosecond()>>14, b)
}

// Runs returns the ids of all runs, oldest first.
func (h *Home) Runs() ([]string, error) {
	d, err := h.root.Open(runsDir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var runs []string
	for _, n := range names {
		if run, ok := strings.CutSuffix(n, ".jsonl"); ok {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	return runs, nil
}

// FindRun returns the run that the user means by ref: an id, a unique prefix of an id
// or of its last part, or "last". The error is a [*NotFoundError] if there is no such
// run.
func (h *Home) FindRun(ref string) (string, error) {
	runs, err := h.Runs()
	if err != nil {
		return "", err
	}
	if ref == "last" && len(runs) > 0 {
		return runs[len(runs)-1], nil
	}
	var matches []string
	for _, r := range runs {
		if r == ref {
			return r, nil
		}
		if ref != "" && (strings.HasPrefix(r, ref) || strings.HasPrefix(ShortRun(r), ref)) {
			matches = append(matches, r)
		}
	}
	if len(matches) == 1 {
		return matches[0], nil
	}
	return "", &NotFoundError{Ref: ref, Matches: matches}
}

// ShortRun returns the last part of a run's id, which people can type.
func ShortRun(run string) string { return run[strings.LastIndexByte(run, '-')+1:] }

// Put stores an object in a file of its own, even if a pack holds it already,
// and returns its name: the SHA-256 of its bytes in hex. The object is durable
// when Put returns. The file is compressed if that saves space.
func (h *Home) Put(b []byte) (string, error) {
	if len(b) > blockSize {
		if z := h.codec.compress(b); z != nil {
			return h.putFile(hash(b), compressedSuffix, z)
		}
	}
	return h.putFile(hash(b), "", b)
}

// PlainFile returns the path of a file with the contents of an object, for the user. It
// creates the file unless the object has one that is not compressed.
func (h *Home) PlainFile(name string) (path string, err error) {
	b, err := h.Get(name)
	if err == nil {
		_, err = h.putFile(name, "", b)
	}
	return h.path(objectFile(name)), err
}

// putFile stores a file with an object, and returns the object's name.
func (h *Home) putFile(name, suffix string, b []byte) (string, error) {
	dir := objectsDir + "/" + name[:2]
	file := objectFile(name) + suffix
	if info, err := h.root.Lstat(file); err == nil && info.Size() == int64(len(b)) {
		return name, nil
	}
	err := h.root.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		err = h.syncDir(objectsDir)
	case errors.Is(err, fs.ErrExist):
		err = nil
	}
	if err == nil {
		err = h.store(file, b)
	}
	if err == nil {
		err = h.syncDir(dir)
	}
	if err != nil {
		return "", fmt.Errorf("store an object: %w", err)
	}
	return name, nil
}

func (h *Home) store(file string, b []byte) error {
	temp := file + ".tmp"
	f, err := h.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = h.root.Rename(temp, file)
	}
	if err != nil {
		_ = h.root.Remove(temp)
	}
	return err
}

// Has reports whether an object is stored. It may miss a pack that another
// process has only just finished. A name that is not a digest is not stored.
// Has does not read the object; [Home.Get] and [Home.OpenObject] do, and detect
// damage.
func (h *Home) Has(name string) bool {
	d, err := parseDigest(name)
	if err != nil {
		return false
	}
	if _, ok := h.packs.find(d); ok {
		return true
	}
	if h.hasFile(name, "") || h.hasFile(name, compressedSuffix) {
		return true
	}
	if err := h.refreshPacks(false); err != nil {
		return false
	}
	_, ok := h.packs.find(d)
	return ok
}

// hasFile reports whether an object has a file of its own with a suffix.
func (h *Home) hasFile(name, suffix string) bool {
	info, err := h.root.Lstat(objectFile(name) + suffix)
	return err == nil && info.Mode().IsRegular()
}

// Get reads an object and verifies its digest. The error is as for
// [Home.OpenObject].
func (h *Home) Get(name string) ([]byte, error) {
	o, err := h.OpenObject(name)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	b, err := io.ReadAll(o)
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	return b, nil
}

// OpenObject opens an object for reading. If its contents do not match its
// digest, the last Read returns an error that names the file instead of
// [io.EOF]; do not use what was read before. Closing it early is not an error.
// If the object is not stored, or was in a damaged pack, the error is a
// [*MissingError].
func (h *Home) OpenObject(name string) (io.ReadCloser, error) {
	d, err := parseDigest(name)
	if err != nil {
		return nil, err
	}
	for _, suffix := range []string{"", compressedSuffix} {
		o, err := h.openLoose(d, suffix)
		if err == nil {
			return o, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read an object: %w", err)
		}
	}
	return h.openPacked(d)
}

// openLoose opens an object in a file of its own with a suffix.
func (h *Home) openLoose(d digest, suffix string) (io.ReadCloser, error) {
	file := objectFile(d.String()) + suffix
	f, err := h.openRegular(file)
	if err != nil {
		return nil, err
	}
	o := &object{from: f, file: f, sum: sha256.New(), want: d, path: h.path(file)}
	if suffix == "" {
		return o, nil
	}
	size, err := recordedSize(f)
	if err != nil {
		f.Close()
		return nil, o.explain(err)
	}
	return o.decompressed(size)
}

func (h *Home) openPacked(d digest) (io.ReadCloser, error) {
	p, ok := h.packs.find(d)
	if !ok {
		if err := h.refreshPacks(true); err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		if p, ok = h.packs.find(d); !ok {
			return nil, &MissingError{Name: d.String(), DamagedPacks: h.packs.damageErrors()}
		}
	}
	return h.openPlace(p)
}

// openPlace opens the object of a place, as [Home.OpenObject] does.
func (h *Home) openPlace(p place) (io.ReadCloser, error) {
	file := packsDir + "/" + p.pack
	f, err := h.openRegular(file)
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	o := &object{from: io.NewSectionReader(f, p.offset, p.stored), file: f, sum: sha256.New(), want: p.digest, path: h.path(file)}
	if p.stored == p.size {
		return o, nil
	}
	return o.decompressed(p.size)
}

// openRegular opens a regular file for reading. Anything else is an error:
// opening a pipe would wait for a writer.
func (h *Home) openRegular(name string) (*os.File, error) {
	if err := h.checkRegular(name); err != nil {
		return nil, err
	}
	return h.root.Open(name)
}

// checkRegular returns an error unless the name is that of a regular file.
func (h *Home) checkRegular(name string) error {
	info, err := h.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(h.path(name))
	}
	return err
}

func notRegular(path string) error {
	return fmt.Errorf("%s is not a regular file: move it away", path)
}

// object reads a stored object and verifies it at the end.
type object struct {
	from  io.Reader // the object only
	unzip io.Closer // releases what from needs; nil if it is not compressed
	file  *os.File
	sum   stdhash.Hash
	want  digest
	path  string
}

// decompressed returns the object, whose file is compressed, with its length.
func (o *object) decompressed(size int64) (io.ReadCloser, error) {
	d, err := decompress(o.from, size)
	if err != nil {
		o.file.Close()
		return nil, err
	}
	o.from, o.unzip = d, d
	return o, nil
}

func (o *object) Read(b []byte) (int, error) {
	n, err := o.from.Read(b)
	o.sum.Write(b[:n])
	if err == io.EOF && digest(o.sum.Sum(nil)) != o.want {
		err = &damagedError{errors.New("it has another digest")}
	}
	return n, o.explain(err)
}

// explain returns the error for an object that is damaged; other errors as they are.
func (o *object) explain(err error) error {
	var damaged *damagedError
	if !errors.As(err, &damaged) {
		return err
	}
	return fmt.Errorf("%s was changed after it was stored: it no longer contains the object %s", o.path, o.want)
}

func (o *object) Close() error {
	if o.unzip != nil {
		o.unzip.Close()
	}
	return o.file.Close()
}

// MissingError says that an object is not stored. It wraps [fs.ErrNotExist].
type MissingError struct {
	Name string
	// DamagedPacks has an error for each damaged pack. Any may have held the
	// object.
	DamagedPacks []error
}

func (e *MissingError) Error() string {
	s := fmt.Sprintf("the object %s is not stored", e.Name)
	switch n := len(e.DamagedPacks); n {
	case 0:
		return s
	case 1:
		return fmt.Sprintf("%s; it may have been in a damaged pack: %v", s, e.DamagedPacks[0])
	default:
		return fmt.Sprintf("%s; it may have been in one of %d damaged packs: %v, and others", s, n, e.DamagedPacks[0])
	}
}

func (e *MissingError) Unwrap() error { return fs.ErrNotExist }

// ObjectPath returns the path of an object's own file; with the suffix .zst, it is
// compressed. An object that is only in a pack has no such file. [Home.PlainFile] makes
// one for the user.
func (h *Home) ObjectPath(name string) string {
	if !h.hasFile(name, "") && h.hasFile(name, compressedSuffix) {
		return h.path(objectFile(name) + compressedSuffix)
	}
	return h.path(objectFile(name))
}

func objectFile(name string) string { return objectsDir + "/" + name[:2] + "/" + name[2:] }

func runFile(run string) string { return runsDir + "/" + run + ".jsonl" }

func (h *Home) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

// syncDir makes the names in a directory durable. Windows has no such call; its
// file systems journal names.
func (h *Home) syncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := h.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
