// Package prove finds out whether walls hold, by trying to cross them.
//
// It sets up a scene outside of the walls: files with secrets, files to
// overwrite, sockets that listen, a process to be signalled. Then it runs
// itself behind the walls, where each [Attempt] tries one way out, and looks
// at the scene afterwards. What has to come out of each attempt stands in one
// table, attempts.md, for each wall.
//
// An attempt that was stopped shows that this way is closed on this machine
// now. It does not show that there is no other way.
//
// Nothing outside of the scene is changed. Of the machine's own files it opens
// some, and reads or writes none of them; it sends no packet beyond the
// machine, and signals no process that is not its own.
package prove
