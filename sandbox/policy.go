package sandbox

import (
	"net"
	"time"
)

// Policy says what commands behind walls may reach. Paths are absolute; the
// longest one that holds a file decides about it, and of equal ones Hide comes
// before Read and Read before Write. What none of them holds is not there, as
// far as the wall can make it so. The zero Policy lets a command reach nothing,
// not even the programs of the system; see the package workshop's System.
//
// Paths may lead through symlinks: what they lead to is what is shown, under
// both names.
type Policy struct {
	// Write are folders and files that may be read and changed. They must exist.
	Write []string
	// Read are folders and files that may be read and run. Those that are
	// missing are passed over; where they lie in a folder of Write, a command
	// cannot bring them into being either, or what it made is taken away again:
	// see [Result.Restored].
	Read []string
	// Hide are folders and files that are not there, or are empty and cannot
	// be read: the walls cannot take a file out of a folder that may be written.
	Hide []string
	// Tmp is the folder that is shown as /tmp, for all commands of a run. Where
	// a wall cannot show a folder under another name, and where Tmp is empty,
	// see the wall's doc.
	Tmp string
	// Aside is a folder, outside of all that may be written, for what a command
	// left in the place of a protected file. Empty means that it is lost.
	Aside string
	// Net lets commands reach the network as this process does.
	Net bool
	// Doors are the addresses that can be reached without Net.
	Doors []Door
	// Limits bound each command.
	Limits Limits
}

// Limits bound a command and all that it started, together. Zero means the
// number given with each; a negative one means none.
type Limits struct {
	Memory    int64         // bytes of memory that is not backed by a file; 0 means none
	Processes int           // processes and threads; 0 means 4096
	Time      time.Duration // a ceiling for Command.Timeout; 0 means none
	Output    int64         // a ceiling for Command.MaxOutput, in bytes; 0 means none
}

// MaxProcesses is how many processes and threads are allowed; 0 means any
// number.
func (l Limits) MaxProcesses() int {
	const standard = 4096
	switch {
	case l.Processes < 0:
		return 0
	case l.Processes == 0:
		return standard
	}
	return l.Processes
}

// Door is an address inside the walls at which somebody outside answers
// (rulings A8 and A13).
type Door struct {
	// Addr is where commands find it: a loopback address and a port, such as
	// 127.0.0.1:3000. Port 0 lets the wall choose; see DoorAddr of the walls.
	Addr string
	// Serve answers one connection, and closes it.
	// Contract: it is called from many goroutines, and returns when the
	// connection is closed from either side.
	Serve func(net.Conn)
}
