package prove

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Helper does the work of a helper and exits if this process was started as one;
// otherwise it returns at once. Every program that proves walls must call it in
// main, right after Helper of the package wall.
func Helper() {
	if len(os.Args) < 2 || filepath.Base(os.Args[0]) != helperName {
		return
	}
	syscall.Exit(help(os.Args[1], os.Args[2:])) // at once: under the race detector os.Exit waits a second
}

// help does a helper's work and returns the exit status.
func help(what string, args []string) int {
	var err error
	switch {
	case what == "try" && len(args) > 1:
		err = tryAll(os.Stdout, args[0], args[1:])
	case what == "victim":
		err = beVictim(os.Stdin, os.Stdout)
	case what == "oom":
		err = lowerScore()
	case what == "leave" && len(args) == 2:
		err = leave(args[0], args[1])
	case what == "daemon" && len(args) == 1:
		err = stay(args[0])
	case what != "nothing":
		err = fmt.Errorf("there is no helper %q", what)
	}
	return status(err)
}

// status returns an exit status that contains the error's number.
func status(err error) int {
	var errno unix.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno) && errno < 126:
		return int(errno)
	}
	fmt.Fprintln(os.Stderr, err)
	return 126
}

// note is a helper's report: an attempt begins, or its result.
type note struct {
	Begin string `json:"begin,omitempty"`
	End   string `json:"end,omitempty"`
	Got   string `json:"got,omitempty"`
	Text  string `json:"text,omitempty"`
}

// tryAll makes attempts one after the other. The walls may end the process at any
// of them.
func tryAll(out io.Writer, scene string, names []string) error {
	text, err := os.ReadFile(scene)
	if err != nil {
		return err
	}
	var s Scene
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	tell, all := json.NewEncoder(out), attempts()
	for _, name := range names {
		i := slices.IndexFunc(all, func(a Attempt) bool { return a.Name == name })
		if i < 0 {
			return fmt.Errorf("there is no attempt %s", name)
		}
		_ = tell.Encode(note{Begin: name})
		s.Name = name
		got, text := word(all[i].Try(s))
		_ = tell.Encode(note{End: name, Got: got, Text: text})
	}
	return nil
}

// beVictim does the work of the victim, a process outside the walls with a secret.
// It prints the secret's address and each signal, and ends with its input.
func beVictim(in io.Reader, out io.Writer) error {
	secret := []byte(os.Getenv(keyName))
	if len(secret) == 0 {
		return errors.New("no secret")
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGUSR1)
	fmt.Fprintln(out, uintptr(unsafe.Pointer(&secret[0])))
	go func() {
		for range signals {
			fmt.Fprintln(out, "signalled")
		}
	}()
	_, err := io.Copy(io.Discard, in)
	if secret[0] == 0 { // keeps the secret in memory until the end
		return errors.New("the secret was overwritten")
	}
	return err
}

// leave starts a process that stays, and returns.
func leave(program, lock string) error {
	cmd := &exec.Cmd{Path: program, Args: []string{helperName, "daemon", lock}, Env: []string{}, Dir: "/", SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	return cmd.Start()
}

// stay takes a lock, and stays until it is killed.
func stay(lock string) error {
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	f, err := os.OpenFile(lock, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if _, err := f.WriteString("held\n"); err != nil {
		return err
	}
	for { // the lock lasts as long as the file is open
		_, _ = unix.Poll(nil, -1)
		_ = f.Name()
	}
}
