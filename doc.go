// Package hone runs bounded loops in which a language model edits a tree and
// something that is not the model says whether the result is right.
//
// This comment is the tour of the house, bottom up. Arrows run down only;
// imports_test.go holds the table.
//
// # The ground floor
//
// Four rooms that know nothing of each other. [hone/model] asks a language
// model once, over one wire; the providers live below it. [hone/workspace] is
// the tree: what may be read, what may be written on a model's word, and how
// every edit of a change is made or none. [hone/sandbox] runs commands and
// ends all that they started. [hone/journal] keeps what a run did, in one
// append-only file, and is what a run resumes from. Beside them stands
// internal/git, which asks git without letting a repository run programs.
//
// # One floor up
//
// [hone/check] turns a command's verdict into findings: what is wrong, worded
// for the next round. [hone/tool] is what a model can do in a conversation,
// and [hone/block] the codec of the blocks in which it answers when it has no
// tools. internal/render shows a tree to a model and a change to a person.
//
// # The past of a run
//
// [hone/history] is what a journal means. It has a type for the payload of each
// event, and one fold over them, [hone/history.Past], which answers what the
// engine, the loops and the commands ask about a run. It also holds what needs
// only a journal and a tree: undo, what a round changed, what a model was sent,
// and completing the edits of a process that died.
//
// # The engine, this package
//
// What flows from round to round is always a list of findings, so a [Round] is
// a function from findings to findings, and [Run.Do] is a bounded search for
// the empty list. A loop's author has five verbs: [Step] looks at the world,
// [Once] changes it in a way that must not be repeated, [Run.Ask] asks a model
// once, [Run.Talk] lets it call tools until it answers, and [Run.Apply] changes
// the tree. Each leaves a begin and a record in the journal, so that a run
// which was killed anywhere goes on from there, in the middle of a conversation
// too: a tool that only looks is run again, a command is not, and a recorded
// answer is never bought again. A loop has to keep two rules: it touches the world
// only through a step, and it keeps nothing in a struct from one step to the next,
// but reads it from [Run.Past], [Earlier] and [First].
//
// The model never decides that it is done. The check runs exactly when there is no
// blocking finding, and the run is done only if there is none afterwards. The check
// may also run before the first round, which then begins with its findings; it can
// be required to fail first, and to pass on a clean copy of the tree (trust.go).
// The files that belong to it are protected from what it judges (protect.go), and
// the states of the rounds alone show whether a run makes progress (progress.go).
// A run that ends says why and what the user can do next as data ([Stop], [Next]);
// the program words it.
//
// Each snapshot of the tree keeps the contents of its files (snapshot.go). So the
// tree of any round can be restored ([hone/history.Reverse]), and a run can be
// replayed from its journal alone ([Run.Replay]): the same engine, in a world where
// each step returns its record, and over a journal that accepts only the event that
// is recorded next.
//
// # The loops
//
// [hone/loop] says what a loop declares: its name, flags, settings, starter
// files, and how it is built from a session. Each folder below it holds one
// loop: a function that reads from top to bottom like its specification, and
// one Kind value in kind.go. Begin with [hone/loop/fix], the smallest.
//
// # The middle floor and the command
//
// [hone/harness] makes a run safe: it locks the workspace, finishes what a
// killed process left half done, asks git what belongs to the workspace, opens
// models by name, keeps keys out of whatever is recorded, hides secrets, and
// builds the walls. A program with a loop of its own begins there, as
// examples/fixlint does. cmd/hone is our program: the slice of loops, one file a
// command, and the words of every hint. It alone draws screens and exits.
package hone
