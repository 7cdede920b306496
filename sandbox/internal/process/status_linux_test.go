package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"hone/internal/crashtest/waittest"
)

func TestMark(t *testing.T) {
	t.Setenv(marker, "place.inner")
	got := strings.Join(mark([]string{"A=1", marker + "=outer"}), " ")
	if want := "A=1 " + marker + "=outer,place.inner"; got != want {
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

// Another variable that contains a mark is not one.
func TestIsMarked(t *testing.T) {
	for variable, want := range map[string]bool{marker + "=outer.a,place.inner": true, "NOTE=" + marker + "=place.inner": false, "X" + marker + "=place": false, marker + "=other.b": false} {
		cmd := exec.Command("sleep", "60")
		cmd.Env = []string{"A=1", variable}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waittest.Until(func() bool {
			env, _ := readProc(cmd.Process.Pid, "environ")
			return strings.Contains(string(env), variable)
		})
		if got := isMarked(cmd.Process.Pid, "place"); got != want {
			t.Errorf("%s: %v", variable, got)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// The kernel has the fields that are counted as memory, of what was swapped out as well.
func TestFieldsOfMemory(t *testing.T) {
	for file, names := range map[string][]string{"status": counted, "smaps_rollup": measured} {
		text, err := readProc(os.Getpid(), file)
		for _, name := range append([]string{map[string]string{"status": "VmSwap:", "smaps_rollup": "SwapPss:"}[file]}, names...) {
			if err != nil || !strings.Contains(string(text), "\n"+name) {
				t.Errorf("%s has no field %s (%v)", file, name, err)
			}
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
