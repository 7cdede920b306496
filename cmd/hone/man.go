package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/internal/config"
	"hone/internal/lazyregexp"
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
// to a directory, which must exist. Hidden commands have no page. Pages of loops include the help
// topic exit-codes.
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

// It has no date, so that the same source always makes the same page.
func manPage(c *cobra.Command) string {
	topic := !c.Runnable() && !c.HasSubCommands()
	synopsis := c.UseLine()
	if topic {
		synopsis = c.Root().Name() + " help " + c.Name()
	}
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"hone %s\" \"hone\"\n", strings.ToUpper(manName(c)), roff(version()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(synopsis))
	b.WriteString(".SH DESCRIPTION\n")
	manParagraphs(&b, cmp.Or(c.Long, c.Short))
	if c.HasAvailableLocalFlags() && !topic {
		b.WriteString(".SH OPTIONS\n")
		for _, g := range flagGroups(c, true) {
			if g.title != config.Groups()[0] && len(g.rows) > 0 {
				fmt.Fprintf(&b, ".SS %s\n", g.title)
			}
			for _, row := range g.rows {
				fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(strings.TrimSpace(row[0])), roff(row[1]))
			}
		}
	}
	if c.HasExample() {
		b.WriteString(".SH EXAMPLES\n")
		manParagraphs(&b, c.Example)
	}
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
	}
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(manName(sub)), roff(sub.Short))
		}
	}
	manRelated(&b, c)
	return b.String()
}

func manRelated(b *strings.Builder, c *cobra.Command) {
	if !c.HasParent() {
		return
	}
	pages := []string{manName(c.Parent())}
	if c.GroupID == everyday {
		statuses, _, err := c.Root().Find([]string{"exit-codes"})
		if err != nil {
			panic(err) // it is part of the program
		}
		b.WriteString(".SH EXIT STATUS\n")
		manParagraphs(b, statuses.Long)
		for _, topic := range []string{"show", "resume", "undo", "config", "environment", "models"} {
			pages = append(pages, pages[0]+"-"+topic)
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, page := range pages {
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(page), end)
	}
}

// verbatim matches a paragraph that is a table, an example or a part of a configuration.
var verbatim = lazyregexp.New(`(?m)^[ #[]`)

// Lines are filled, except in a [verbatim] paragraph.
func manParagraphs(w io.Writer, text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			fmt.Fprintln(w, ".PP")
		}
		if verbatim.MatchString(paragraph) {
			fmt.Fprintf(w, ".nf\n%s\n.fi\n", roff(paragraph))
		} else {
			fmt.Fprintln(w, roff(paragraph))
		}
	}
}

// troff finds no commands in the text.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
