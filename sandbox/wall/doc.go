// Package wall builds walls around commands.
//
// What to call: [Helper] first thing in main, [Build] with a policy, then Run or
// Start of the [Walls], and Close. Build tries the walls once: if it returns no
// error they stand, and [Walls.Grade] says what they hold back. Walls are
// Linux's; elsewhere there is only sandbox.NoWall.
//
// How it works: a command is run by three processes. This one ([Walls]) starts
// the program itself once more, as the outer helper ([Helper]), which starts the
// keeper in namespaces of its own, or has bwrap or firejail do it. The keeper
// builds what is left to build, restrains a thread of its own by the package
// kernel, starts the command from it, and stays with it to its end. They talk
// over a socket (control). What a wall cannot hold is put back afterwards by the
// package putback.
//
// The files to read, in this order:
//
//	walls_linux.go    Build, Run and Start: the walls as their caller has them
//	command_linux.go  one command behind walls, as it is seen from outside
//	helper_linux.go   the outer helper
//	keeper_linux.go   the process that starts the command behind the walls
//	spec_linux.go     what the helpers are told, and in what the walls differ
//
// A wall is built by hidden_linux.go, bwrap_linux.go or firejail_linux.go; the
// wall landlock is nothing but the restraint of the package kernel.
//
// To add a wall: name it in the package sandbox, say in plan how it is built and
// in spec_linux.go how it differs from others, give it an advice, and a column
// in the table of the package prove.
package wall
