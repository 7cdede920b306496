package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/page"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/site"
	"hone/cmd/hone/tty"
	"hone/cmd/hone/web"
	"hone/harness"
	"hone/harness/runs"
)

func (a *app) webCommand() *cobra.Command {
	var dirs []string
	var open, actions bool
	var listen web.ListenFlags
	c := &cobra.Command{
		Use:   "web [RUN]",
		Short: "show runs on a page in the browser",
		Long: `web serves a page on 127.0.0.1 until Ctrl-C, and prints its address. The page lists the runs in this directory,
and the results of hone eval (*.results.jsonl). The page of a run shows its rounds, what the models were asked, what
each round found and changed, and every event. It updates while the run works. With RUN, an id from hone runs, a
unique prefix of one, or "last", the address opens the page of this run.

The address works only once. The browser that opens it gets a cookie, and no other browser can open the page. Press
Enter for a new address.

The page only shows runs. With --allow-actions, it can also answer questions, and stop, resume and undo runs. A run
that it resumes is a child of this command, and stops when the command ends.

To open the page on another machine, forward the port with ssh -L; --listen 127.0.0.1:PORT keeps the port the same.
Or let the server listen on another address of this machine, with TLS and a password:

    hone web --listen HOST:PORT --tls-cert FILE --tls-key FILE --password-file FILE

HOST is a name or an address of this machine; 0.0.0.0 means all its addresses. Open the page under a name or an
address that is in the certificate.`,
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
				home, run, err := recorded.Find(dirs[0], args[0])
				if err != nil {
					return err
				}
				home.Close()
				page = run
			}
			return a.web(c.Context(), listen, dirs, page, open, actions)
		},
	}
	listen.Register(c.Flags())
	c.Flags().StringArrayVarP(&dirs, "dir", "C", []string{"."}, "show the runs in this directory; repeat it for more")
	c.Flags().BoolVar(&actions, "allow-actions", false, "let the page answer questions, and stop, resume and undo runs")
	c.Flags().BoolVar(&open, "open", false, "open the page in the browser")
	return c
}

// web serves the pages of runs until the context ends. It prints the link to one page; to
// the list if page is empty.
func (a *app) web(ctx context.Context, listen web.ListenFlags, dirs []string, page string, open, actions bool) error {
	ctx, cancel := context.WithCancel(ctx)
	source := site.New(dirs, a.redactKnown)
	if actions {
		source.Allow(ctx, site.Options{Say: func(text string) { a.say("note", text) }, Environ: a.environ, Keys: harness.KnownKeys(a.env)})
	}
	defer source.Close()
	defer cancel()
	s, l, err := a.webServer(ctx, listen, source)
	if err != nil {
		return err
	}
	defer surviveBrokenPipe()() // hone web | head -1 keeps running
	link := s.Link(page)
	fmt.Fprintf(a.out, "%s\n", link)
	if listen.Remote() {
		address, _, _ := strings.Cut(link, "?")
		a.say("note", "to sign in with the password, open "+address)
	}
	if a.terminal {
		fmt.Fprintln(a.err, "hone: the address works once. Enter prints a new one, Ctrl-C ends.")
		go func() {
			for lines := bufio.NewScanner(tty.Input(a.in)); lines.Scan(); {
				fmt.Fprintf(a.out, "%s\n", s.Link(page))
			}
		}()
	}
	if open {
		if err := openBrowser(ctx, link); err != nil {
			a.say("note", "the browser could not be opened: "+err.Error())
		}
	}
	return s.Serve(l)
}

// serveRun serves the page of a run that starts, and those of the runs before it, until
// stop is called. It returns the link to it. If own is nil the user can only look. reply is what
// arrives while the run waits for a model. say says in the terminal what the user does on the
// page.
func (a *app) serveRun(ctx context.Context, h *harness.Session, own *site.OwnRun, reply *page.Reply, say func(string)) (link string, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	source := site.New([]string{h.Home.Workspace()}, a.redactKnown)
	source.SetOwn(h.ID(), reply)
	if own != nil {
		source.Allow(ctx, site.Options{Own: own, Say: say, Environ: a.environ, Keys: harness.KnownKeys(a.env)})
	}
	s, l, err := a.webServer(ctx, web.ListenFlags{Address: web.AnyPort}, source)
	if err != nil {
		cancel()
		return "", nil, err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // the run does not depend on its page
	}()
	return s.Link(h.ID()), func() { cancel(); <-served; source.Close() }, nil
}

// webServer returns a server of a source, and where it listens.
func (a *app) webServer(ctx context.Context, listen web.ListenFlags, source *site.Source) (s *web.Server, l net.Listener, err error) {
	var remote web.Remote
	if listen.Remote() {
		remote, err = listen.Read()
	} else {
		err = listen.Check()
	}
	if err != nil {
		return nil, nil, err
	}
	if l, err = net.Listen("tcp", listen.Address); err != nil {
		return nil, nil, failure.Of(err, "hone web --listen HOST:PORT with another port, or without --listen")
	}
	if listen.Remote() {
		s, err = web.NewRemote(ctx, l, source, version(), source.Renderer(), remote)
	} else {
		s, err = web.New(ctx, l, source, version(), source.Renderer())
	}
	if err != nil {
		l.Close()
		return nil, nil, failure.Of(err, "")
	}
	if actor := source.Actor(); actor != nil {
		s.Allow(actor)
	}
	return s, l, nil
}

// openBrowser opens an address in the user's browser.
func openBrowser(ctx context.Context, address string) error {
	argv := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		argv = []string{"open", address}
	case "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	return exec.CommandContext(ctx, argv[0], argv[1:]...).Start()
}
