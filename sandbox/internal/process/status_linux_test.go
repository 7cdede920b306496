package process

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hone/internal/waittest"
)

func TestMarkEnv(t *testing.T) {
	got := strings.Join(mark{text: "inner"}.env([]string{"A=1", marker + "=outer"}), " ")
	if want := "A=1 " + marker + "=outer,inner"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestParseStatus(t *testing.T) {
	text := "42 (a) b (c) Z 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0"
	want := Status{process: process{42, 12345}, Parent: 7, Group: 8, Session: 9, Threads: 1, Zombie: true}
	if got, ok := parseStatus(42, text); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, short := range []string{"", "42 (a) S 1", ")"} {
		if _, ok := parseStatus(42, short); ok {
			t.Errorf("parseStatus(%q) was read", short)
		}
	}
}

// A mark finds the processes of what is below it, and of nothing else.
func TestMarksAreNested(t *testing.T) {
	place := placeMark(1 << 40)
	first, second, elsewhere := place.process(1), place.process(2), placeMark(1<<41).process(1)
	within := func(m, outer mark) bool {
		return m.limit-outer.limit < outer.span && strings.Contains(m.text, outer.text)
	}
	for _, c := range []struct {
		inner, outer mark
		want         bool
	}{
		{first.command(7), first.command(7), true},
		{first.command(7), first, true},
		{first.command(7), place, true},
		{first.command(7), first.command(8), false},
		{first.command(7), second, false},
		{elsewhere.command(7), place, false},
		{elsewhere.command(7), first, false},
		{placeMark(math.MaxUint64).process(math.MaxUint64).command(math.MaxUint64), placeMark(math.MaxUint64), true},
	} {
		if got := within(c.inner, c.outer); got != c.want {
			t.Errorf("%+v within %+v: %v", c.inner, c.outer, got)
		}
	}
}

// An environment may be longer than one read.
func TestReadProc(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	for i := range 20 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("V%d=%s", i, strings.Repeat("x", 1000*i)))
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var got []byte
	var err error
	waittest.Until(func() bool { // it is empty while the program is still being started
		got, err = readProc(cmd.Process.Pid, "environ")
		return len(got) > 0 || err != nil
	})
	if want := strings.Join(cmd.Env, "\x00") + "\x00"; err != nil || string(got) != want {
		t.Errorf("%d bytes (%v), want %d", len(got), err, len(want))
	}
	if _, err := readProc(cmd.Process.Pid, "nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

// descendants finds those of every depth, but not below an older child, and says that it
// may have missed some if a process has ended.
func TestDescendants(t *testing.T) {
	start := func(script string) (cmd *exec.Cmd, born uint64, below int) {
		cmd = exec.Command("sh", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = fmt.Fscan(out, &below)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
		s, _ := ReadStatus(cmd.Process.Pid)
		return cmd, s.Born, below
	}
	const script = `sh -c 'sh -c "echo \$\$; exec sleep 1000"; true'; true`
	older, _, belowOlder := start(script)
	time.Sleep(20 * time.Millisecond) // the kernel counts the time of a start in hundredths of a second
	younger, born, belowYounger := start(script)
	all, complete := descendants(born)
	if _, ok := children(os.Getpid()); !ok {
		t.Skip("the kernel does not list children")
	}
	has := func(pid int) bool { return slices.ContainsFunc(all, func(s Status) bool { return s.PID == pid }) }
	if !complete || !has(younger.Process.Pid) || !has(belowYounger) {
		t.Errorf("%v of %d and %d, complete: %t", all, younger.Process.Pid, belowYounger, complete)
	}
	if has(older.Process.Pid) || has(belowOlder) {
		t.Errorf("%v has %d or %d", all, older.Process.Pid, belowOlder)
	}
	if all, _ := descendants(0); len(all) < 7 {
		t.Errorf("%v are not all", all)
	}
	if err := younger.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := waitid(unix.P_PID, younger.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if all, complete := descendants(born); complete {
		t.Errorf("%v are said to be all, after the end of %d", all, younger.Process.Pid)
	}
}
