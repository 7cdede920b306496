// Package wall builds walls around commands.
//
// Call [Helper] first in main. Then call [Build] with a policy, run commands
// with Run or Start of the [Walls], and Close them. Build tries the walls once:
// if it returns no error they work, and [Walls.Grade] describes them. Walls
// need Linux; other systems have only sandbox.NoWall.
//
// This process ([Walls]) starts its own program again as a helper ([Helper]) for each
// command, and sends it what to do. The helper is the keeper: behind the hidden wall in
// namespaces of its own, in which it starts. For bwrap and firejail, which start the
// keeper, it is a process outside that waits for them. The keeper builds the rest of the
// wall, restrains one of its threads with the package kernel, starts the command from
// that thread, and stays until the command ends. The processes talk over a socket
// (control). The package placeholder covers what must not exist while a command runs, and
// the package putback restores afterwards what a wall cannot protect.
//
// Read the files in this order:
//
//	walls_linux.go    Build, Run and Start: the walls as their caller sees them
//	command_linux.go  one command behind walls, seen from outside
//	ahead_linux.go    the start of helpers, also before there is a command
//	helper_linux.go   the helper outside, and what helpers have in common
//	keeper_linux.go   the process that starts the command behind the walls
//	kinds_linux.go    the table of walls
//
// The package has more than 2 500 lines because it has four walls, one file each
// beside the files above, and the helper of all of them must be in the same program.
//
// To add a wall, add its name to the package sandbox, its [kind] to the table
// in kinds_linux.go, and a column to the table in sandbox/prove/table.
package wall
