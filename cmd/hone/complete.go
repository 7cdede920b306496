package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/internal/lazyregexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone/check/reader"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/report"
	"hone/harness"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/internal/render"
	"hone/journal"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func (a *app) completionCommand() *cobra.Command {
	return helped("completion", &cobra.Command{
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			hint := "hone completion bash, zsh, fish or powershell"
			switch {
			case len(args) != 1:
				return failure.Usage("completion needs the name of a shell", hint)
			case !slices.Contains(shells, args[0]):
				return failure.Usage(fmt.Sprintf("hone has no completion for %q", args[0]), hint)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch root := c.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
		},
	})
}

// To complete, hone only reads: it asks nothing, records no trust and runs nothing of the folder.
func (a *app) completeWords(c *cobra.Command) {
	switch c.Name() {
	case "show", "watch", "web", "resume", "undo", "replay", "export":
		c.ValidArgsFunction = a.completeRun
	case "take", "runs", "gc", "check", "rollup", "doctor", "demo", "version":
		c.ValidArgsFunction = cobra.NoFileCompletions
	case "help":
		commands := c.ValidArgsFunction
		c.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			words, directive := commands(c, args, word)
			for _, t := range topics() {
				if len(args) == 0 && strings.HasPrefix(t.Name(), word) {
					words = append(words, cobra.CompletionWithDesc(t.Name(), t.Short))
				}
			}
			return words, directive
		}
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		var complete cobra.CompletionFunc
		if values := config.Choices(f); values != nil {
			complete = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
		}
		switch kind := f.Value.Type(); {
		case f.Name == "check-format":
			complete = cobra.FixedCompletions(reader.Names(), cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "model" || strings.HasSuffix(f.Name, "-model"):
			complete = completeModel
		case f.Name == "plan" || strings.HasPrefix(kind, "int") || kind == "float64" || kind == "duration":
			complete = cobra.NoFileCompletions
		}
		if complete == nil {
			return
		}
		if err := c.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
			panic(err) // each flag has one
		}
	})
	for _, sub := range c.Commands() {
		a.completeWords(sub)
	}
}

// plainRun matches a run's id. The name of a file in a foreign .hone may be anything.
var plainRun = lazyregexp.New(`^[0-9A-Za-z-]+$`)

// The number of runs that a completion proposes, and the columns of their descriptions.
const (
	proposedRuns       = 30
	descriptionColumns = 60
)

func (a *app) completeRun(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if len(args) > 0 {
		return nil, directive
	}
	home, err := runs.Open(c.Flag("dir").Value.String())
	if err != nil {
		return nil, directive
	}
	defer home.Close()
	ids, err := home.Runs()
	if err != nil || len(ids) == 0 {
		return nil, directive
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return !plainRun.MatchString(id) || !strings.HasPrefix(journal.ShortRun(id), word)
	})
	slices.Reverse(ids)
	working, _ := home.LockedRun()
	var words []cobra.Completion
	for _, id := range ids[:min(len(ids), proposedRuns)] {
		s := report.Summarize(home, id, id == working, nil)
		text := fmt.Sprintf("%s, %s ago: %s %s", s.Result, render.Age(s.When, time.Now()), s.Loop, s.Subject)
		words = append(words, cobra.CompletionWithDesc(journal.ShortRun(id), render.Cut(render.Line(text), descriptionColumns)))
	}
	if strings.HasPrefix("last", word) {
		words = append(words, cobra.CompletionWithDesc("last", "the newest run"))
	}
	return words, directive
}

// No space follows a provider. After a comma it proposes fallbacks.
func completeModel(_ *cobra.Command, _ []string, typed string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	at := strings.LastIndexByte(typed, ',') + 1
	before, word := typed[:at], typed[at:]
	propose := func(name string) {
		if !strings.HasPrefix(name, word) || name == word {
			return
		}
		if strings.HasSuffix(name, "/") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		words = append(words, before+name)
	}
	if !strings.Contains(word, "/") {
		for _, name := range harness.ListedProviders() {
			propose(name + "/")
		}
		return words, directive
	}
	for _, p := range harness.ListPrices() {
		if !p.Elsewhere() {
			propose(p.Provider + "/" + p.Model)
		}
	}
	return words, directive
}
