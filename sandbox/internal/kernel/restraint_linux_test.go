package kernel

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

// restrainedName is the name of the test binary when it restrains itself and starts a
// command. It reads its task from standard input.
const restrainedName = "hone-restrained"

// restrained is a command to start under a restraint.
type restrained struct {
	Under restraint
	Argv  []string // {probesName} tries the scene's probes in a program of its own
	Dir   string
	Env   []string
	Scene scene
}

// restraint is what a command is started under. The zero restraint is that of the hidden wall, which
// leaves all files open to Landlock.
type restraint struct {
	Policy  sandbox.Policy
	Entries []sandbox.Entry // that Landlock enforces
}

func behind(wall sandbox.Wall, entries ...sandbox.Entry) restraint {
	return restraint{Policy: sandbox.Policy{Wall: wall}, Entries: entries}
}

// outcome is the result of a restrained command.
type outcome struct {
	Fail   string // the restraint's error
	Exit   int
	Output string
	Took   time.Duration // by the restraint
}

// restrainedChild does the work of the test binary's other names, and exits.
func restrainedChild() {
	switch os.Args[0] {
	case restrainedName:
	case probesName:
		runProbes()
		os.Exit(0)
	case callsName:
		timeCalls()
		os.Exit(0)
	default:
		return
	}
	var task restrained
	if err := gob.NewDecoder(os.Stdin).Decode(&task); err != nil {
		panic(err)
	}
	must(0, json.NewEncoder(os.Stdout).Encode(task.do()))
	os.Exit(0)
}

// do starts the command as walls do: from a restrained thread of a process whose other
// threads are not restrained.
func (task restrained) do() (got outcome) {
	file := os.NewFile(uintptr(must(unix.MemfdCreate("output", unix.MFD_CLOEXEC))), "output")
	cmd := exec.Command(task.Argv[0], task.Argv[1:]...)
	if name := task.Argv[0]; name == probesName || name == callsName {
		cmd = &exec.Cmd{Path: "/proc/self/exe", Args: task.Argv}
	}
	cmd.Stdin = sceneFile(task.Scene)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = task.Dir, task.Env, file, file
	var err error
	OnOwnThread(func() {
		began := time.Now()
		_, err = restrain(task.Under.Policy, task.Under.Entries)
		if got.Took = time.Since(began); err == nil {
			err = cmd.Start()
		}
	})
	if err != nil {
		return outcome{Fail: err.Error()}
	}
	TakeSpare(cmd.Process.Pid)
	_ = cmd.Wait()
	got.Exit = cmd.ProcessState.ExitCode()
	must(file.Seek(0, io.SeekStart))
	got.Output = string(must(io.ReadAll(file)))
	return got
}

// sceneFile returns a file in memory that contains a scene.
func sceneFile(s scene) *os.File {
	f := os.NewFile(uintptr(must(unix.MemfdCreate("scene", unix.MFD_CLOEXEC))), "scene")
	must(0, json.NewEncoder(f).Encode(s))
	must(f.Seek(0, io.SeekStart))
	return f
}

// restrainAs runs a task as a user in a separate process.
func restrainAs(t testing.TB, u runtest.User, binary string, task restrained) outcome {
	t.Helper()
	if task.Under.Entries != nil {
		task.Under.Entries = append(task.Under.Entries, sandbox.Entry{Path: binary, Access: sandbox.AccessRead})
	}
	cmd := &exec.Cmd{Path: binary, Args: []string{restrainedName}, Dir: "/", Env: []string{}}
	var text bytes.Buffer
	must(0, gob.NewEncoder(&text).Encode(task))
	cmd.Stdin = &text
	if u.ID != uint32(os.Getuid()) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.ID, Gid: u.ID}}
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var got outcome
	if err := json.Unmarshal(said, &got); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return got
}

// requireLandlock skips the test unless this kernel has a Landlock ABI.
func requireLandlock(t testing.TB, abi int) {
	t.Helper()
	if has := landlockABI(); has < abi {
		t.Skipf("SKIPPED: Landlock has ABI %d here, and the test needs %d", has, abi)
	}
}

// landlocked returns a restraint that is the only wall around a directory.
func landlocked(entries ...sandbox.Entry) restraint {
	entries = heldBy(sandbox.Landlock, entries)
	for _, dir := range []string{"/usr", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache"} { // for programs that are linked dynamically
		if info, err := os.Lstat(dir); err == nil && info.Mode()&os.ModeSymlink == 0 {
			entries = append(entries, sandbox.Entry{Path: dir, Access: sandbox.AccessRead, Dir: info.IsDir()})
		}
	}
	return behind(sandbox.Landlock, entries...)
}

func TestRestraintHolds(t *testing.T) {
	requireLandlock(t, 6)
	for _, u := range runtest.Users() {
		t.Run(u.Name, func(t *testing.T) {
			s := makeScene(t, u)
			r := landlocked(sandbox.Entry{Path: s.Inside, Access: sandbox.AccessWrite, Dir: true}, sandbox.Entry{Path: s.Lib, Access: sandbox.AccessRead, Dir: true})
			r.Policy.Doors = []sandbox.Door{{Addr: fmt.Sprintf("127.0.0.1:%d", s.Door)}}
			task := restrained{Under: r, Argv: []string{probesName}, Dir: s.Inside, Scene: s}
			checkProbes(t, restrainAs(t, u, runtest.TestBinary(t, u), task), strictly)
			s.check(t)
		})
	}
}

// The same behind mounts, which this test does not make: files are restrained as if
// all were shown, and only the walls restrict the network.
func TestRestraintBehindMountsHolds(t *testing.T) {
	requireLandlock(t, 6)
	for _, u := range runtest.Users() {
		t.Run(u.Name, func(t *testing.T) {
			s := makeScene(t, u)
			shown := []sandbox.Entry{{Path: "/", Access: sandbox.AccessRead, Dir: true}, {Path: "/dev", Access: sandbox.AccessWrite, Dir: true}, {Path: s.Inside, Access: sandbox.AccessWrite, Dir: true}}
			task := restrained{Under: behind(sandbox.Hidden, shown...), Argv: []string{probesName}, Dir: s.Inside, Scene: s}
			checkProbes(t, restrainAs(t, u, runtest.TestBinary(t, u), task), behindWalls)
		})
	}
}

// Without a restraint the probes get through, which shows that they work.
func TestProbesGetThroughUnrestrained(t *testing.T) {
	for _, u := range runtest.Users() {
		t.Run(u.Name, func(t *testing.T) {
			s := makeScene(t, u)
			s.Free = true
			task := restrained{Under: behind(sandbox.NoWall), Argv: []string{probesName}, Dir: s.Inside, Scene: s}
			checkProbes(t, restrainAs(t, u, runtest.TestBinary(t, u), task), unrestrained)
		})
	}
}

// checkProbes compares the results of the probes with one column of their table.
func checkProbes(t *testing.T, got outcome, want func(probe) error) {
	t.Helper()
	if got.Fail != "" || got.Exit != 0 {
		t.Fatalf("%+v", got)
	}
	var seen map[string]syscall.Errno
	if err := json.Unmarshal([]byte(got.Output), &seen); err != nil {
		t.Fatalf("%v: %s", err, got.Output)
	}
	for _, p := range probes() {
		want := want(p)
		if want == errAny {
			continue
		}
		is, ok := seen[p.name]
		if !ok {
			t.Errorf("%s was not tried", p.name)
			continue
		}
		if saw := errnoOf(is); !errors.Is(saw, want) {
			t.Errorf("%s: %v, want %v", p.name, saw, want)
		}
	}
}

// errnoOf returns the error with a number; nil for 0.
func errnoOf(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// statusField returns a field from the text of /proc/self/status.
func statusField(text, field string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func TestRestraintDropsPrivileges(t *testing.T) {
	requireLandlock(t, 1)
	for _, u := range runtest.Users() {
		t.Run(u.Name, func(t *testing.T) {
			task := restrained{Under: restraint{sandbox.Policy{Wall: sandbox.Landlock}, []sandbox.Entry{{Path: "/", Access: sandbox.AccessRead, Dir: true}}}, Argv: []string{"/bin/cat", "/proc/self/status"}, Dir: "/"}
			got := restrainAs(t, u, runtest.TestBinary(t, u), task)
			if got.Fail != "" || got.Exit != 0 {
				t.Fatalf("%+v", got)
			}
			want := map[string]string{"NoNewPrivs": "1", "Seccomp": "2"}
			for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
				want[set] = "0000000000000000"
				if u.ID == 0 {
					want[set] = "0000000000000002" // CAP_DAC_OVERRIDE: root's power over modes
				}
			}
			for field, value := range want {
				if is := statusField(got.Output, field); is != value {
					t.Errorf("%s is %s, want %s", field, is, value)
				}
			}
		})
	}
}

// The started command is restrained, and the other threads of this process are not.
func TestRestraintIsOfOneThread(t *testing.T) {
	requireLandlock(t, 1)
	u := runtest.Users()[0]
	binary := runtest.TestBinary(t, u)
	task := restrained{Under: behind(sandbox.Hidden, sandbox.Entry{Path: "/", Access: sandbox.AccessRead, Dir: true}),
		Argv: []string{"/bin/sh", "-c", "grep -h Seccomp: /proc/$PPID/task/*/status | sort -u | wc -l"}, Dir: "/"}
	got := restrainAs(t, u, binary, task)
	if strings.TrimSpace(got.Output) != "2" {
		t.Errorf("states of the threads: %+v, want two", got)
	}
}

func TestRestraintSaysWhatIsOpen(t *testing.T) {
	strict := landlocked(sandbox.Entry{Path: "/w", Access: sandbox.AccessWrite, Dir: true}, sandbox.Entry{Path: "/w/.git", Access: sandbox.AccessRead}, sandbox.Entry{Path: "/w/.env", Access: sandbox.AccessNone})
	for _, test := range []struct {
		name    string
		r       restraint
		abi     int
		seccomp bool
		says    []string
		not     []string
	}{
		{"strict", strict, 7, true, []string{"outside the policy", "/w/.git", "/w/.env", "listen"}, []string{"EXDEV", "truncated", "signalled", "doors"}},
		{"old", strict, 1, true, []string{"EXDEV", "truncated", "signalled", "ioctl"}, []string{"listen"}},
		{"mounts", behind(sandbox.Hidden, strict.Entries...), 7, true, nil, []string{"outside the policy", "/w/.env"}},
		{"no seccomp", behind(sandbox.Hidden), 7, false, []string{"system calls are not filtered"}, nil},
		{"strict, no seccomp", strict, 7, false, []string{"all kinds of sockets"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, unheld := grants(test.r.Entries, handledBy(test.r.Policy, test.abi).Handled_access_fs)
			said := strings.Join(open(test.r.Policy, unheld, test.abi, test.seccomp), "\n")
			for _, words := range test.says {
				if !strings.Contains(said, words) {
					t.Errorf("does not say %q:\n%s", words, said)
				}
			}
			for _, words := range test.not {
				if strings.Contains(said, words) {
					t.Errorf("says %q:\n%s", words, said)
				}
			}
		})
	}
}

// scene is the target of the probes.
type scene struct {
	Inside, Lib, Outside string
	Listener, Door       int // TCP ports
	Path                 string
	Abstract             string
	Victim               int
	Free                 bool // only harmless probes are tried
}

// makeScene makes a scene for a user. The victim is this process.
func makeScene(t *testing.T, u runtest.User) scene {
	t.Helper()
	s := scene{Inside: runtest.OpenDir(t, u), Lib: runtest.OpenDir(t, u), Outside: runtest.OpenDir(t, u)}
	for _, dir := range []string{s.Inside, s.Lib, s.Outside} {
		s.file(t, u, filepath.Join(dir, "file"), 0o644)
		s.file(t, u, filepath.Join(dir, "program"), 0o755)
		sub := filepath.Join(dir, "sub")
		must(0, os.Mkdir(sub, 0o755))
		must(0, os.Chown(sub, int(u.ID), int(u.ID)))
	}
	port := func() int { return runtest.Listen(t, func(c net.Conn) { c.Close() }).(*net.TCPAddr).Port }
	s.Listener, s.Door = port(), port()
	s.Path, s.Abstract = filepath.Join(s.Outside, "socket"), fmt.Sprintf("@hone-test-%d-%s", os.Getpid(), u.Name)
	for _, name := range []string{s.Path, s.Abstract} {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	must(0, os.Chmod(s.Path, 0o777))
	victim := exec.Command("sleep", "1000")
	if u.ID != uint32(os.Getuid()) {
		victim.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.ID, Gid: u.ID}}
	}
	must(0, victim.Start())
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })
	s.Victim = victim.Process.Pid
	return s
}

func (s scene) file(t *testing.T, u runtest.User, path string, mode os.FileMode) {
	t.Helper()
	must(0, os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), mode))
	must(0, os.Chmod(path, mode))
	must(0, os.Chown(path, int(u.ID), int(u.ID)))
}

// check inspects the outside afterwards.
func (s scene) check(t *testing.T) {
	t.Helper()
	for _, dir := range []string{s.Lib, s.Outside} {
		text, err := os.ReadFile(filepath.Join(dir, "file"))
		if err != nil || string(text) != "#!/bin/sh\nexit 0\n" {
			t.Errorf("%s/file: %q, %v", dir, text, err)
		}
		for _, name := range []string{"new", "newdir", "newlink", "sub/moved"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s/%s was made", dir, name)
			}
		}
	}
	if err := unix.Kill(s.Victim, 0); err != nil {
		t.Errorf("the victim: %v", err)
	}
}
