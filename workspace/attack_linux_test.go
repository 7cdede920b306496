package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"hone/internal/crashtest/waittest"
	"hone/internal/disktest"
	"hone/workspace/internal/treetest"
	"hone/workspace/treepath"
)

// TestMain also lets the test binary act as another process: one that swaps
// directories, or one that is killed while it applies a change.
func TestMain(m *testing.M) {
	os.Exit(treetest.Main(m, map[string]func(args []string) error{
		"swapper": treetest.Swap,
		"victim":  func(args []string) error { return applyAndDie(args[0], args[1]) },
		"nobody":  func(args []string) error { return applyAsNobody(args[0], args[1:]) },
		"reader":  func(args []string) error { return printManifest(args[0]) },
	}))
}

// While Apply writes thousands of files into d/e, another process swaps d/e.
func TestApplyUnderAttack(t *testing.T) {
	treetest.InMemory(t)
	tree := newTree(t, nil, Options{})
	attack := treetest.StartAttack(t, tree.Dir())
	length := 10 * time.Second
	if testing.Short() {
		length = 2 * time.Second
	}
	count := map[string]int{}
	tried := func() bool { return count["written"] > 0 && count["denied"] > 0 && count["refused"] > 0 }
	began := time.Now()
	for i := 0; time.Since(began) < length || !tried() && time.Since(began) < waittest.Limit; i++ {
		count[attemptChange(t, tree, i)]++
	}
	if t.Log(count); !tried() {
		t.Error("the attack tried nothing")
	}
	attack.Stop(t)
}

// attemptChange reviews and applies one change, and returns the outcome.
func attemptChange(t *testing.T, tree *Tree, i int) string {
	if content, _, err := tree.Read("d/e/x"); err == nil && string(content) == "secret" {
		t.Error("read through a link that stays inside")
	}
	ch := Change{Edits: []Edit{write(fmt.Sprintf("d/e/f%d", i), "new"), write(fmt.Sprintf("d/e/n%d/f", i), "new"), write("d/e/x", fmt.Sprint(i))}}
	verdicts, err := tree.Review(ch, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Ruling != Allow {
			return "denied"
		}
	}
	s := objects{}
	s.entry("x")
	s.entry(fmt.Sprint(i - 1))
	var list []Delta
	for at, v := range verdicts {
		s.entry(string(ch.Edits[at].Content))
		list = append(list, v.Delta())
	}
	if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
		return "refused"
	}
	return "written"
}

// largeChange returns a change with every kind of edit, large enough to be
// killed in the middle.
func largeChange() (files map[string]string, ch Change) {
	files = map[string]string{"keep": "x"}
	for i := range 60 {
		old, gone := fmt.Sprintf("d%d/old%d", i%3, i), fmt.Sprintf("gone%d", i)
		files[old], files[gone] = "old", "old"
		ch.Edits = append(ch.Edits, write(old, "new"), write(fmt.Sprintf("new%d/f%d", i%5, i), "new"), Edit{Path: gone, Delete: true})
	}
	return files, ch
}

// applyAndDie applies the large change and kills itself at one step.
func applyAndDie(dir, at string) error {
	tree, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	left, err := strconv.Atoi(at)
	if err != nil {
		return err
	}
	_, ch := largeChange()
	verdicts, err := tree.Review(ch, Rules{})
	if err != nil {
		return err
	}
	s := objects{}
	var list []Delta
	for i, v := range verdicts {
		s.entry(string(ch.Edits[i].Content))
		list = append(list, v.Delta())
	}
	tree.fault = func(string) error {
		if left--; left < 0 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}
	fmt.Println("applying")
	_, err = tree.Apply(context.Background(), list, s.open)
	return err
}

// Apply after a crash at any step completes the change and leaves nothing else
// behind.
func TestApplyAfterCrash(t *testing.T) {
	treetest.InMemory(t)
	for at, died := 0, true; died; at += 7 {
		died = crashAt(t, func(cmd *exec.Cmd) error { return cmd.Run() }, strconv.Itoa(at))
		if !died && at < 200 {
			t.Fatalf("there are only %d steps", at)
		}
	}
	for i := range 20 {
		crashAt(t, func(cmd *exec.Cmd) error {
			out, err := cmd.StdoutPipe()
			if err != nil {
				return err
			}
			if err := cmd.Start(); err != nil {
				return err
			}
			_, _ = out.Read(make([]byte, 1))
			time.Sleep(time.Duration(i) * 3 * time.Millisecond)
			return errors.Join(cmd.Process.Kill(), cmd.Wait())
		}, "1000000")
	}
}

// crashAt runs a process that is killed, applies the change again and compares.
// It reports whether the process died.
func crashAt(t *testing.T, run func(*exec.Cmd) error, at string) bool {
	t.Helper()
	files, ch := largeChange()
	tree := newTree(t, files, Options{})
	list, s := edits(t, tree, ch)
	err := run(treetest.Command(t, "victim", tree.Dir(), at))
	if err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatal(err)
	}
	if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
		t.Fatalf("killed at %s: %v", at, err)
	}
	want := map[string]string{"keep": "x"}
	for _, e := range ch.Edits {
		if !e.Delete {
			want[e.Path], want[treepath.Parent(e.Path)+"/"] = "new", ""
		}
	}
	if diff := cmp.Diff(want, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Fatalf("killed at %s:\n%s", at, diff)
	}
	return err != nil
}

// On a full disk Apply changes nothing and leaves nothing behind.
func TestApplyOnFullDisk(t *testing.T) {
	dir := disktest.Small(t, "1m")
	treetest.Put(t, dir, "a", "old")
	tree, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	list, s := edits(t, tree, Change{Edits: []Edit{write("a", "new"), write("n/b", strings.Repeat("x", 600<<10)), write("n/c", strings.Repeat("y", 600<<10))}})
	if _, err := tree.Apply(t.Context(), list, s.open); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Apply = %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "old"}, treetest.Contents(t, dir)); diff != "" {
		t.Error(diff)
	}
	if _, err := tree.Apply(t.Context(), list[:2], s.open); err != nil {
		t.Errorf("a change that fits: %v", err)
	}
}

// FIFOs and devices are listed but never opened.
func TestDevices(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "d/x": "1"}, Options{})
	if err := unix.Mkfifo(filepath.Join(tree.Dir(), "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := manifest(t, tree, nil)
	if len(m) != 3 || m[2].Path != "fifo" || m[2].Kind != Other {
		t.Errorf("manifest %+v", m)
	}
	var refused *treepath.RefusedError
	if _, _, err := tree.Read("fifo"); !errors.As(err, &refused) {
		t.Errorf("Read = %v", err)
	}
	for _, e := range []Edit{write("fifo", "x"), {Path: "fifo", Delete: true}} {
		verdicts, err := tree.Review(Change{Edits: []Edit{e}}, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if got := outcome(verdicts[0]); got != "deny fifo: it is not a regular file" {
			t.Error(got)
		}
	}
}

// An unreadable file is an entry with a note, and so is an unreadable
// directory.
func TestManifestUnreadable(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "closed": "2", "shut/x": "3"}, Options{})
	treetest.Chmod(t, tree.Dir(), "closed", 0)
	treetest.Chmod(t, tree.Dir(), "shut", 0)
	defer treetest.Chmod(t, tree.Dir(), "shut", 0o700)
	text, err := treetest.Command(t, "reader", tree.Dir()).Output()
	if err != nil {
		t.Fatal(err)
	}
	m, err := DecodeManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range m {
		got = append(got, fmt.Sprint(e.Path, " ", e.Kind, " ", e.Digest != "", " ", e.Note))
	}
	want := []string{"a file true ", "closed file false permission denied", "shut other false permission denied"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// printManifest prints a tree's manifest without the privileges of root.
func printManifest(dir string) error {
	tree, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	if err := treetest.DropRights(); err != nil {
		return err
	}
	m, err := tree.Manifest(context.Background(), nil)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(m.Encode())
	return err
}
