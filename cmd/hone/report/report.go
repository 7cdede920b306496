// Package report says on a terminal what a run did: how it ended and what to type next
// ([Ending]), all of it on one screen ([Overview]), event by event ([Transcript]),
// and its line in the list of runs ([Summary]). [Use] says how much disk space the runs of a directory need.
//
// It reads journals, and writes nothing. Package view says the same on a page.
package report
