// Package tty reads what the user types on the terminal, and runs an editor or a pager on it.
// Package screen draws on the terminal.
package tty

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

// Page shows a text in the user's pager, $PAGER or less, on a terminal. As with git, less
// shows colors, and exits if the text fits the screen. It is found in environ, see [sandbox.OwnEnviron].
func Page(terminal *os.File, environ []string, text string) error {
	c, err := shell(append([]string{"LESS=FRX"}, environ...), cmp.Or(os.Getenv("PAGER"), "less"))
	if err != nil {
		return err
	}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(text), terminal, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w; set PAGER to another one", strings.Join(c.Args[2:], " "), err)
	}
	return nil
}
