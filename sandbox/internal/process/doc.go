// Package process starts a command and controls its tree of processes, its
// streams and its time.
//
// [Start] starts it, [NewStreams] makes its input and output, and [Supervise]
// waits for it and ends what is left. How much of a tree is found depends on the
// system: see None in the package sandbox.
package process
