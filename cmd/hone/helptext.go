package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone/cmd/hone/failure"
	"hone/internal/config"
	"hone/internal/lazyregexp"
	"hone/internal/render"
)

// helpColumns is the greatest width of a help text.
const helpColumns = 100

// fewFlags is the number of flags up to which they need no groups.
const fewFlags = 12

// verbatim matches a paragraph that is a table, an example or a part of a configuration.
var verbatim = lazyregexp.New(`(?m)^[ #[]`)

// helpText returns the help of a command in at most so many columns. all includes flags that are
// rarely needed.
func helpText(c *cobra.Command, columns int, all bool) string {
	var b strings.Builder
	paragraphs := strings.Split(strings.TrimSpace(cmp.Or(c.Long, c.Short)), "\n\n")
	for _, p := range paragraphs {
		if !verbatim.MatchString(p) {
			p = strings.ReplaceAll(p, "\n", " ")
		}
		fmt.Fprintf(&b, "%s\n\n", render.Fill(p, columns))
	}
	commands := c.HasAvailableSubCommands()
	switch {
	case commands:
		fmt.Fprintf(&b, "Usage:\n  %s COMMAND\n\n", c.CommandPath())
	case c.Runnable():
		fmt.Fprintf(&b, "Usage:\n  %s\n\n", c.UseLine())
	default: // a topic
		return strings.TrimSuffix(b.String(), "\n")
	}
	if c.HasExample() {
		fmt.Fprintf(&b, "Examples:\n%s\n\n", render.Fill(c.Example, columns))
	}
	if commands {
		for _, g := range c.Groups() {
			helpTable(&b, g.Title, columns, rowsOf(c, func(sub *cobra.Command) bool { return sub.GroupID == g.ID }))
		}
		helpTable(&b, "Commands:", columns, rowsOf(c, func(sub *cobra.Command) bool { return sub.GroupID == "" && sub.IsAvailableCommand() }))
	}
	for _, g := range flagGroups(c, all) {
		helpTable(&b, g.title+":", columns, g.rows)
	}
	if commands {
		helpTable(&b, "Topics, for hone help:", columns, rowsOf(c, (*cobra.Command).IsAdditionalHelpTopicCommand))
		fmt.Fprintf(&b, "For more about a command: %s COMMAND --help\n\n", c.CommandPath())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func rowsOf(c *cobra.Command, ok func(*cobra.Command) bool) (rows [][2]string) {
	for _, sub := range c.Commands() {
		if ok(sub) && !sub.Hidden {
			rows = append(rows, [2]string{sub.Name(), sub.Short})
		}
	}
	return rows
}

func helpTable(b *strings.Builder, title string, columns int, rows [][2]string) {
	width := 0
	for _, row := range rows {
		width = max(width, len(row[0]))
	}
	width = min(width, columns/2-4)
	for i, row := range rows {
		if i == 0 {
			fmt.Fprintln(b, title)
		}
		fmt.Fprintln(b, render.Fill(fmt.Sprintf("  %-*s  %s", width, row[0], row[1]), columns))
		if i == len(rows)-1 {
			fmt.Fprintln(b)
		}
	}
}

type flagGroup struct {
	title string
	rows  [][2]string
}

// A command with few flags has one group.
func flagGroups(c *cobra.Command, all bool) (groups []flagGroup) {
	c.InitDefaultHelpFlag()
	rows, shown, hidden := map[string][][2]string{}, 0, 0
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		name, rare := config.GroupOf(f)
		switch {
		case f.Hidden:
		case rare && !all:
			hidden++
		default:
			left, usage := flagRow(f)
			if f.Shorthand == "" {
				left = "    " + left
			}
			rows[name] = append(rows[name], [2]string{left, usage})
			shown++
		}
	})
	for _, title := range config.Groups() {
		if shown <= fewFlags && len(groups) > 0 {
			groups[0].rows = append(groups[0].rows, rows[title]...)
		} else {
			groups = append(groups, flagGroup{title, rows[title]})
		}
	}
	if shown <= fewFlags {
		slices.SortStableFunc(groups[0].rows, func(a, b [2]string) int { return strings.Compare(a[0][4:], b[0][4:]) })
	}
	if hidden > 0 {
		i := slices.IndexFunc(groups[0].rows, func(row [2]string) bool { return strings.HasPrefix(row[0], "-h, --help") })
		groups[0].rows[i][1] = "this help; --help --all has " + render.Count(hidden, "more flag")
	}
	return groups
}

// flagRow returns a flag with the name of its value, and its usage with the default, unless
// that is the zero value.
func flagRow(f *pflag.Flag) (name, usage string) {
	value, usage := pflag.UnquoteUsage(f)
	switch choices := strings.Join(config.Choices(f), "|"); {
	case value == "int" || value == "float":
		value = "N"
	case value == "duration":
		value = "TIME"
	case value == "string" && choices != "":
		value = choices
	case value == strings.ToLower(value):
		value = strings.ToUpper(value)
	}
	if f.NoOptDefVal != "" && value != "" {
		value = "[=" + value + "]"
	} else if value != "" {
		value = " " + value
	}
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", "
	}
	if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
		usage += fmt.Sprintf(" (default %s)", strings.Trim(f.DefValue, "[]"))
	}
	return name + "--" + f.Name + value, usage
}

// It is hidden, because it is for packages: users have the pages, or hone help.
func (a *app) manCommand() *cobra.Command {
	return helped("man", &cobra.Command{
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.Usage("man takes one directory", "hone man /usr/local/share/man/man1")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			for _, topic := range c.Root().Commands() {
				topic.Long = completeTopic(topic.Long)
			}
			return writeMan(c.Root(), args[0])
		},
	})
}

// writeMan writes the page of a command, such as hone-show.1, and the pages of its subcommands
// to a directory, which must exist. Hidden commands have no page.
func writeMan(c *cobra.Command, dir string) error {
	if c.Hidden {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, manName(c)+".1"), []byte(manPage(c)), 0o644); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if err := writeMan(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manColumns is the width of the pages.
const manColumns = 78

// heading matches a heading of a help text.
var heading = lazyregexp.New(`(?m)^([A-Z].*):\n( )`)

// The page is the help of the command, and for a loop the exit statuses. It has no date, so that
// the same source always makes the same page.
func manPage(c *cobra.Command) string {
	text := helpText(c, manColumns, true)
	if c.GroupID == everyday {
		statuses, _, err := c.Root().Find([]string{"exit-codes"})
		if err != nil {
			panic(err) // it is part of the program
		}
		text += "\nExit status:\n  " + render.Fill(strings.TrimSpace(statuses.Long), manColumns) + "\n"
	}
	page := fmt.Sprintf(".TH %s 1 \"\" \"hone %s\" \"hone\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n",
		strings.ToUpper(manName(c)), roff(version()), roff(manName(c)), roff(c.Short))
	page += heading.ReplaceAllString(roff(text), ".fi\n.SH $1\n.nf\n$2") + ".fi\n"
	if c.HasParent() {
		page += fmt.Sprintf(".SH SEE ALSO\n.BR %s (1)\n", roff(manName(c.Parent())))
	}
	return page
}

// troff finds no commands in the text.
func roff(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(s)
}
