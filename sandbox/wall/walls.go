// Package wall builds walls around commands.
//
// Call [Helper] first in main. Then call [Build] with a policy, run commands
// with Run or Start of the [Walls], and Close them. Build tries the walls once:
// if it returns no error they work, and [Walls.Grade] describes them. Walls
// need Linux; other systems have only sandbox.NoWall.
//
// One value leads from the settings to the kernel, the [sandbox.Policy]. WallSettings of the package
// loop contain what the settings say of it, Walls of the package harness add what a loop plans, and
// Equip of the package workshop what this machine has. Build finds its paths (Entries), sends it with
// each command to the process that starts the command (spec), and that gives it to kernel.Restrain.
//
// Each command, with walls or without ([None]), has a supervisor: this program again ([Helper]),
// which this process starts and tells what to do. It is a subreaper; behind the hidden wall it is
// the first process of its namespaces, and builds the wall there; bwrap and firejail, which the first
// process becomes, start it behind theirs. It restrains one of its
// threads with the package kernel, starts the command from that thread, limits it, ends all that it
// started, and ends when this process does. The processes talk over a socket (control). The package
// putback guards what a wall alone cannot protect: with placeholders for what must not exist while
// a command runs, and by restoring the rest afterwards.
//
// Read the files in this order:
//
//	walls.go             Run, Start and Close: the walls as their caller sees them
//	walls_linux.go       Build, and how a command is run
//	kinds_linux.go       the table of walls, and what a supervisor is told
//	command_linux.go     one command, seen from outside
//	helper_linux.go      the start of a supervisor
//	supervisor_linux.go  the process that starts the command
//
// To add a wall, add its name to the package sandbox, its [kind] to the table
// in kinds_linux.go, and a column to the table in sandbox/prove/table.
package wall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hone/sandbox"
	"hone/sandbox/internal/process"
	"hone/sandbox/putback"
)

// outside is the part of walls that this process keeps: the doors, and what guards the paths
// that the walls alone cannot protect.
type outside struct {
	doors []sandbox.Door // of the policy, with the ports that the walls choose
	open  []net.Listener // doors in this process's own network
	guard *putback.Guard
}

// firstDoor is the port of the first door if the walls choose it. In a network
// of their own no other program uses it.
const firstDoor = 20801

// It opens the doors whose port it chooses in this process's own network; commands without a network of their own find other
// doors at the port that they name.
func (o *outside) placeDoors(doors []sandbox.Door, ownNet bool) error {
	for i, d := range doors {
		host, port, err := net.SplitHostPort(d.Addr)
		if err == nil && !net.ParseIP(host).IsLoopback() {
			err = errors.New("it must have a loopback address, such as 127.0.0.1")
		}
		switch {
		case err != nil || port != "0":
		case ownNet:
			d.Addr = net.JoinHostPort(host, fmt.Sprint(firstDoor+i))
		default:
			var l net.Listener
			if l, err = net.Listen("tcp", d.Addr); err == nil {
				go serve(l, d.Serve)
				o.open = append(o.open, l)
				d.Addr = l.Addr().String()
			}
		}
		if err != nil {
			return fmt.Errorf("open the door %s: %w", d.Addr, err)
		}
		o.doors = append(o.doors, d)
	}
	return nil
}

func serve(l net.Listener, answer func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go answer(conn)
	}
}

// DoorAddr returns the address at which commands find the door of the policy
// with that index.
func (o *outside) DoorAddr(i int) string { return o.doors[i].Addr }

// Close closes the doors. No command may be running.
func (o *outside) Close() {
	for _, l := range o.open {
		l.Close()
	}
}

var _ sandbox.Runner = (*Walls)(nil)

// Run runs a command behind the walls; see [sandbox.Runner]. Its error is a
// [*sandbox.StartError], the context's if that was done before the start, or
// says that the walls could not be built.
func (w *Walls) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return w.run(ctx, c, func(<-chan struct{}, sandbox.Dialer) {})
}

// Start starts a command that stays open, such as a server. It returns when the
// command runs or has already ended; [sandbox.Running] then returns what Run
// would have returned. Its error is Run's if the command could not be started.
// The context, the time limit of the command, and the end of
// this process stop the command. Close the walls after it has ended. While it
// runs, each command of the same walls restores the protected paths to their
// state at its start.
func (w *Walls) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	return sandbox.Start(func(up sandbox.Started) (sandbox.Result, error) { return w.run(ctx, c, up) })
}

// None runs commands without walls: they may do whatever the user may do. It is
// for the user's own programs, and for users who chose it.
//
// When a command has ended, or its time is over, or the context is done, all that it
// started is stopped as well. On Linux a supervisor does so, as for walls, also if this
// process is killed: it finds daemons, and only processes of another user, such as one that
// sudo started, are not its own to stop. On Windows a job object contains the tree, except
// what the command starts in its first instant. Other systems stop only the process group.
// On Linux the first command makes this process a subreaper, and it remains one.
//
// The zero None is ready to use. [Helper] must be the first call of the program's main.
type None struct {
	// Grace is the time between SIGTERM and SIGKILL for a command that must
	// stop; 0 means two seconds.
	Grace time.Duration
	// Keeper ends commands when this process ends before them, where there are no
	// supervisors; nil means that they may outlive it there.
	Keeper *Keeper
	// As is whom commands run as, with the capabilities of this process.
	As sandbox.User
}

var _ sandbox.Runner = None{}

// Run runs the command to its end; see [sandbox.Runner]. Its error is a [*sandbox.StartError], or
// the context's if that was done before the start.
func (n None) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return n.run(ctx, c, func(<-chan struct{}, sandbox.Dialer) {})
}

// dialLoopback connects to a TCP port of this machine: at 127.0.0.1, or at ::1 if that
// fails.
func dialLoopback(ctx context.Context, port int) (net.Conn, error) {
	var d net.Dialer
	conn, first := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if first == nil || ctx.Err() != nil {
		return conn, first
	}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort("::1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("%w; %w", first, err)
	}
	return conn, nil
}

// Keeper stops the commands of this process if the process ends before it has stopped
// them, for example because it was killed, on systems other than Linux. On Unix each command has a
// second process of this program, which kills its process group. Helper of the package
// wall must be the first call of the program's main; without it, or if both
// processes are killed at the same moment, commands may outlive this process. On Windows a
// job object does so.
//
// On Linux each command has a supervisor, and a keeper only marks commands: if a process and
// its supervisors were killed at once, EndEarlier of the next keeper stops what the commands
// left running.
type Keeper = process.Keeper

// NewKeeper returns a keeper of commands that run for a directory. Close ends it. Call
// EndEarlier for the same directory, as the same user, after the earlier process has ended.
func NewKeeper(dir string) *Keeper { return process.NewKeeper(dir) }

// mounts returns the entries that a wall mounts to show those of a policy and nothing else,
// outer ones first. It omits absent entries, those with the access of the directory around
// them, and symlinks that are shown with it.
//
// A command could move a file that is mounted read-only in a writable directory
// away together with its parent directory, and put another file in its place, or
// move a hidden one to where the next command finds it open. So each directory between
// is mounted on itself: a mount point cannot be renamed or removed (EBUSY). The price
// is that no file can be renamed or linked across it (EXDEV). In an overlay the kernel
// does not rename directories of the lower one (EXDEV). Mounts cannot protect
// symlinks and absent entries.
func mounts(entries []sandbox.Entry) []sandbox.Entry {
	places, mounted := sandbox.PlacesOf(entries), map[string]sandbox.Entry{}
	for _, e := range entries {
		switch {
		case e.Absent:
		case e.Link != "":
			if places.Around(e.Path).Access == sandbox.AccessNone {
				mounted[e.Path] = e
			}
		default:
			if e.Lower != "" || e.Access != places.Around(e.Path).Access {
				mounted[e.Path] = e
			}
			if e.Lower == "" && e.Access == sandbox.AccessWrite {
				continue
			}
			for dir := filepath.Dir(e.Path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
				at := places.At(dir)
				if _, ok := mounted[dir]; !ok && at.Access == sandbox.AccessWrite && at.Lower == "" && places.Around(dir).Access == sandbox.AccessWrite {
					mounted[dir] = sandbox.Entry{Path: dir, Access: sandbox.AccessWrite, Dir: true}
				}
			}
		}
	}
	ordered := make([]sandbox.Entry, 0, len(mounted))
	for _, e := range mounted {
		ordered = append(ordered, e)
	}
	slices.SortFunc(ordered, func(a, b sandbox.Entry) int { return strings.Compare(a.Path, b.Path) })
	return ordered
}
