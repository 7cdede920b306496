package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/internal/lazyregexp"
	"hone/internal/render"
)

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
