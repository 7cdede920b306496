package main

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/internal/config"
	"hone/internal/near"
	"hone/internal/render"
	"hone/loop"
	"hone/loop/fix"
)

// everyday is the title of the group of loops.
const everyday = "Everyday:"

type section struct {
	title    string
	commands []*cobra.Command
}

func (a *app) groups() []section {
	var loops []*cobra.Command
	for _, k := range kinds.All() {
		loops = append(loops, a.loopCommand(k))
	}
	return []section{
		{everyday, loops},
		{"Look:", []*cobra.Command{a.runsCommand(), a.showCommand(), a.watchCommand(), a.webCommand()}},
		{"Continue and take back:", []*cobra.Command{a.resumeCommand(), a.undoCommand(), a.takeCommand(), a.replayCommand(),
			a.receiptCommand(), a.exportCommand(), a.importCommand(), a.gcCommand()}},
		{"Many repositories:", []*cobra.Command{a.fleetCommand()}},
		{"Set up:", []*cobra.Command{a.initCommand(), a.checkCommand(), a.promptCommand(), a.rollupCommand(), a.trustCommand(),
			a.doctorCommand(), a.sandboxCommand(), a.evalCommand(), a.mcpCommand(), a.demoCommand(), a.versionCommand(), a.completionCommand()}},
	}
}

// helpTexts are the topics of hone help, and a text for each command that is no loop.
//
//go:embed help
var helpTexts embed.FS

// helped adds to a command its use and its help, which help/NAME.md has in the form of those of loops.
func helped(name string, c *cobra.Command) *cobra.Command {
	text, err := helpTexts.ReadFile("help/" + name + ".md")
	if err != nil {
		panic(err) // it is part of the program
	}
	h := loop.ReadHelp(string(text))
	c.Use, c.Short, c.Long, c.Example = h.Use, h.Short, h.Long, h.Example
	return c
}

func withoutAll(args []string) ([]string, bool) {
	line := args
	if end := slices.Index(args, "--"); end >= 0 {
		line = args[:end]
	}
	at := slices.Index(line, "--all")
	if at < 0 || line[0] != "help" && !slices.Contains(line, "--help") && !slices.Contains(line, "-h") {
		return args, false
	}
	return slices.Delete(slices.Clone(args), at, at+1), true
}

// [completeTopic] adds their lists.
func topics() []*cobra.Command {
	var list []*cobra.Command
	for _, t := range []struct{ name, short, file string }{
		{"config", "every setting of .config/hone.toml", "config.toml"},
		{"environment", "the environment variables that hone reads", "environment.txt"},
		{"exit-codes", "what exit statuses mean, and what to type next", "exit-codes.txt"},
		{"models", "how models are named, and the keys that they need", "models.txt"},
	} {
		text, err := helpTexts.ReadFile("help/" + t.file)
		if err != nil {
			panic(err) // it is part of the program
		}
		list = append(list, &cobra.Command{Use: t.name, Short: t.short, Long: string(text)})
	}
	return list
}

// Every start makes the topics, but few show one.
func completeTopic(text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	return strings.NewReplacer("{{settings}}", config.Help(), "{{providers}}", providerLines(), "{{variables}}", variableLines(), "{{prices}}", priceList()).Replace(text)
}

func providerLines() string {
	var b strings.Builder
	for _, p := range harness.Providers() {
		about := p.About
		switch needs := "needs " + strings.Join(p.Keys, " or "); {
		case p.Unlisted:
			continue
		case len(p.Keys) == 0:
			about = cmp.Or(about, "needs no key")
		case about != "":
			about = needs + "; " + about
		default:
			about = needs
		}
		fmt.Fprintf(&b, "  %-15s  %s\n", p.Form(), strings.ReplaceAll(about, "\n", "\n"+strings.Repeat(" ", 19)))
	}
	return b.String()
}

func variableLines() string {
	var b strings.Builder
	for _, p := range harness.Providers() {
		if p.Unlisted {
			continue
		}
		if len(p.Keys) > 0 {
			fmt.Fprintf(&b, "  %-32s  key for %s\n", strings.Join(p.Keys, ", "), p.Form())
		}
		if p.Base != "" {
			fmt.Fprintf(&b, "  %-32s  endpoint for %s\n", p.Base, p.Form())
		}
	}
	return b.String()
}

func priceList() string {
	var rows, sources []string
	provider := ""
	for _, p := range harness.ListPrices() {
		name := p.Provider + "/" + p.Model
		if p.Elsewhere() {
			name = "  openai/" + p.Model
			if p.Provider != provider {
				rows = append(rows, "  with --base-url at "+p.Provider+":\n")
			}
		}
		provider = p.Provider
		rows = append(rows, fmt.Sprintf("  %-52s%7g%8g%12g%13g\n", name, p.Input, p.Output, p.CacheRead, p.CacheWrite))
		if p.Above > 0 {
			rows = append(rows, fmt.Sprintf("  %52s%7g%8g%12g\n", "if the prompt is longer than "+render.Tokens(p.Above), p.LongInput, p.LongOutput, p.LongCacheRead))
		}
		if source := "  " + p.Read + "  " + p.Source + "\n"; !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	slices.Sort(sources)
	return fmt.Sprintf(priceText, strings.Join(rows, ""), strings.Join(sources, ""))
}

const priceText = `List prices, in USD per million tokens, with which hone counts and limits what a run costs. What
a server itself reports, such as the usage.cost of OpenRouter, comes first. At another address, such
as that of a gateway, a model of Gemini, OpenAI or Anthropic counts at its list price. Prices change:
a [prices."PROVIDER/NAME"] section of .config/hone.toml overrides all of this. Models on your own
machine are free. If a price is unknown, --max-cost is refused.

                                                        input  output  cache read  cache write
%s
Sources:
%s`

func rejectUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil || help == root {
		return
	}
	printHelp := help.Run
	help.Short, help.Use, help.Run = "print the help of a command, or about a topic", "help [COMMAND|TOPIC]", nil
	help.Long = "help prints the help of a command, or about a topic. Without either, it lists both."
	help.RunE = func(c *cobra.Command, args []string) error {
		if about, rest, err := root.Find(args); err != nil || about.HasSubCommands() && len(rest) > 0 {
			return unknownName(about, "hone help ", "help topic", strings.Join(args, " "), rest)
		}
		printHelp(c, args)
		return nil
	}
}

func rejectUnknownCommands(c *cobra.Command) {
	if !c.HasSubCommands() {
		return
	}
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownName(c, "hone ", "command", args[0], args)
	}
	for _, sub := range c.Commands() {
		rejectUnknownCommands(sub)
	}
}

// The first of rest is what was not found; before is how a command line about such a command begins.
func unknownName(c *cobra.Command, before, what, name string, rest []string) error {
	var known []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			known = append(known, sub.Name())
		}
	}
	hint := helpFor(c)
	if strings.Contains(name, " ") && what == "command" {
		hint = fmt.Sprintf("hone task %q, or hone fix --check \"make test\"", name)
	}
	if len(rest) > 0 {
		meant := near.Name(rest[0], known)
		if !c.HasParent() {
			meant = cmp.Or(otherName(rest[0]), meant)
		}
		if what != "command" {
			meant, _, _ = strings.Cut(meant, " ")
			meant = strings.TrimSuffix(meant, ",")
		}
		if meant != "" {
			hint = "did you mean " + before + strings.TrimLeft(commandPath(c)+" "+meant, " ") + "?"
		}
	}
	return failure.Usage(fmt.Sprintf("unknown %s %q", what, name), hint)
}

// Other programs call it name; empty if there is none. An argument may follow the command.
func otherName(name string) string {
	switch strings.ToLower(name) {
	case "loop": // of code-scribe, whose task files say "loop -p FILE"
		return "task TASK.toml"
	case "agent": // of code-scribe
		return `task "TEXT"`
	case "status", "list", "ls", "ps", "history":
		return "runs"
	case "log", "logs", "diff", "report", "summary":
		return "show"
	case "run": // of ABL, which runs all phases
		return fix.Kind().Name + ", or hone phase all"
	case "start", "go":
		return fix.Kind().Name
	}
	return ""
}

// originalFlags say, by a loop and a flag of the program that it comes from, what takes its place.
var originalFlags = map[string]string{
	"phase b":         "write --builder-model PROVIDER/NAME",
	"phase i":         "write --rounds N",
	"phase cwd":       "write --dir DIR",
	"implement force": "leave it out: hone also works on uncommitted changes, and hone undo brings them back",
	"implement f":     "leave it out: hone also works on uncommitted changes, and hone undo brings them back",
}
