package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes the man pages. It is hidden, because it is for packages: users
// have the pages, or hone help.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "write the man pages to a directory",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("man takes one directory", "hone man /usr/local/share/man/man1")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeManPages(c.Root(), args[0])
		},
	}
}

// writeManPages writes the page of a command, such as hone-show.1, and those of the
// commands below it, to a directory. Hidden commands have no page.
func writeManPages(c *cobra.Command, dir string) error {
	if c.Hidden {
		return nil
	}
	name := manName(c)
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manPage(c)), 0o644); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if err := writeManPages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manName returns the name of a command's page, without its section.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage returns the man page of a command, in roff. It has no date, so that the same
// source always makes the same page.
func manPage(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
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
	manText(&b, longOrShort(c))
	if c.HasAvailableLocalFlags() && !topic {
		b.WriteString(".SH OPTIONS\n")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { manFlag(&b, f) })
	}
	if c.HasExample() {
		b.WriteString(".SH EXAMPLES\n")
		manText(&b, c.Example)
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

// manRelated writes the exit statuses of a loop, and the pages that belong to a command.
func manRelated(b *strings.Builder, c *cobra.Command) {
	if !c.HasParent() {
		return
	}
	related := []string{manName(c.Parent())}
	if c.GroupID == everyday {
		statuses, _, err := c.Root().Find([]string{"exit-codes"})
		if err != nil {
			panic(err) // it is part of the program
		}
		b.WriteString(".SH EXIT STATUS\n")
		manText(b, statuses.Long)
		for _, name := range []string{"show", "resume", "undo", "config", "environment", "models"} {
			related = append(related, related[0]+"-"+name)
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, name := range related {
		end := ","
		if i == len(related)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(name), end)
	}
}

func longOrShort(c *cobra.Command) string {
	if c.Long == "" {
		return c.Short
	}
	return c.Long
}

// verbatim matches a paragraph that is a table, an example or a part of a configuration.
var verbatim = regexp.MustCompile(`(?m)^[ #[]`)

// manText writes paragraphs. Lines are filled, except where the paragraph is [verbatim].
func manText(w io.Writer, text string) {
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

func manFlag(w io.Writer, f *pflag.Flag) {
	if f.Hidden || f.Deprecated != "" {
		return
	}
	short := ""
	if f.Shorthand != "" {
		short = "-" + f.Shorthand + ", "
	}
	value, usage := pflag.UnquoteUsage(f)
	fmt.Fprintf(w, ".TP\n\\fB%s\\fR", roff(short+"--"+f.Name))
	if value != "" {
		fmt.Fprintf(w, " \\fI%s\\fR", roff(value))
	}
	fmt.Fprintf(w, "\n%s", roff(usage))
	if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
		fmt.Fprintf(w, " (default %s)", roff(f.DefValue))
	}
	fmt.Fprintln(w)
}

// roff returns a text in which troff finds no commands.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
