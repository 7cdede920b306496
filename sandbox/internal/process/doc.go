// Package process starts a command and keeps hold of all that it starts in turn:
// its tree of processes, its streams, its time. [Start] starts it, [NewStreams]
// gives it what it reads and takes what it writes, [Supervise] waits for it and
// ends what is left. How much of a tree is found depends on the system, see the
// sandbox's None.
package process
