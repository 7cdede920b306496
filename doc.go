// Package hone runs bounded loops in which a language model edits a tree, and a
// check that is not the model decides whether the result is right.
//
// # What to call
//
// A program that runs a loop of its own begins with [hone/harness], which locks
// the workspace, opens the model and builds the walls:
//
//	func main() {
//		harness.Main() // does not return in a helper process of the walls
//		s, err := harness.Open(".", harness.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer s.Close()
//		fixer := s.Role("fixer", "Fix what go vet reports.")
//		run := s.Run(hone.Limits{Rounds: 5})
//		run.Check = s.Command("go vet ./...")
//		run.Trust.CheckFirst = hone.UnlessClean
//		end, err := run.Do(ctx, func(ctx context.Context, r *hone.Run, wrong []check.Finding) ([]check.Finding, error) {
//			_, err := r.Talk(ctx, fixer, hone.Text("Fix this:", wrong[0].Text))
//			return nil, err
//		})
//		fmt.Println(end.Kind, end.Why, err)
//	}
//
// examples/fixlint is this program, complete. A [Round] takes the findings of the
// round before it and returns findings of its own. It works with six functions:
//
//   - [Step] reads the world, and records what it read.
//   - [Once] does what must not be repeated, such as a command with side effects.
//   - [Run.Ask] asks a model once.
//   - [Run.Talk] lets a model call tools until it answers.
//   - [Run.Delegate] lets a command-line agent work by itself.
//   - [Run.Apply] changes the tree: all edits of a change, or none.
//
// Each records its start and its result in the run's journal. A killed run can
// therefore be resumed at any point, in the middle of a conversation too: recorded
// results are returned again, a tool that only reads runs again, and a command that
// was interrupted is reported as such. No recorded reply is paid for twice.
//
// A round must keep two rules. It touches the world only through these functions,
// and it keeps nothing in variables from one of them to the next beyond their
// results: what earlier rounds did is in [Run.Past], [Earlier] and [First].
//
// # How a run ends
//
// [Run.Do] repeats the round until there are no findings, or a limit is reached. The
// model never decides that it is done: if a round returns no blocking finding, the
// engine runs [Run.Check], and only a check without findings ends the run as done.
// [Trust] says whether the check also runs before the first round, whether it has
// to fail there, and whether it has to pass once more on a clean copy of the tree.
// [End] says why a run ended and what the user can do next, as data ([Kind],
// [Next]); the program puts it into words.
//
// # The packages, from the bottom up
//
// A package imports only lower packages; imports_test.go has the table.
//
//   - [hone/model] asks a language model once. Its subdirectories are the providers.
//   - [hone/workspace] is the tree: which files may be read, which may be written on
//     a model's word, and how a change is applied completely or not at all. Below
//     it, secret finds what must not be sent, restore restores files, clone copies a
//     tree, and treepath spells paths.
//   - [hone/sandbox] runs commands, behind walls ([hone/sandbox/wall]), and stops
//     all processes that they started.
//   - [hone/journal] is the append-only file of a run's events, and [hone/journal/objects]
//     stores the contents that these name. [hone/journal/bundle] is a run in one file.
//   - [hone/check] turns the output of a check into findings.
//   - [hone/tool] has the tools that a model can call; [hone/block] parses the
//     blocks in which a model without tools answers.
//   - [hone/history] gives a journal its meaning: one type for each event, and
//     [hone/history.Past], which all of them add up to. Undo and the diffs of rounds are
//     there as well, since they need only a journal and a tree.
//   - [hone/model/paid] asks models that cost money: a model around others that reserves,
//     retries, waits out an outage, fails over and charges.
//   - [hone/story] says what a run looks like: its rounds, every event in words, its
//     figures. A terminal, a page and JSON print it.
//   - This package is the engine. What stops a run is in stop.go, when a check is
//     believed in trust.go and protect.go, progress in progress.go, resuming in
//     round.go and replaying in replay.go; besides that, only step.go and snapshot.go
//     know whether a run is replayed. It is one package, and large, because all of it
//     works on the state of one [Run].
//   - [hone/loop] says what a loop declares: name, flags, settings, starter files, and
//     how it is built from a session. Each subdirectory is one loop: a function that
//     reads like its specification, and a Kind in kind.go. The smallest is
//     [hone/loop/fix].
//   - [hone/harness] makes a run safe: it locks the workspace, completes what a killed
//     process left half done, keeps keys out of the journal, hides secret files, and
//     builds walls. Below it, [hone/harness/runs] opens what earlier runs recorded.
//   - cmd/hone is the program: one file for each command that is not a loop. The list of
//     loops (kinds), the words of hints and exit statuses (failure), and what draws on
//     screens are in packages below it. Only cmd/hone exits.
package hone
