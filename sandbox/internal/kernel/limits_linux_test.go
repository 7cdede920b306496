package kernel

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

// limitsOf returns the soft and hard limits of a restrained command by name.
func limitsOf(t *testing.T, u runtest.User, r restraint) map[string][2]string {
	t.Helper()
	got := restrainAs(t, u, runtest.TestBinary(t, u), restrained{Under: r, Argv: []string{"/bin/cat", "/proc/self/limits"}, Dir: "/"})
	if got.Fail != "" || got.Exit != 0 {
		t.Fatalf("%+v", got)
	}
	all := map[string][2]string{}
	for line := range strings.Lines(got.Output) {
		if name := strings.TrimSpace(line[:min(26, len(line))]); len(line) > 26 {
			if f := strings.Fields(line[26:]); len(f) >= 2 {
				all[name] = [2]string{f[0], f[1]}
			}
		}
	}
	return all
}

func TestLimitsAreSet(t *testing.T) {
	for _, u := range runtest.Users() {
		t.Run(u.Name, func(t *testing.T) {
			got := limitsOf(t, u, limited(sandbox.Limits{Memory: 1 << 30, Processes: 100}))
			if got["Max core file size"] != [2]string{"0", "0"} {
				t.Errorf("core files: %v", got["Max core file size"])
			}
			soft, _ := strconv.Atoi(got["Max processes"][0])
			if soft < 100 || soft > 100+100_000 {
				t.Errorf("processes: %v", got["Max processes"])
			}
		})
	}
}

func TestNoLimitIsSetUnasked(t *testing.T) {
	u := runtest.Users()[0]
	before := limitsOf(t, u, limited(sandbox.Limits{Processes: -1, Memory: -1}))
	var tasks unix.Rlimit
	must(0, unix.Getrlimit(unix.RLIMIT_NPROC, &tasks))
	number := func(n uint64) string {
		if n == unix.RLIM_INFINITY {
			return "unlimited"
		}
		return strconv.FormatUint(n, 10)
	}
	if want := [2]string{number(tasks.Cur), number(tasks.Max)}; before["Max processes"] != want {
		t.Errorf("processes: %v, want %v", before["Max processes"], want)
	}
}

func limited(l sandbox.Limits) restraint {
	return restraint{Policy: sandbox.Policy{Wall: sandbox.NoWall, Limits: l}}
}

// A command cannot start more processes than its limit, however many the user already
// has, and its parent is not affected.
func TestProcessesAreLimited(t *testing.T) {
	all := runtest.Users()
	u := all[len(all)-1]
	if u.ID == 0 {
		t.Skip("SKIPPED: the limit does not bind root, and there is no other user")
	}
	const most = 30
	script := `i=0; while [ $i -lt 200 ]; do sleep 10 & i=$((i+1)); done; wait`
	got := restrainAs(t, u, runtest.TestBinary(t, u), restrained{Under: limited(sandbox.Limits{Processes: most}), Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}})
	if got.Fail != "" || !strings.Contains(strings.ToLower(got.Output), "fork") {
		t.Errorf("%+v", got)
	}
}

func TestTasksOfCountsThreads(t *testing.T) {
	threads := must(os.ReadDir("/proc/self/task"))
	if own := tasksOf(uint32(os.Getuid())); own < uint64(len(threads)) {
		t.Errorf("%d tasks, of which this process alone has %d", own, len(threads))
	}
	all := runtest.Users()
	u := all[len(all)-1]
	if u.ID == 0 {
		return
	}
	const started = 5
	for range started {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.ID, Gid: u.ID}}
		if uint32(os.Getuid()) == u.ID {
			cmd.SysProcAttr = nil
		}
		must(0, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	}
	if tasks := tasksOf(u.ID); tasks < started {
		t.Errorf("%d tasks of a user who has %d at least", tasks, started)
	}
}

// After takeSpare the caller has the spare, and the command no longer does.
func TestSpareIsTakenFromTheCommand(t *testing.T) {
	u := runtest.Users()[len(runtest.Users())-1]
	script := `i=0; while [ $i -lt 100 ] && ! [ "$(ulimit -Hu)" = "$(ulimit -Su)" ]; do sleep 0.02; i=$((i+1)); done; ulimit -Hu; grep "Max processes" /proc/$PPID/limits`
	got := restrainAs(t, u, runtest.TestBinary(t, u), restrained{Under: limited(sandbox.Limits{Processes: 1000}), Argv: []string{"/bin/bash", "-c", script}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}})
	words := strings.Fields(got.Output) // such as: 1012 Max processes 1076 1076 processes
	if len(words) != 6 {
		t.Fatalf("%+v", got)
	}
	most, _ := strconv.Atoi(words[0])
	if own, _ := strconv.Atoi(words[3]); most < 1000 || own != most+spareTasks {
		t.Errorf("the caller has %d, the command %d", own, most)
	}
}

// The machine's root, whom no RLIMIT_NPROC binds, cannot start more processes in a cage, also not
// in sessions of their own.
func TestCageLimitsRoot(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `read go; for i in $(seq 200); do setsid sleep 1000 & done`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in := must(cmd.StdinPipe())
	must(0, cmd.Start())
	c := NewCage(10, cmd.Process.Pid)
	if c == nil {
		cmd.Process.Kill()
		cmd.Wait()
		t.Skip("SKIPPED: this user can make no control group")
	}
	defer c.Remove()
	must(0, in.Close())
	err := cmd.Wait()
	left := strings.Fields(string(must(os.ReadFile(c.dir + "/cgroup.procs"))))
	for _, pid := range left {
		unix.Kill(must(strconv.Atoi(pid)), unix.SIGKILL)
	}
	for range 100 { // until init has reaped them
		if len(must(os.ReadFile(c.dir+"/cgroup.procs"))) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err == nil || len(left) > 10+spareTasksOfHelpers {
		t.Errorf("%d processes are left of a limit of 10: %v", len(left), err)
	}
}
