package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/report"
	"hone/cmd/hone/web"
	"hone/harness/runs"
	"hone/sandbox"
)

func (a *app) webCommand() *cobra.Command {
	var dirs []string
	var open, actions bool
	var listen web.ListenFlags
	c := helped("web", &cobra.Command{
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			for _, dir := range dirs {
				home, err := runs.Open(dir)
				if err == nil {
					home.Close()
				} else if !errors.Is(err, runs.ErrNone) { // the page waits for the first run
					return err
				}
			}
			page := ""
			if len(args) > 0 {
				home, run, err := report.Find(dirs[0], args[0])
				if err != nil {
					return err
				}
				home.Close()
				page = run
			}
			return a.web(c.Context(), listen, dirs, page, open, actions)
		},
	})
	listen.Register(c.Flags())
	c.Flags().StringArrayVarP(&dirs, "dir", "C", []string{"."}, "show the runs in `DIR`; repeat it for more")
	c.Flags().BoolVar(&actions, "allow-actions", false, "let the page answer questions, and stop, resume and undo runs")
	c.Flags().BoolVar(&open, "open", false, "open the page in the browser")
	return c
}

// An empty page is the list.
func (a *app) web(ctx context.Context, listen web.ListenFlags, dirs []string, page string, open, actions bool) error {
	o := web.Options{Dirs: dirs, Version: version(), Clean: a.redactKnown, Environ: a.environ}
	if actions {
		o.Say = func(text string) { a.say("note", text) }
	}
	l, remote, err := listen.Listen()
	if err != nil {
		return err
	}
	s, err := web.New(ctx, l, remote, o)
	if err != nil {
		return failure.Of(errors.Join(err, l.Close()), "")
	}
	defer surviveBrokenPipe()() // hone web | head -1 keeps running
	link := s.Link(page)
	fmt.Fprintf(a.out, "%s\n", link)
	if remote != nil {
		address, _, _ := strings.Cut(link, "?")
		a.say("note", "to sign in with the password, open "+address)
	}
	if a.terminal {
		fmt.Fprintln(a.err, "hone: the address works once. Enter prints a new one, Ctrl-C ends.")
		go func() {
			for lines := bufio.NewScanner(inputOf(a.in)); lines.Scan(); {
				fmt.Fprintf(a.out, "%s\n", s.Link(page))
			}
		}()
	}
	if open {
		if err := openBrowser(ctx, sandbox.OwnEnviron(a.environ, o.Dirs...), link); err != nil {
			a.say("note", "the browser could not be opened: "+err.Error())
		}
	}
	return s.Serve(l)
}

// It serves until stop is called. link leads to the page of the run. say says in the terminal what the user does on the page;
// nil means that the user can only look.
func (a *app) serveRun(ctx context.Context, dir string, own *web.OwnRun, say func(string)) (link string, stop func(), err error) {
	l, _, err := web.ListenFlags{}.Listen()
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s, err := web.New(ctx, l, nil, web.Options{Dirs: []string{dir}, Version: version(), Clean: a.redactKnown, Environ: a.environ, Own: own, Say: say})
	if err != nil {
		cancel()
		return "", nil, failure.Of(errors.Join(err, l.Close()), "")
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // the run does not depend on its page
	}()
	return s.Link(own.ID), func() { cancel(); <-served }, nil
}

func openBrowser(ctx context.Context, environ []string, address string) error {
	argv := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		argv = []string{"open", address}
	case "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	path, err := sandbox.FindProgram(argv[0], environ)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, path, argv[1:]...)
	c.Env = environ
	return c.Start()
}
