package leg

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"hone/fleet/job"
	"hone/fleet/store"
	"hone/model"
	"hone/model/modeltest"
	"hone/sandbox/wall"
)

// hone is the program, which TestMain builds.
var hone string

// TestMain also plays a worker that is killed; see [play].
func TestMain(m *testing.M) {
	wall.Helper() // in a helper process this call does not return
	if order := os.Getenv("LEG_TEST_ORDER"); order != "" {
		os.Exit(play(order))
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "hone-leg-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		hone = filepath.Join(dir, "hone")
		build := exec.Command("go", "build", "-trimpath", "-o", hone, "./cmd/hone")
		build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
		if said, err := build.CombinedOutput(); err != nil {
			fmt.Printf("build hone: %v\n%s", err, said)
			return 1
		}
		return m.Run()
	}())
}

// order is what a worker that is a process of its own does.
type order struct {
	Hone, Dir, Store, Key string
	Env                   []string
	Leg                   job.Leg
}

// play works on a leg, and prints its outcome.
func play(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	s, err := store.Open(o.Store)
	if err != nil {
		panic(err)
	}
	w := &Worker{Store: s, Key: []byte(o.Key), Hone: o.Hone, Dir: o.Dir, Env: o.Env, Args: []string{"--sandbox=none"}}
	outcome, err := w.Leg(context.Background(), o.Leg)
	fmt.Println(outcome, err)
	return 0
}

// models is a server that lets a file count up by one in each round: the first call of a
// round writes the file, the second one says so.
type models struct {
	URL   string
	lock  sync.Mutex
	got   [][]byte      // the requests
	input int64         // the tokens of a request; 0 means 100
	hold  int           // the number of the request, from 1, that is not answered until go is closed; 0 holds none
	held  chan struct{} // is closed when that request is there
	free  chan struct{}
}

var counted = regexp.MustCompile(`value: (\d+)`)

func newModels(t *testing.T) *models {
	m := &models{held: make(chan struct{}), free: make(chan struct{})}
	s := httptest.NewServer(m)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	m.URL = s.URL
	return m
}

// holds lets the model wait with the answer to request n.
func (m *models) holds(n int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.hold = n
}

func (m *models) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m.lock.Lock()
	m.got = append(m.got, body)
	held := len(m.got) == m.hold
	m.lock.Unlock()
	if held {
		close(m.held)
		select {
		case <-m.free:
		case <-r.Context().Done():
			return
		}
	}
	turn := modeltest.Turn{Text: "I have written it.", Usage: &model.Usage{Input: cmp.Or(m.input, 100), Output: 10}}
	if !bytes.Contains(body, []byte(`"role":"tool"`)) {
		found := counted.FindAllSubmatch(body, -1)
		n, _ := strconv.Atoi(string(found[len(found)-1][1]))
		turn.Calls = []model.Call{{Name: "read", Args: `{"path": "a.txt"}`},
			{Name: "write", Args: fmt.Sprintf(`{"path": "a.txt", "content": "value: %d\n"}`, n+1)}}
	}
	var s modeltest.Server
	s.Script(turn)
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.ServeHTTP(w, r)
}

// requests returns how many requests there were, and how many of them repeat another.
func (m *models) requests() (all, again int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	seen := map[[32]byte]bool{}
	for _, body := range m.got {
		seen[sha256.Sum256(body)] = true
	}
	return len(m.got), len(m.got) - len(seen)
}

// key is the workers' key, and provider the key of the model.
const (
	key      = "a key of all workers, long enough"
	provider = "sk-test-Zq8vX3mN7pR2tY6wK4jH"
)

// fleet is what the workers of a test share.
type fleet struct {
	*testing.T
	models *models
	where  string // the store
	repo   string
	commit string
}

func newFleet(t *testing.T, files map[string]string) *fleet {
	t.Helper()
	f := &fleet{T: t, models: newModels(t), where: t.TempDir(), repo: t.TempDir()}
	f.git(f.repo, "init", "-q", "-b", "main")
	f.write("a.txt", "value: 0\n")
	f.write("other.txt", strings.Repeat("not touched\n", 1000))
	for name, text := range files {
		f.write(name, text)
	}
	f.git(f.repo, "add", "-A")
	f.git(f.repo, "commit", "-q", "-m", "one")
	f.commit = f.git(f.repo, "rev-parse", "HEAD")
	return f
}

func (f *fleet) write(name, text string) {
	f.Helper()
	path := filepath.Join(f.repo, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.Fatal(err)
	}
}

func (f *fleet) git(dir string, args ...string) string {
	f.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = dir, f.env()
	out, err := c.CombinedOutput()
	if err != nil {
		f.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (f *fleet) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "OPENAI_BASE_URL=" + f.models.URL + "/v1", "OPENAI_API_KEY=" + provider,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
}

// worker returns a worker in a directory of its own.
func (f *fleet) worker() *Worker {
	f.Helper()
	s, err := store.Open(f.where)
	if err != nil {
		f.Fatal(err)
	}
	return &Worker{Store: s, Key: []byte(key), Hone: hone, Dir: f.TempDir(), Env: f.env(), Args: []string{"--sandbox=none"}, Patience: 1}
}

// leg returns a leg of the job that counts up to n.
func (f *fleet) leg(n int) job.Leg {
	return job.Leg{Batch: "b", Job: job.Job{Name: "count", Repo: f.repo, Loop: "fix", Model: "openai/x",
		Args: []string{"--rounds", "9", "--check", fmt.Sprintf("cat a.txt; grep -q 'value: %d' a.txt", n)}}}
}

// done works on a leg, which must end with the exit status.
func (f *fleet) done(w *Worker, l job.Leg, exit int) job.Outcome {
	f.Helper()
	o, err := w.Leg(f.Context(), l)
	if err != nil || o.Exit != exit {
		f.Fatalf("outcome %+v, error %v; want status %d", o, err, exit)
	}
	f.clean(w)
	return o
}

// clean checks that a worker keeps nothing of its legs.
func (f *fleet) clean(w *Worker) {
	f.Helper()
	for _, below := range []string{"*", "worker-1/*"} {
		found, _ := filepath.Glob(filepath.Join(w.Dir, below))
		for _, path := range found {
			if name := filepath.Base(path); name != "worker-1" && name != "worker-1.lock" {
				f.Errorf("%s is left", path)
			}
		}
	}
}

// result returns the contents of a file in the result, and checks that this is one commit
// on that of the job.
func (f *fleet) result(o job.Outcome, name string) string {
	f.Helper()
	content := f.object(o.Result)
	file := filepath.Join(f.TempDir(), "x.bundle")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		f.Fatal(err)
	}
	f.git(f.repo, "fetch", "-q", file, "refs/heads/hone/b/count:refs/heads/result")
	if parent := f.git(f.repo, "rev-parse", "result^"); parent != f.commit {
		f.Errorf("the result is based on %s", parent)
	}
	text := f.git(f.repo, "show", "result:"+name)
	f.git(f.repo, "update-ref", "-d", "refs/heads/result")
	return text
}

// stored returns all that the store has, decompressed, by name.
func (f *fleet) stored() map[string][]byte {
	f.Helper()
	s := f.worker().Store
	names, err := s.List(f.Context(), "")
	if err != nil {
		f.Fatal(err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		content := f.object(name)
		all[name] = content
		lines := bytes.SplitN(content, []byte("\n"), 3) // the part of an entry is after two lines
		if z, err := zstd.NewReader(bytes.NewReader(lines[len(lines)-1])); err == nil {
			if plain, err := io.ReadAll(z); err == nil {
				all[name] = append(content, plain...)
			}
			z.Close()
		}
	}
	return all
}

// object returns what the store has under a name.
func (f *fleet) object(name string) []byte {
	f.Helper()
	in, err := f.worker().Store.Get(f.Context(), name)
	if err != nil {
		f.Fatal(err)
	}
	defer in.Close()
	content, err := io.ReadAll(in)
	if err != nil {
		f.Fatal(err)
	}
	return content
}

// remove lets the store lose an object, if it has it.
func (f *fleet) remove(name string) {
	f.Helper()
	if err := os.Remove(filepath.Join(f.where, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.Fatal(err)
	}
}

// replaces lets the store have something else under a name.
func (f *fleet) replaces(name string, content []byte) {
	f.Helper()
	f.remove(name)
	if err := f.worker().Store.Create(f.Context(), name, bytes.NewReader(content)); err != nil {
		f.Fatal(err)
	}
}
