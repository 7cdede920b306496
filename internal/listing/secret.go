package listing

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hone/internal/git"
	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// SecretFiles are the files of a directory that contain secrets.
type SecretFiles struct {
	Files  []SecretFile // nil if there are none
	Values []string     // the secret values in them, each once; see [secret.Guard.Values]
	Unread int          // number of files judged only by their names, because there was too much to read
	// Omitted is the number of values that are not in Values because there are too
	// many.
	Omitted int
	// Tools are the absolute paths of the files that the user's own tools run or believe,
	// see [treepath.ToolReason], and of the files and directories in the tree to which links
	// of such names lead. Those of dependencies are not among them.
	Tools []string
}

// SecretFile is a file that contains a secret.
type SecretFile struct {
	Path string // absolute
	Why  string // see [secret.Guard.Withheld]
}

// Paths returns the paths of the files; nil if there are none.
func (s SecretFiles) Paths() []string {
	var paths []string
	for _, f := range s.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

// Limits on what FindSecrets reads. Files with keys and settings are small and near the top.
const (
	maxSecretFile = 1 << 20   // bytes of one file
	maxScanned    = 128 << 20 // bytes of all files
	maxValues     = 1000      // values of all files: every output is searched for each of them
)

// FindSecrets returns the files below root that are secret by their name or
// contents. It searches level by level, and also looks at files that git
// ignores, because secrets usually are. In directories of dependencies and of
// build products it judges files only by their names and takes no values from
// them: they are many, and not the user's. It does not follow symbolic links,
// except to read the values of a link that is secret by its name.
//
// A value that is also in a file that the guard sends is not secret. A file that
// only contains a value of another one does not count: commands may need it.
//
// On its way it finds the files of the user's own tools. If a directory below root
// cannot be read, FindSecrets skips it.
func FindSecrets(ctx context.Context, root string, guard *secret.Guard) (SecretFiles, error) {
	s := secretSearch{root: root, guard: guard, budget: maxScanned}
	for dirs := []string{""}; len(dirs) > 0; {
		below, err := s.searchLevel(ctx, dirs)
		if err != nil {
			return s.found, err
		}
		dirs = below
	}
	seen := map[string]bool{}
	values := slices.DeleteFunc(s.found.Values, func(v string) bool {
		again := seen[v]
		seen[v] = true
		return again || slices.ContainsFunc(s.sent, func(content []byte) bool { return bytes.Contains(content, []byte(v)) })
	})
	s.found.Omitted = max(0, len(values)-maxValues)
	if s.found.Values = nil; len(values) > 0 {
		s.found.Values = values[:min(len(values), maxValues)]
	}
	return s.found, nil
}

// Credentials returns the secret values in git's configuration of the user, the system
// and the repository that a directory belongs to, and in the files that they include; nil
// if there are none. The configuration of a repository that git refuses as another user's
// is not read.
func Credentials(ctx context.Context, dir string) ([]string, error) {
	settings, err := gitSettings(ctx, dir)
	if errors.Is(err, git.ErrNoGit) {
		return nil, nil
	}
	var values []string
	for _, s := range settings {
		values = append(values, secret.Credentials(s.Name, s.Value)...)
	}
	return values, err
}

func gitSettings(ctx context.Context, dir string) ([]git.Setting, error) {
	program, err := git.Find(dir)
	if err != nil {
		return nil, err
	}
	repo, err := program.Open(dir)
	if errors.Is(err, git.ErrNotRepository) || errors.As(err, new(*git.ForeignError)) {
		return program.UserSettings(ctx)
	}
	if err != nil {
		return nil, err
	}
	return repo.Settings(ctx)
}

type secretSearch struct {
	root   string
	guard  *secret.Guard
	budget int64 // bytes that may still be read
	found  SecretFiles
	sent   [][]byte // contents of the files that the guard sends
}

type suspect struct {
	at      string
	why     string           // why it is secret; empty if it is not
	named   bool             // its name makes it secret
	unread  bool             // its contents must be judged
	state   secret.FileState // of a file whose contents must be judged
	content []byte           // of a file that the guard sends
	values  []string         // the secret values in it
	tool    bool             // it is a file of the user's own tools, or a link of such a name
	link    bool             // it is a symbolic link
}

// The order of the results is that of the directories.
func (s *secretSearch) searchLevel(ctx context.Context, dirs []string) (below []string, err error) {
	inDir, belowDir, errs := make([][]suspect, len(dirs)), make([][]string, len(dirs)), make([]error, len(dirs))
	inParallel(len(dirs), func(i int) {
		if errs[i] = context.Cause(ctx); errs[i] == nil {
			inDir[i], belowDir[i], errs[i] = s.list(dirs[i])
		}
	})
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return nil, errs[i]
	}
	suspects := slices.Concat(inDir...)
	for i := range suspects {
		s.spend(&suspects[i])
	}
	inParallel(len(suspects), func(i int) {
		if suspects[i].unread && ctx.Err() == nil {
			s.judge(&suspects[i])
		}
	})
	for _, f := range suspects {
		s.add(f)
	}
	return slices.Concat(belowDir...), context.Cause(ctx)
}

// A directory that cannot be read is skipped: commands cannot read it either.
func (s *secretSearch) list(dir string) (files []suspect, below []string, err error) {
	opened, err := os.Open(s.abs(dir))
	var entries []fs.DirEntry
	if err == nil {
		defer opened.Close()
		entries, err = opened.ReadDir(-1)
	}
	switch {
	case err != nil && dir == "":
		return nil, nil, err
	case err != nil:
		return nil, nil, nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		at := treepath.Join(dir, e.Name())
		switch {
		case e.IsDir() && (e.Name() == ".git" || e.Name() == ".hone"):
		case e.IsDir():
			below = append(below, at)
		default:
			if f := s.suspect(opened, at, e.Type()); f.named || f.unread || f.tool {
				files = append(files, f)
			}
		}
	}
	return files, below, nil
}

func (s *secretSearch) abs(at string) string {
	return filepath.Join(s.root, filepath.FromSlash(at))
}

// A symbolic link is judged only by its name: the search finds the target where it lies.
func (s *secretSearch) suspect(dir *os.File, at string, kind fs.FileMode) suspect {
	f := suspect{at: at}
	f.why, f.named = s.guard.WithheldName(at)
	if isThirdParty(treepath.Parent(at)) {
		return f
	}
	f.link = kind == fs.ModeSymlink
	f.tool = (kind.IsRegular() || f.link) && treepath.ToolReason(at) != ""
	if !f.named && !kind.IsRegular() {
		return f
	}
	f.state, f.unread = stateIn(dir, at)
	f.unread = f.unread && f.state.Size > 0 && f.state.Size <= maxSecretFile
	return f
}

// If the budget does not suffice, the file is judged only by its name.
func (s *secretSearch) spend(f *suspect) {
	switch {
	case !f.unread:
	case f.state.Size > s.budget:
		s.found.Unread++
		f.unread = false
	default:
		s.budget -= f.state.Size
	}
}

// A file in which the guard has found nothing is not read again.
func (s *secretSearch) judge(f *suspect) {
	begun, sent := time.Now(), s.guard.Sends(f.at)
	if !f.named && !sent && s.guard.IsClean(f.state) {
		return
	}
	content, err := readPrefix(s.abs(f.at), f.state.Size)
	if err != nil {
		return
	}
	if isBinary(content) {
		s.guard.MarkClean(f.state, begun)
		return
	}
	if sent {
		f.content = content
	}
	if why, found := s.guard.Withheld(f.at, content); !found || why == secret.ValueReason {
		s.guard.MarkClean(f.state, begun)
	} else {
		f.why, f.values = why, s.guard.Values(f.at, content)
	}
}

func (s *secretSearch) add(f suspect) {
	if f.content != nil {
		s.sent = append(s.sent, f.content)
	}
	if f.why != "" {
		s.found.Files = append(s.found.Files, SecretFile{Path: s.abs(f.at), Why: f.why})
	} else if f.tool { // commands cannot see a secret one
		s.addTool(f)
	}
	s.found.Values = append(s.found.Values, f.values...)
}

// A link protects nothing: what it leads to in the tree is added in its place.
func (s *secretSearch) addTool(f suspect) {
	at := s.abs(f.at)
	if f.link {
		real, err := filepath.EvalSymlinks(at)
		if err != nil {
			return
		}
		if rel, err := filepath.Rel(s.root, real); err != nil || !filepath.IsLocal(rel) {
			return
		}
		at = real
	}
	s.found.Tools = append(s.found.Tools, at)
}

func inParallel(n int, do func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), 1+n/64)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wait.Wait()
}

func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), 8<<10)], 0) >= 0
}

func isThirdParty(dir string) bool {
	for name := range strings.SplitSeq(dir, "/") {
		switch name {
		case "node_modules", ".venv", "venv", "target", "__pycache__", "vendor", ".tox":
			return true
		}
	}
	return false
}

// The file may have grown or shrunk since its size was read.
func readPrefix(name string, size int64) ([]byte, error) {
	f, err := openPlain(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content := make([]byte, size)
	n, err := io.ReadFull(f, content)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return content[:n], err
}
