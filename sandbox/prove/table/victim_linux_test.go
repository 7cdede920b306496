package table

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox/prove/table/stage"
)

// keyName is the variable with the secret in a victim's environment.
const keyName = "HONE_PROVE_KEY"

// outsiders are what an attempt knows of processes outside.
type outsiders struct {
	Victim   stage.Process // a process of the user that the prover started
	Address  uintptr       // of the secret in it; 0 if there is none
	Group    int           // the prover's process group
	PIDSpace string        // the prover's namespace of processes
}

// known returns what startVictim found out.
func known(s scene) (o outsiders) {
	_ = json.Unmarshal([]byte(s.Given), &o) // which it has encoded
	return o
}

// startVictim is a Prepare that starts a victim, a process outside the walls with a
// secret. It counts as reached if it is signalled or ends.
func startVictim(st *stage.Stage, s scene) (string, error) {
	cmd := s.Again()
	cmd.Env, cmd.SysProcAttr = []string{keyName + "=" + st.Value}, &syscall.SysProcAttr{Setsid: true}
	cmd.Path = "/proc/self/exe"
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	var o outsiders
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		address, _ := strconv.ParseUint(lines.Text(), 10, 64) // the attempt reports 0
		o.Address = uintptr(address)
	}
	ended, finished := make(chan struct{}), make(chan struct{})
	st.AtEnd(func() {
		close(ended)
		in.Close()
		<-finished
	})
	go watch(st, s.Name, cmd, lines, ended, finished)
	if o.Victim, err = stage.Identify(cmd.Process.Pid); err != nil {
		return "", err
	}
	if o.PIDSpace, err = os.Readlink("/proc/self/ns/pid"); err != nil {
		return "", err
	}
	o.Group = unix.Getpgrp()
	text, err := json.Marshal(o)
	return string(text), err
}

// watch records a victim's signals, and its end, unless that is wanted.
func watch(st *stage.Stage, name string, cmd *exec.Cmd, lines *bufio.Scanner, wanted <-chan struct{}, finished chan<- struct{}) {
	for lines.Scan() {
		st.Reached(name)
	}
	select {
	case <-wanted:
	default:
		st.Reached(name)
	}
	_ = cmd.Wait() // how it ended does not matter
	close(finished)
}

// beVictim does the work of the victim. It prints the secret's address and each signal,
// and ends with its input.
func beVictim([]string) error {
	secret := []byte(os.Getenv(keyName))
	if len(secret) == 0 {
		return errors.New("no secret")
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGUSR1)
	fmt.Println(uintptr(unsafe.Pointer(&secret[0])))
	go func() {
		for range signals {
			fmt.Println("signalled")
		}
	}()
	_, err := io.Copy(io.Discard, os.Stdin)
	if secret[0] == 0 { // keeps the secret in memory until the end
		return errors.New("the secret was overwritten")
	}
	return err
}

// ownProcesses reports whether this process is in a process namespace of its own,
// according to /proc.
func ownProcesses(s scene) bool {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) || s.Given == "" {
		return false
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && space != known(s).PIDSpace
}
