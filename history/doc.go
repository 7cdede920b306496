// Package history is what the journal of a run means.
//
// [Decode] turns a line of the journal into an [Event], whose payload has a type
// of its own: readers switch on payload types, never on strings. [Past] takes in
// each event once and answers questions about the run, such as where it stands,
// what its calls cost, or which of its edits were declined. Call [Follow] for a
// run whose journal is open, and [Read] for events that were read from a file.
//
// The rest needs only a journal and a tree. [Reverse] finds out how to restore
// the files that a run changed, and [Reversal.Restore] does so. [Past.Changes] is
// how a round changed the tree, and [ReadRequest] what a model was sent. [Settle]
// completes the edits of a process that died while it made them. [KeepContents]
// and [KeepManifest] store a tree so that it can be restored.
//
// An event that this version of hone cannot read is [Unreadable]. A Past leaves it
// out and reports it as [Past.Err]; the engine does not resume such a run, and
// Reverse does not restore its files.
package history
