package main

import (
	"bufio"
	"io"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// onTTY starts hone on a terminal of its own, and returns what the terminal shows.
func (w *acting) onTTY(args ...string) (*exec.Cmd, *bufio.Reader) {
	w.t.Helper()
	control, tty, err := openTerminal()
	if err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command("hone", args...)
	c.Dir, c.Env = w.dir, w.env
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	tty.Close()
	w.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait(); control.Close() })
	return c, bufio.NewReader(control)
}

// untilShown reads a terminal until it shows a text, and returns everything up to the end of it.
func untilShown(t *testing.T, terminal *bufio.Reader, text string) string {
	t.Helper()
	var shown strings.Builder
	for !strings.HasSuffix(shown.String(), text) {
		b, err := terminal.ReadByte()
		if err != nil {
			t.Fatalf("%v before %q:\n%s", err, text, &shown)
		}
		shown.WriteByte(b)
	}
	return shown.String()
}

// TestWebAtTheTerminal: on the page of a run in a terminal the user answers the question that
// waits there, and stops the run. The page of another process says where the question waits.
func TestWebAtTheTerminal(t *testing.T) {
	w := newActing(t, 4, []string{`{"create-or-update": {"specs/s.md": "New.\n"}}`, `{"create-or-update": {"specs/s.md": "Newer.\n"}}`},
		[]string{"work/specs/s.md", "Old.\n", "work/check.sh", "grep -q Newest specs/s.md"}, "--check", "sh check.sh", "--approve", "ask", "--rounds", "1")
	c, terminal := w.onTTY("resume", "last", "--web", "--rounds", "2")
	shown := untilShown(t, terminal, "token=")
	link := shown[strings.LastIndex(shown, "http://"):]
	token, err := terminal.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	untilShown(t, terminal, "Change specs/s.md?")
	w.until("A question is open in the terminal of the run. Answer it there, or stop the run and answer here.")
	other := *w // the page of another process
	browser, address := opened(t, link+strings.TrimSpace(token))
	browser.CheckRedirect = notRedirected
	w.browser, w.home = browser, address[:strings.LastIndex(address, "run/")]
	digest := field(t, w.page(), `<button name="([0-9a-f]{64})" value="yes">`)
	if page := w.act("answer", url.Values{strings.Repeat("0", 64): {"yes"}}); !strings.Contains(page, "this question no longer waits for an answer") {
		t.Errorf("an answer to another question:\n%s", page)
	}
	w.act("answer", url.Values{digest: {"yes"}})
	untilShown(t, terminal, "answered on the page: yes")
	untilShown(t, terminal, "Change specs/s.md?")
	if got := w.read("specs/s.md"); got != "New.\n" {
		t.Errorf("the file is %q", got)
	}
	if page := w.act("answer", url.Values{digest: {"yes"}}); !strings.Contains(page, "this question no longer waits for an answer") {
		t.Errorf("the answer counts twice:\n%s", page)
	}
	second := field(t, w.page(), `<button name="([0-9a-f]{64})" value="yes">`)
	w.send("stop", nil) // the page ends with the run
	go func() { _, _ = io.Copy(io.Discard, terminal) }()
	_ = c.Wait()
	if got := c.ProcessState.ExitCode(); got != 130 {
		t.Errorf("the stopped run exits with %d", got)
	}
	other.until(second) // the question at which the run was stopped can be answered here now
	other.act("answer", url.Values{second: {"yes"}})
	other.until("2 rounds used")
	if got := w.read("specs/s.md"); got != "Newer.\n" {
		t.Errorf("the file is %q", got)
	}
}
