// Package tty is about the terminal of the user: what is typed on it, and the programs that
// take it over for a while, an editor and a pager. What hone itself draws on it is in
// package screen.
package tty

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Page shows a text in the user's pager, $PAGER or less, on a terminal. Like git, it
// lets less show colours and exit if the text fits the screen.
func Page(terminal *os.File, text string) error {
	c := exec.Command("sh", "-c", cmp.Or(os.Getenv("PAGER"), "less"))
	c.Env = append([]string{"LESS=FRX"}, os.Environ()...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(text), terminal, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w; set PAGER to another one", strings.Join(c.Args[2:], " "), err)
	}
	return nil
}
