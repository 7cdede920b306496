// Package history is what a run's journal means: typed events, and what follows
// from them.
//
// A journal holds lines; [Decode] reads one into an [Event] whose payload has a
// type of its own, so that readers switch on types and never on strings.
package history
