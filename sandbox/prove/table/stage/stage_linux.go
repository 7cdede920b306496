package stage

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/workshop"
)

// Stage is the scene with what only the prover knows: the secret, the state before
// the attempts, and what they reached.
type Stage struct {
	Scene
	Value string // the secret

	before map[string]string // the state before the attempts, by their names
	undo   []func()

	mu      sync.Mutex
	reached map[string]bool // by the attempts' names
}

// AtEnd registers a function that is called when the scene is removed, the last one first.
func (st *Stage) AtEnd(do func()) { st.undo = append(st.undo, do) }

// Reached records that an attempt reached something outside.
func (st *Stage) Reached(name string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.reached[name] = true
}

// setUp makes the scene for some attempts. The caller must take it down. An error
// leaves nothing behind.
func setUp(all []Attempt) (*Stage, error) {
	dir, err := os.MkdirTemp("", "hone-prove-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory; TMPDIR must name a writable one: %w", err)
	}
	st := &Stage{Value: rand.Text(), before: map[string]string{}, reached: map[string]bool{}}
	st.AtEnd(func() { os.RemoveAll(dir) })
	if st.Dir, err = filepath.EvalSymlinks(dir); err == nil {
		err = st.build(all)
	}
	if err != nil {
		st.takeDown()
		return nil, fmt.Errorf("set up the scene for the attempts: %w", err)
	}
	return st, nil
}

func (st *Stage) takeDown() {
	for _, do := range slices.Backward(st.undo) {
		do()
	}
}

func (st *Stage) build(all []Attempt) error {
	st.Digest = digest([]byte(st.Value))
	st.Facts, st.Lacking = map[string]string{}, map[string]string{}
	st.Processes, st.Memory = 120, 256<<20
	var err error
	if st.Prover, err = Identify(os.Getpid()); err != nil {
		return err
	}
	if err := os.Mkdir(st.Lib(), 0o755); err != nil {
		return err
	}
	if err := st.link(); err != nil {
		return err
	}
	for _, a := range all {
		if err := st.prepare(a); err != nil {
			return err
		}
	}
	for _, a := range all {
		st.before[a.Name] = st.look(a)
	}
	return nil
}

// link makes this program visible to attempts: by a symlink, or by a copy if its file
// was replaced since it started.
func (st *Stage) link() error {
	st.Program = st.Lib(helperName)
	if path, err := os.Executable(); err == nil {
		if file, err := os.Stat(path); err == nil {
			if self, err := os.Stat("/proc/self/exe"); err == nil && os.SameFile(file, self) {
				return os.Symlink(path, st.Program)
			}
		}
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(st.Program, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

func (st *Stage) prepare(a Attempt) error {
	s := st.of(a.Name)
	if err := os.MkdirAll(s.Work(), 0o755); err != nil {
		return err
	}
	if err := s.Write(s.Outside("secret"), st.Value); err != nil {
		return err
	}
	if err := s.Write(s.Outside("file"), "untouched\n"); err != nil {
		return err
	}
	if a.Prepare == nil {
		return nil
	}
	given, err := a.Prepare(st, s)
	if unknown, ok := errors.AsType[Unknown](err); ok {
		st.Lacking[a.Name], err = unknown.Error(), nil
	}
	st.Facts[a.Name] = given
	return err
}

// Serve starts a server at an address, for connections or, if the network is one of
// packets, for these. It records when it is reached, and returns its address. The error
// is an [Unknown]: then nothing can listen there.
func (st *Stage) Serve(name, network, addr string) (string, error) {
	if network == "udp" || network == "unixgram" {
		return st.receive(name, network, addr)
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		return "", Unknown(err.Error())
	}
	st.AtEnd(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			st.answer(name)(conn)
		}
	}()
	return l.Addr().String(), nil
}

func (st *Stage) answer(name string) func(net.Conn) {
	return func(conn net.Conn) {
		st.Reached(name)
		conn.Close()
	}
}

// receive is Serve for packets. It answers those of UDP.
func (st *Stage) receive(name, network, addr string) (string, error) {
	conn, err := net.ListenPacket(network, addr)
	if err != nil {
		return "", Unknown(err.Error())
	}
	st.AtEnd(func() { conn.Close() })
	go func() {
		for {
			_, from, err := conn.ReadFrom(make([]byte, 16))
			if err != nil {
				return
			}
			st.Reached(name)
			if network == "udp" {
				_, _ = conn.WriteTo([]byte("x"), from) // the attempt waits for it only for a short time
			}
		}
	}()
	return conn.LocalAddr().String(), nil
}

// door is the address to which the policy's door leads, as [Scene.Facts] has it.
const door = "door"

func (st *Stage) policy(attempts []Attempt) sandbox.Policy {
	p := sandbox.Policy{
		Write: []string{filepath.Join(st.Dir, "work")},
		Read:  append(workshop.System(), st.Lib()),
		Doors: []sandbox.Door{{Addr: "127.0.0.1:0", Serve: st.answer(door)}},

		Placeholders: map[string]sandbox.Placeholder{},
		Aside:        filepath.Join(st.Dir, "aside"),
		Layers:       filepath.Join(st.Dir, "layers"),
	}
	if program, err := os.Readlink(st.Program); err == nil {
		p.Read = append(p.Read, program)
	}
	for _, a := range attempts {
		if a.Policy != nil {
			a.Policy(st.of(a.Name), &p)
		}
	}
	if attempts[0].Alone { // some of these exceed the limits
		p.Limits = sandbox.Limits{Processes: st.Processes, Memory: st.Memory}
	}
	st.Shown = nil
	for _, path := range slices.Concat(p.Write, p.Read) {
		st.Shown = append(st.Shown, path)
		if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
			st.Shown = append(st.Shown, target)
		}
	}
	return p
}

// trace describes what an attempt changed or reached outside; empty if nothing.
func (st *Stage) trace(a Attempt) string {
	st.mu.Lock()
	reached := st.reached[a.Name]
	st.mu.Unlock()
	switch {
	case reached:
		return "it reached a process outside"
	case st.look(a) != st.before[a.Name]:
		return "it changed something outside"
	case a.Alone && len(st.left()) > 0:
		return fmt.Sprintf("it left %d processes behind", len(st.left()))
	}
	return ""
}

// look describes the state of what an attempt must not change, for comparison.
func (st *Stage) look(a Attempt) string {
	s := st.of(a.Name)
	var seen strings.Builder
	for _, path := range a.Intact {
		if info, err := os.Lstat(filepath.Dir(s.Work(path))); err == nil {
			fmt.Fprintln(&seen, path, "is in", info.Mode().Type())
		}
		describe(&seen, s.Work(path), false)
	}
	for _, path := range []string{s.Outside(), s.Cache(), s.Lib(a.Name)} {
		describe(&seen, path, true)
	}
	return seen.String()
}

// describe describes a file, or a directory with its contents. If strict is set
// it includes the time of the last change, which no program can set; otherwise
// the contents, because walls may have restored them.
func describe(to *strings.Builder, path string, strict bool) {
	_ = filepath.WalkDir(path, func(path string, _ os.DirEntry, err error) error {
		var info unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &info)
		}
		if err != nil {
			fmt.Fprintln(to, path, err)
			return nil
		}
		fmt.Fprintf(to, "%s %o", path, info.Mode)
		if strict {
			fmt.Fprint(to, " ", info.Ino, info.Nlink, info.Size, info.Ctim)
		} else if info.Mode&unix.S_IFMT == unix.S_IFREG {
			text, err := os.ReadFile(path)
			fmt.Fprint(to, " ", digest(text), err)
		}
		fmt.Fprintln(to)
		return nil
	})
}

// left returns the processes that attempts left behind. Their command lines
// contain the scene's directory, whose name no other program knows.
func (st *Stage) left() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == st.Prover.PID {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		program, _, _ := bytes.Cut(line, []byte{0})
		if err == nil && bytes.Contains(line, []byte(st.Dir)) && filepath.Base(string(program)) == helperName {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (st *Stage) killLeft() {
	for _, pid := range st.left() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
