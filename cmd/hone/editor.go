package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"hone/sandbox"
)

// editText opens contents in the user's editor ($VISUAL, $EDITOR or vi), and returns what the
// user made of them. The editor gets a private file, with the base name of file, in a new
// temporary directory whose name begins with prefix, so that a later process can remove
// what this one leaves if it dies. The editor reads from in, and is found in environ,
// see [sandbox.OwnEnviron].
func editText(in *os.File, environ []string, prefix, file string, content []byte) ([]byte, error) {
	editor, err := editor(environ)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, plainName(path.Base(file)))
	if err := os.WriteFile(name, content, 0o600); err != nil {
		return nil, err
	}
	// Like git: the variable may have options, as in "code --wait".
	c, err := shellCommand(environ, editor+` "$@"`, editor, name)
	if err != nil {
		return nil, err
	}
	c.Stdin, c.Stdout, c.Stderr = in, os.Stderr, os.Stderr // standard output may be a file
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", editor, err)
	}
	return os.ReadFile(name)
}

func shellCommand(environ []string, line string, args ...string) (*exec.Cmd, error) {
	path, err := sandbox.FindProgram("sh", environ)
	return &exec.Cmd{Path: path, Args: append([]string{"sh", "-c", line}, args...), Env: environ}, err
}

func editor(environ []string) (string, error) {
	if set := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")); set != "" {
		return set, nil
	}
	if _, err := sandbox.FindProgram("vi", environ); err != nil {
		return "", errors.New("no editor is set, and there is no vi: set EDITOR first (at a question, press q, and go on with hone resume)")
	}
	return "vi", nil
}

// A program might misread other characters. The model chose the name.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-+", r):
			return r
		}
		return '_'
	}, name)
}

// showInPager shows a text in the user's pager, $PAGER or less, on a terminal. As with git, less
// shows colors, and exits if the text fits the screen. It is found in environ, see [sandbox.OwnEnviron].
func showInPager(terminal *os.File, environ []string, text string) error {
	c, err := shellCommand(append([]string{"LESS=FRX"}, environ...), cmp.Or(os.Getenv("PAGER"), "less"))
	if err != nil {
		return err
	}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(text), terminal, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w; set PAGER to another one", strings.Join(c.Args[2:], " "), err)
	}
	return nil
}
