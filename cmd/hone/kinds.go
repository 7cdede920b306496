package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hone"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/screen"
	"hone/harness"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/loop"
	"hone/loop/fix"
	"hone/loop/implement"
	"hone/loop/phase"
	"hone/loop/reconcile"
	"hone/loop/task"
)

// kinds are the loops that this program has. Commands, configuration, help and
// completion come from them; nothing else here knows a particular loop, but for
// demo and rollup, which are about one.
func kinds() []loop.Kind {
	return []loop.Kind{fix.Kind(), task.Kind(), implement.Kind(), reconcile.Kind(), phase.Kind()}
}

// kindOf returns the kind of a recorded run's loop.
func kindOf(start hone.Start) (loop.Kind, error) {
	kinds := append(kinds(), attempts.Kind(kinds()), attempts.TakeKind(kinds()))
	i := slices.IndexFunc(kinds, func(k loop.Kind) bool { return k.Name == start.Loop })
	if i < 0 {
		return loop.Kind{}, failure.Usage(fmt.Sprintf("the run uses the loop %q, which this program does not have", start.Loop),
			"hone show and hone undo work on it; only loops of this program are resumed and replayed")
	}
	return kinds[i], nil
}

// recorded returns the loop of a recorded run with its settings; nil if this
// hone does not have it, or cannot read them.
func recorded(start hone.Start) loop.Loop {
	k, err := kindOf(start)
	if err != nil {
		return nil
	}
	l, err := runs.Settings(k, start)
	if err != nil {
		return nil
	}
	return l
}

// ownOf reports which files a run's loop writes for the user; nil if none.
func ownOf(start hone.Start) func(string) bool {
	if l := recorded(start); l != nil {
		return l.Own(start.Dir)
	}
	return nil
}

// second returns the role and the name of the model that a run's loop asks beside the
// first; empty if it asks one model alone, or if the loop is not known.
func second(l loop.Loop, first string) (role, name string) {
	if l == nil {
		return "", ""
	}
	models := l.Models()
	if len(models) < 2 || models[1].Model.Name == first {
		return "", ""
	}
	return models[1].Role, models[1].Model.Names()
}

// modelNames returns the names of the models that a run asks, with their roles if there
// are several.
func modelNames(l loop.Loop, start hone.Start) []string {
	first := screen.ModelName(start.Model)
	if l != nil {
		first = screen.ModelName(cmp.Or(l.Shared().Model.Names(), start.Model))
	}
	if role, name := second(l, start.Model); name != "" {
		return []string{strings.TrimSpace(l.Models()[0].Role + " " + first), strings.TrimSpace(role + " " + screen.ModelName(name))}
	}
	return []string{cmp.Or(first, "no model")}
}

// subject returns what a run is about on one line, such as the task's words; empty if
// that is not known.
func subject(l loop.Loop) string {
	if l == nil {
		return ""
	}
	return strings.Join(strings.Fields(l.Subject()), " ")
}

// sections returns the tables of all loops in a configuration, by their names.
func sections() map[string]any {
	tables := map[string]any{}
	for _, k := range kinds() {
		if s := k.New().Section(); s != nil {
			tables[k.Name] = s
		}
	}
	return tables
}

// loadConfig first restores what a killed hone left, so that no configuration is
// read that a command wrote. Then it reads a folder's .config/hone.toml, with the table of a loop's own;
// nil is for any loop.
func (a *app) loadConfig(root, name string, l loop.Loop) (config.File, error) {
	notes, err := harness.Recover(root)
	for _, note := range notes {
		a.sayPlain("%s", note)
	}
	if err != nil {
		return config.File{}, err
	}
	tables := sections()
	if l != nil && l.Section() != nil {
		tables[name] = l.Section()
	}
	file, err := config.Load(root, tables)
	if err != nil {
		return file, harness.ConfigError(err)
	}
	return file, nil
}
