package wall

import (
	"context"
	"errors"
	"fmt"
	"net"

	"hone/sandbox"
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
