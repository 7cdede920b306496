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
