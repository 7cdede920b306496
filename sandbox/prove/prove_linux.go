package prove

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/process"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
)

// helperName is the program's name when it is started to make attempts.
const helperName = "hone-attempts"

// Helper does the work of a helper and exits if this process was started as one;
// otherwise it returns at once. Every program that proves walls must call it in
// main, right after Helper of the package wall.
func Helper() {
	if len(os.Args) < 2 || filepath.Base(os.Args[0]) != helperName {
		return
	}
	switch os.Args[1] {
	case "try":
		tryAll(os.Args[2], os.Args[3:])
	case "daemon":
		beDaemon(os.Args[2:])
	}
	syscall.Exit(0) // at once: under the race detector os.Exit waits a second
}

// tryAll makes attempts one after the other, and prints a line about each.
func tryAll(told string, names []string) {
	var s scene
	if err := json.Unmarshal([]byte(told), &s); err != nil {
		return // without a line
	}
	say := json.NewEncoder(os.Stdout)
	for _, a := range Attempts() {
		if slices.Contains(names, a.Name) {
			_ = say.Encode(resultOf(a.Name, a.try(s)))
		}
	}
}

// Wall tries to cross a wall, which takes about a second. The report contains the
// results, including holes. The error means that the wall cannot be built, or
// that the attempts could not be made. tree is what commands may write, see Tree of
// [sandbox.Policy]; it is not touched.
func Wall(ctx context.Context, wall sandbox.Wall, tree string) (Report, error) {
	return try(ctx, wall, tree, true, nil)
}

// Short is like [Wall] without the attempts that need a process each, those on the limits,
// because a user waits for it before the first run.
func Short(ctx context.Context, wall sandbox.Wall, tree string) (Report, error) {
	return try(ctx, wall, tree, false, nil)
}

// widen changes the policy for a test; it may be nil.
func try(ctx context.Context, kind sandbox.Wall, tree string, limits bool, widen func(*stage, *sandbox.Policy)) (Report, error) {
	st, err := setUp()
	if err != nil {
		return Report{}, fmt.Errorf("set up the scene for the attempts: %w", err)
	}
	defer st.takeDown()
	p := st.policy()
	p.Wall, p.Tree = kind, tree
	if widen != nil {
		widen(st, &p)
	}
	together, alone := Attempts(), Attempts()
	together = slices.DeleteFunc(together, func(a Attempt) bool { return a.alone })
	alone = slices.DeleteFunc(alone, func(a Attempt) bool { return !a.alone })
	r, err := st.behind(ctx, p, [][]Attempt{together})
	if err != nil || !limits {
		return r, err
	}
	p.Wall, p.Limits = r.Grade.Wall, sandbox.Limits{Processes: maxProcesses, Memory: maxMemory}
	rest, err := st.behind(ctx, p, slices.Collect(slices.Chunk(alone, 1)))
	r.Results = append(r.Results, rest.Results...)
	return r, err
}

// The limits of the attempts that exceed them.
const (
	maxProcesses = 120
	maxMemory    = 256 << 20
)

// timeout is how long the attempts of one process may take on a very busy machine.
const timeout = 2 * time.Minute

// behind makes attempts behind the walls of a policy, each batch in a process of its own.
func (st *stage) behind(ctx context.Context, p sandbox.Policy, batches [][]Attempt) (r Report, err error) {
	w, err := wall.Build(ctx, p)
	if err != nil {
		return r, err
	}
	defer w.Close()
	r.Grade, st.Servers["door"] = w.Grade(), w.DoorAddr(0)
	for _, batch := range batches {
		told, err := json.Marshal(st.scene)
		if err != nil {
			return r, err
		}
		argv := []string{st.Program, "try", string(told)}
		for _, a := range batch {
			argv = append(argv, a.Name)
		}
		how, err := w.Run(ctx, sandbox.Command{Argv: argv, Dir: st.Work(), Env: environment(), Timeout: timeout})
		if err == nil && len(how.Stdout) == 0 && how.Signal != "" && !batch[0].alone { // something else has killed it: it had not begun
			how, err = w.Run(ctx, sandbox.Command{Argv: argv, Dir: st.Work(), Env: environment(), Timeout: timeout})
		}
		if err != nil {
			return r, err
		}
		made, err := results(batch, how)
		if err != nil {
			return r, fmt.Errorf("the attempts behind the %s wall were not made: %w", r.Grade.Wall, err)
		}
		for i, a := range batch {
			one := made[i]
			one.About, one.Open = a.About, a.OpenBehind(r.Grade)
			switch trace := st.trace(a); {
			case trace != "":
				one.Got, one.Text = gotOpen, trace
			case a.changes != "" && one.Got == gotOpen: // walls may have restored it
				one.Got, one.Text = gotHeld, "it is unchanged"
			}
			r.Results = append(r.Results, one)
		}
		st.killLeft()
	}
	return r, nil
}

// environment is that of the attempts.
func environment() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C"}
}

// results reads what a process said of each attempt of a batch. The walls may end the process only during
// an attempt on the limits, which is the only one of its batch.
func results(batch []Attempt, how sandbox.Result) ([]Result, error) {
	var made []Result
	for said := json.NewDecoder(bytes.NewReader(how.Stdout)); len(made) < len(batch); {
		var one Result
		if err := said.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if one.Name != batch[len(made)].Name {
			return nil, fmt.Errorf("%s was made in place of %s", one.Name, batch[len(made)].Name)
		}
		made = append(made, one)
	}
	end := fmt.Sprintf("exit %d %s %s", how.Exit, how.Signal, bytes.TrimSpace(how.Stderr))
	switch {
	case len(made) == len(batch):
	case !batch[0].alone || how.Signal == "" && how.OverLimit == "":
		return nil, fmt.Errorf("the process ended after %d: %s", len(made), end)
	case how.TimedOut:
		made = []Result{{Name: batch[0].Name, Got: gotUnknown, Text: "it did not end"}}
	default:
		made = []Result{{Name: batch[0].Name, Got: gotHeld, Text: cmp.Or(how.OverLimit, end)}}
	}
	return made, nil
}

// scene is what attempts know of what was set up outside the walls. An attempt recognizes the secret by its
// digest.
type scene struct {
	Dir     string
	Program string            // the path of this program inside
	Servers map[string]string // the addresses of servers, and the number of shared memory, by the attempts' names
	Digest  string            // of the secret
	PID     int               // the prover
	Born    uint64            // and when it started, because another process may have its number inside
}

func (s scene) at(dir string, rest []string) string {
	return filepath.Join(append([]string{s.Dir, dir}, rest...)...)
}

// Outside returns a path outside the policy, Work one that commands may write, Lib one that they may
// read, and Cache one with an overlay.
func (s scene) Outside(rest ...string) string { return s.at("outside", rest) }
func (s scene) Work(rest ...string) string    { return s.at("work", rest) }
func (s scene) Lib(rest ...string) string     { return s.at("lib", rest) }
func (s scene) Cache(rest ...string) string   { return s.at("cache", rest) }

// stage is the scene with what only the prover knows.
type stage struct {
	scene
	before map[string]string // the state of what the attempts must not change, by its directory
	undo   []func()
}

func setUp() (st *stage, err error) {
	dir, err := os.MkdirTemp("", "hone-prove-")
	if err != nil {
		return nil, fmt.Errorf("TMPDIR must name a writable directory: %w", err)
	}
	st = &stage{before: map[string]string{}, undo: []func(){func() { os.RemoveAll(dir) }}}
	defer func() {
		if err != nil {
			st.takeDown()
		}
	}()
	if st.Dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	secret := rand.Text()
	st.Digest, st.Servers, st.Program = digest([]byte(secret)), map[string]string{}, st.Lib(helperName)
	own, _ := process.ReadStatus(os.Getpid())
	st.PID, st.Born = own.PID, own.Born
	for path, text := range map[string]string{
		st.Outside("secret"): secret, st.Outside("file"): "untouched\n", st.Lib("file"): "untouched\n", st.Cache("file"): "untouched\n",
		st.Work(".env"): secret, st.Work("secrets", "key"): secret, st.Work(".config", "other"): "untouched\n",
		st.Work(".git", "config"): "[core]\n", st.Work(".git", "hooks", "sample"): "#!/bin/sh\n",
	} {
		if err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return nil, err
		}
	}
	program, err := os.Executable()
	if err == nil {
		err = os.Symlink(program, st.Program)
	}
	if err != nil {
		return nil, err
	}
	if fd, err := unix.Open(st.Outside(), unix.O_RDONLY|unix.O_DIRECTORY, 0); err == nil { // which commands could inherit
		st.undo = append(st.undo, func() { unix.Close(fd) })
	}
	if id, err := unix.SysvShmGet(unix.IPC_PRIVATE, os.Getpagesize(), unix.IPC_CREAT|unix.IPC_EXCL|0o600); err == nil {
		st.undo = append(st.undo, func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
		st.Servers["sysv-memory"] = fmt.Sprint(id)
	}
	for name, addr := range map[string]string{"tcp": "127.0.0.1:0", "unix-path": st.Outside("socket"), "unix-abstract": "@" + filepath.Base(st.Dir), "workspace-socket": st.Work("socket")} {
		network := "unix"
		if name == "tcp" {
			network = name
		}
		if l, err := net.Listen(network, addr); err == nil { // otherwise the attempt cannot be made
			st.undo = append(st.undo, func() { l.Close() })
			st.Servers[name] = l.Addr().String()
			go accept(l)
		}
	}
	for _, a := range Attempts() {
		st.before[a.changes] = st.look(a.changes)
	}
	return st, nil
}

func (st *stage) takeDown() {
	st.killLeft()
	for _, do := range slices.Backward(st.undo) {
		do()
	}
}

func accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		conn.Close()
	}
}

func (st *stage) policy() sandbox.Policy {
	p := sandbox.Policy{
		Write: []string{st.Work()},
		Read:  append(workshop.System(), st.Lib(), st.Cache(), st.Work(".git", "config"), st.Work(".git", "hooks"), st.Work(".config", "hone.toml")),
		Hide:  []string{st.Work(".env"), st.Work("secrets"), st.Work("socket")},
		Doors: []sandbox.Door{{Addr: "127.0.0.1:0", Serve: func(conn net.Conn) { conn.Close() }}},

		Placeholders: map[string]sandbox.Placeholder{st.Work(".config", "hone.toml"): {}},
		Overlays:     []sandbox.Overlay{{Path: st.Cache(), Lower: st.Cache()}},
		Aside:        filepath.Join(st.Dir, "aside"),
		Layers:       filepath.Join(st.Dir, "layers"),
	}
	if program, err := os.Readlink(st.Program); err == nil {
		p.Read = append(p.Read, program)
	}
	return p
}

// trace describes what an attempt changed or left outside; empty if nothing.
func (st *stage) trace(a Attempt) string {
	switch {
	case a.changes != "" && st.look(a.changes) != st.before[a.changes]:
		return "it changed " + a.changes
	case a.alone && len(st.left()) > 0:
		return fmt.Sprintf("it left %d processes behind", len(st.left()))
	}
	return ""
}

// look describes a file of the scene, or a directory with its contents, for comparison.
func (st *stage) look(path string) string {
	var seen strings.Builder
	_ = filepath.WalkDir(filepath.Join(st.Dir, path), func(path string, e os.DirEntry, err error) error {
		if err != nil {
			fmt.Fprintln(&seen, path, err)
			return nil
		}
		fmt.Fprint(&seen, path, e.Type())
		if e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			fmt.Fprint(&seen, digest(text), err)
		}
		return nil
	})
	return seen.String()
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// left returns the processes that attempts left behind. Their command lines
// contain the scene's directory, whose name no other program knows.
func (st *stage) left() (pids []int) {
	for _, s := range process.All() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.PID))
		program, _, _ := bytes.Cut(line, []byte{0})
		if err == nil && bytes.Contains(line, []byte(st.Dir)) && filepath.Base(string(program)) == helperName {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

func (st *stage) killLeft() {
	for _, pid := range st.left() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
