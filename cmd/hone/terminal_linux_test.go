package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// onTerminal is the program "on-terminal FILE ARGS…" of the scripts: it runs hone with
// standard input and error on a terminal of its own, types the contents of FILE and the
// end of input, copies what the terminal shows to standard error, and exits as hone did.
// With "-interrupt=TEXT" instead of a file it types nothing, and interrupts hone
// when the terminal shows the text. With "-background" hone runs in the background of the
// terminal; with "-background=TEXT" the user puts it there when the terminal shows the
// text, with ^Z and bg.
func onTerminal() {
	hone := exec.Command("hone", os.Args[2:]...)
	if option, _, _ := strings.Cut(os.Args[1], "="); option == "-background" {
		shell := `hone "$@" & wait $!`
		if option != os.Args[1] {
			shell = `hone "$@"; bg %1; wait %1`
		}
		hone = exec.Command("sh", append([]string{"-mc", shell, "sh"}, os.Args[2:]...)...)
	}
	status, err := runOnTerminal(os.Args[1], hone)
	if err != nil {
		fmt.Fprintln(os.Stderr, "on-terminal:", err)
		status = 125
	}
	os.Exit(status)
}

func runOnTerminal(input string, hone *exec.Cmd) (int, error) {
	text, interrupt := strings.CutPrefix(input, "-interrupt=")
	text, suspend := strings.CutPrefix(text, "-background=")
	var typed []byte
	if !interrupt && !suspend && input != "-background" {
		content, err := os.ReadFile(input)
		if err != nil {
			return 0, err
		}
		typed = append(content, 4) // the end of input
	}
	control, tty, err := openTerminal()
	if err != nil {
		return 0, err
	}
	defer control.Close()
	hone.Stdin, hone.Stdout, hone.Stderr = tty, os.Stdout, tty
	hone.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = hone.Start()
	tty.Close()
	if err != nil {
		return 0, err
	}
	go func() { _, _ = control.Write(typed) }()
	shown := watcher{text: text, found: func() {
		switch {
		case interrupt:
			_ = hone.Process.Signal(os.Interrupt)
		case suspend:
			go suspendForeground(control, hone.Process.Pid)
		}
	}}
	_, _ = io.Copy(&shown, control) // until hone, and what it started, have closed the terminal
	err = hone.Wait()
	if errors.As(err, new(*exec.ExitError)) {
		err = nil
	}
	_, copied := os.Stderr.Write(bytes.ReplaceAll(shown.all, []byte("\r\n"), []byte("\n")))
	return hone.ProcessState.ExitCode(), errors.Join(err, copied)
}

// suspendForeground types ^Z until the terminal belongs to the shell again. The kernel tells the
// shell that a process has stopped only when all of its threads have, and a thread that is
// starting another process cannot stop: then both continue, and ^Z is typed again.
func suspendForeground(control *os.File, shell int) {
	for {
		_, _ = control.Write([]byte{'Z' - '@'})
		for range 200 {
			time.Sleep(10 * time.Millisecond)
			group, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPGRP)
			if err != nil || group == shell {
				return
			}
		}
		if group, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPGRP); err == nil && group != shell {
			_ = unix.Kill(-group, unix.SIGCONT)
		}
	}
}

// watcher collects what is written, and calls found once when it contains a text.
type watcher struct {
	all   []byte
	text  string
	found func()
}

func (w *watcher) Write(p []byte) (int, error) {
	before := bytes.Contains(w.all, []byte(w.text))
	w.all = append(w.all, p...)
	if !before && bytes.Contains(w.all, []byte(w.text)) {
		w.found()
	}
	return len(p), nil
}

// openTerminal opens both sides of a new pseudo-terminal.
func openTerminal() (control, tty *os.File, err error) {
	control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err == nil {
		err = withoutEcho(tty)
	}
	if err != nil {
		control.Close()
	}
	return control, tty, err
}

// withoutEcho makes a terminal show only what programs write. The input of a script is typed at once; its echo would
// appear wherever hone's output happens to be.
func withoutEcho(tty *os.File) error {
	settings, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	settings.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, settings)
}
