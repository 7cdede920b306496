//go:build linux

// Package e2e tests a fleet with a real Temporal server, real workers and a model server
// of its own, which it kills, stops and starves. make fleet-test runs it; go test alone
// skips it. It needs the programs temporal, hone and hone-fleet on the PATH. To watch the
// scenes in Temporal's pages, set HONE_FLEET_UI to a port.
//
// Whatever happens, each scene ends in the same way: every job has finished once, the
// bank is exact, and no reply was bought twice but those that were on their way when a
// worker was killed.
package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hone/fleet/flow"
)

// fleet is a server, a store and workers.
type fleet struct {
	t        *testing.T
	dir      string
	address  string
	store    string
	provider *provider
	server   *exec.Cmd
	workers  []*exec.Cmd
	kills    int
}

func newFleet(t *testing.T, think time.Duration) *fleet {
	t.Helper()
	if os.Getenv("HONE_FLEET_TEST") == "" {
		t.Skip("make fleet-test runs it")
	}
	for _, program := range []string{"temporal", "hone", "hone-fleet"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatal(err, "(make fleet-test)")
		}
	}
	dir := t.TempDir()
	f := &fleet{t: t, dir: dir, address: "127.0.0.1:" + strconv.Itoa(freePort(t)), store: filepath.Join(dir, "store"), provider: newProvider(t, think)}
	t.Cleanup(f.stop)
	f.startServer()
	return f
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts a program in the background. What it prints goes to a file.
func (f *fleet) start(name string, env []string, argv ...string) *exec.Cmd {
	f.t.Helper()
	out, err := os.OpenFile(filepath.Join(f.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer out.Close()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), env...), out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	return c
}

// startServer starts the server with the state that it had, and waits until it answers.
func (f *fleet) startServer() {
	f.t.Helper()
	_, port, _ := net.SplitHostPort(f.address)
	pages := "--headless"
	if port := os.Getenv("HONE_FLEET_UI"); port != "" {
		pages = "--ui-port=" + port
	}
	f.server = f.start("server", nil, "temporal", "server", "start-dev", pages, "--ip", "127.0.0.1", "--port", port,
		"--db-filename", filepath.Join(f.dir, "temporal.db"), "--log-level", "error")
	f.await("the server answers", time.Minute, func() bool {
		return f.command("list", "--json").Run() == nil
	})
}

// startWorker starts a worker with a home of its own, as on another machine.
func (f *fleet) startWorker(n int) *exec.Cmd {
	f.t.Helper()
	home := filepath.Join(f.dir, "machine"+strconv.Itoa(n))
	if err := os.MkdirAll(filepath.Join(home, "tmp"), 0o700); err != nil {
		f.t.Fatal(err)
	}
	env := []string{"HOME=" + home, "XDG_STATE_HOME=" + home + "/state", "XDG_CACHE_HOME=" + home + "/cache", "TMPDIR=" + home + "/tmp",
		"TEMPORAL_ADDRESS=" + f.address, "OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + f.provider.url}
	return f.start("worker"+strconv.Itoa(n), env, "hone-fleet", "worker", "--store", f.store, "--key", f.key(), "--parallel", "1", "--sandbox", "none")
}

// key returns the path of the key that the workers share.
func (f *fleet) key() string {
	f.t.Helper()
	path := filepath.Join(f.dir, "fleet.key")
	if _, err := os.Stat(path); err != nil {
		if err := os.WriteFile(path, []byte(strings.Repeat("key of a test ", 4)), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	return path
}

func (f *fleet) startWorkers(n int) {
	for i := range n {
		f.workers = append(f.workers, f.startWorker(i))
	}
}

// kill kills a worker as a power failure does, and starts another one.
func (f *fleet) kill(n int) {
	f.t.Helper()
	_ = f.workers[n].Process.Kill()
	_ = f.workers[n].Wait()
	f.kills++
	f.workers[n] = f.startWorker(n)
}

// stop ends everything.
func (f *fleet) stop() {
	for _, c := range append(f.workers, f.server) {
		_ = syscall.Kill(c.Process.Pid, syscall.SIGCONT)
		_ = c.Process.Signal(os.Interrupt)
	}
	for _, c := range append(f.workers, f.server) {
		_ = c.Wait()
	}
	if f.t.Failed() {
		for _, name := range []string{"server", "worker0", "worker1"} {
			text, _ := os.ReadFile(filepath.Join(f.dir, name+".log"))
			f.t.Logf("%s:\n%s", name, text[max(0, len(text)-4000):])
		}
	}
}

// command returns a command line of hone-fleet.
func (f *fleet) command(args ...string) *exec.Cmd {
	c := exec.Command("hone-fleet", args...)
	c.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+f.address, "HONE_FLEET_STORE="+f.store)
	return c
}

// run runs a command line of hone-fleet that must succeed, and returns its output.
func (f *fleet) run(args ...string) string {
	f.t.Helper()
	c := f.command(args...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		f.t.Fatalf("hone-fleet %s: %v\n%s%s", strings.Join(args, " "), err, out, said.String())
	}
	return string(out)
}

// read returns where a batch stands; ok is false while nobody answers.
func (f *fleet) read(id string) (s flow.Status, ok bool) {
	out, err := f.command("show", id, "--json").Output()
	return s, err == nil && json.Unmarshal(out, &s) == nil
}

// await waits until something holds.
func (f *fleet) await(what string, within time.Duration, holds func() bool) {
	f.t.Helper()
	for end := time.Now().Add(within); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("not within %s: %s", within, what)
		}
	}
}

// awaitDone waits for the number of jobs that are done.
func (f *fleet) awaitDone(id string, n int) {
	f.t.Helper()
	f.await(fmt.Sprintf("%d jobs are done", n), 3*time.Minute, func() bool {
		s, ok := f.read(id)
		return ok && s.Counts[flow.Done] >= n
	})
}

// awaitEnd waits for the end of a batch, and returns it.
func (f *fleet) awaitEnd(id string) (s flow.Status) {
	f.t.Helper()
	f.await("the batch ends", 10*time.Minute, func() bool {
		var ok bool
		s, ok = f.read(id)
		return ok && s.Ended
	})
	return s
}

// check of a job: it wants three files, and reports the first that is missing.
const check = `name=$(cat name)
for n in 1 2 3; do
	test -s "part$n.txt" || { echo "$name: part$n.txt is missing"; exit 1; }
done
`

// callsOfJob is the number of calls that a job needs: two in each of three rounds.
const callsOfJob = 6

// submit submits a batch with a repository for each job, and returns the repositories.
func (f *fleet) submit(id string, jobs, first int, flags ...string) (repos []string) {
	f.t.Helper()
	var list strings.Builder
	for i := range jobs {
		name := fmt.Sprintf("job-%02d", first+i)
		repo := filepath.Join(f.dir, "repositories", name)
		f.repository(repo, name)
		repos = append(repos, repo)
		fmt.Fprintln(&list, repo)
	}
	file := filepath.Join(f.dir, id+".txt")
	if err := os.WriteFile(file, []byte(list.String()), 0o600); err != nil {
		f.t.Fatal(err)
	}
	args := append([]string{"submit", "--id", id, "--repos", file, "--heartbeat", "4s", "-m", "openai/test"}, flags...)
	f.run(append(args, "--", "fix", "--check", "sh check.sh")...)
	return repos
}

// repository makes the repository of a job.
func (f *fleet) repository(dir, name string) {
	f.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	for file, text := range map[string]string{"name": name + "\n", "check.sh": check} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
	f.git(dir, "init", "--quiet", "--initial-branch=main")
	f.git(dir, "add", "--all")
	f.git(dir, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "--message=start")
}

func (f *fleet) git(dir string, args ...string) string {
	f.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
