// Package history interprets the journal of a run.
//
// [Decode] turns a line of the journal into an [Event], whose payload has a type
// of its own: readers switch on payload types, never on strings. [Past] adds up the
// events, each once, and answers questions about the run, such as its state, what
// its calls cost, or which of its edits were declined. Call [Follow] for a run whose
// journal is open, and [Read] for events that were read from a file.
//
// The rest needs only a journal and a tree. [Reverse] finds out how to restore the
// files that a run changed, and [Reversal.Restore] restores them. [Past.Changes]
// returns how a round changed the tree, and [ReadRequest] what a model was sent.
// [Retrace] makes the edits of a run again and compares the trees. [Settle]
// completes the edits of a process that died while it made them. [KeepContents] and
// [KeepManifest] store a tree so that it can be restored.
//
// An event that this version of hone cannot read is [Unreadable]. A Past leaves it
// out and reports it as [Past.Err]; the engine does not resume such a run, and
// Reverse does not restore its files.
package history
