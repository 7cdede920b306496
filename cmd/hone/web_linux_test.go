package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestWebInBackground: a shell's background job serves on, though it must not read the
// terminal, and no one reads what it prints.
func TestWebInBackground(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hone")
	}
	t.Parallel()
	control, terminal, err := openTerminal()
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-mc", `hone web & echo $!; wait`)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = conversationRun(t), terminal, in, terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	in.Close()
	var job int
	var link string
	for lines := bufio.NewScanner(out); (job == 0 || link == "") && lines.Scan(); {
		if _, err := fmt.Sscan(lines.Text(), &job); err != nil {
			link = lines.Text()
		}
	}
	out.Close()
	defer func() { _ = syscall.Kill(job, syscall.SIGKILL); _ = c.Wait() }()
	browser, address := opened(t, link)
	for range 100 { // a job that reads the terminal is stopped soon
		if got := get(t, browser, address); !strings.Contains(got, "<!DOCTYPE html>") {
			t.Fatalf("%s shows\n%s", address, got)
		}
	}
}
