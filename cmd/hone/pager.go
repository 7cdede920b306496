package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// page shows a text in the user's pager, $PAGER or less, on a terminal. Like git, it
// lets less show colours and exit if the text fits the screen.
func (a *app) page(text string, terminal *os.File) error {
	for _, clean := range a.secrets {
		text = clean(text)
	}
	c := exec.Command("sh", "-c", cmp.Or(a.env("PAGER"), "less"))
	c.Env = append([]string{"LESS=FRX"}, a.environ...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(text), terminal, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w; set PAGER to another one", strings.Join(c.Args[2:], " "), err)
	}
	return nil
}
