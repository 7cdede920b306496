// Package kinds lists the loops of this program, and says what a recorded run's loop is: its
// settings, its models, what it is about, and which files it writes itself. A run whose loop
// this program does not have can still be shown and undone.
package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hone"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/harness"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/config"
	"hone/loop"
	"hone/loop/fix"
	"hone/loop/implement"
	"hone/loop/improve"
	"hone/loop/phase"
	"hone/loop/reconcile"
	"hone/loop/task"
	"hone/story"
)

// All returns the loops that this program has. Commands, configuration, help and
// completion come from them; no other code of the program knows a particular loop, except
// the commands demo and rollup, which are about one. The first is that of a case of eval
// which names none. Texts name loops as examples.
func All() []loop.Kind {
	return []loop.Kind{fix.Kind(), task.Kind(), implement.Kind(), reconcile.Kind(), phase.Kind(), improve.Kind()}
}

// Of returns the kind of a recorded run's loop.
func Of(start hone.Start) (loop.Kind, error) {
	all := append(All(), attempts.Kind(All()), attempts.TakeKind(All()))
	i := slices.IndexFunc(all, func(k loop.Kind) bool { return k.Name == start.Loop })
	if i < 0 {
		return loop.Kind{}, failure.Usage(fmt.Sprintf("the run uses the loop %q, which this program does not have", start.Loop),
			"hone show and hone undo work on it; only loops of this program are resumed and replayed")
	}
	return all[i], nil
}

// Recorded returns the loop of a recorded run with its settings; nil if this
// hone does not have it, or cannot read them.
func Recorded(start hone.Start) loop.Loop {
	k, err := Of(start)
	if err != nil {
		return nil
	}
	l, err := runs.Settings(k, start)
	if err != nil {
		return nil
	}
	return l
}

// Own returns a function that reports which files a run's loop writes for the user, and into
// which hone wrote its output; nil if there are none, or the loop is not known.
func Own(start hone.Start, past *history.Past) (own func(string) bool) {
	if l := Recorded(start); l != nil {
		own = l.Own(start.Dir)
	}
	return history.OwnFiles(own, past.Facts().Outputs)
}

// Judges returns a function that reports which files judge the work of a run.
func Judges(start hone.Start, past *history.Past, get history.Get) func(string) bool {
	l := Recorded(start)
	if l == nil {
		return func(string) bool { return false }
	}
	opened := cmp.Or(past.Facts().Opened, new(history.Opened))
	found, _ := history.ReadManifest(opened.Manifest, get) // nil with an error: targets of links are not known
	return l.Shared().Judges(start.Dir, found)
}

// ModelNames returns the names of the models that a run asks, with their roles if there
// are several. l is nil if the loop is not known.
func ModelNames(l loop.Loop, start hone.Start) []string {
	if l == nil {
		return []string{cmp.Or(story.ModelName(start.Model), "no model")}
	}
	first, all := story.ModelName(cmp.Or(l.Shared().Model.Names(), start.Model)), l.Models()
	if len(all) < 2 || all[1].Model.Name == start.Model || all[1].Model.Name == "" {
		return []string{cmp.Or(first, "no model")}
	}
	return []string{strings.TrimSpace(all[0].Role + " " + first), strings.TrimSpace(all[1].Role + " " + story.ModelName(all[1].Model.Names()))}
}

// Subject returns what a run is about on one line, such as the task's words; empty if
// that is not known.
func Subject(l loop.Loop) string {
	if l == nil {
		return ""
	}
	return strings.Join(strings.Fields(l.Shared().Subject()), " ")
}

// Needs returns what a folder needs trust for, if these loops run in it. The settings
// are those of all loops, so that their digest does not depend on the loop.
func Needs(root string, file config.File, run ...loop.Kind) (n harness.Needs, err error) {
	n.Folder = root
	if n.Programs, err = harness.OwnPrograms(root, file, run...); err != nil {
		return n, err
	}
	n.Settings, err = harness.OwnSettings(root, file, All()...)
	return n, err
}
