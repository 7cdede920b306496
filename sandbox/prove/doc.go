// Package prove checks whether walls hold, by trying to cross them.
//
// Call [All] or [Short], and [Helper] in main. They set up a scene outside the
// walls: files with secrets, files to overwrite, sockets that listen, a process
// to signal. Then the program runs itself behind the walls, where each [Attempt]
// tries one way out, and inspects the scene afterwards. The table attempts.md
// contains the expected result of each attempt for each wall.
//
// An attempt that was stopped shows that this way is closed on this machine now.
// It does not show that there is no other way.
//
// [Conditions] says whether a proof still holds, so that it need not be repeated.
//
// Nothing outside the scene is changed. Attempts open some of the machine's own
// files but do not read or write them; they send no packet to other machines, and
// signal only processes that the package started.
//
// The package has more than 2 500 lines because it contains 160 attempts,
// one value each; the machinery around them is 1 500.
package prove
