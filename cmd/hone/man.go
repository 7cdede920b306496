package main

import (
	"os"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/manual"
)

// It is hidden, because it is for packages: users have the pages, or hone help.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "write the man pages to a directory",
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
			return manual.Write(c.Root(), args[0], version(), everyday)
		},
	}
}
