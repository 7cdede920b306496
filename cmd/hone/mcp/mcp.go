// Package mcp serves hone to other agents over the Model Context Protocol: they run the check,
// start a bounded run, wait for it, look at it, stop it and undo it. A client is a model, so
// what the user types when the server starts decides all that a run may cost and do.
package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"hone/cmd/hone/recorded"
	"hone/internal/child"
	"hone/journal"
)

// Options are what the user decides.
type Options struct {
	Version string
	Program string   // hone itself
	Dir     string   // where the runs work; absolute
	Logs    string   // a directory of the user that has what the started runs print
	Typed   []string // flags for every run, which have precedence over those of the client
	Environ []string
	Loops   []string // that a client can start
	// Valid returns why a client may not give a loop these flags.
	Valid func(loop string, args []string) error
}

// Serve serves one client on standard input and output until it disconnects. Runs that it has
// started go on: another server in the same directory finds them.
func Serve(ctx context.Context, o Options) error {
	s := &server{o}
	m := mcp.NewServer(&mcp.Implementation{Name: "hone", Version: o.Version}, &mcp.ServerOptions{Instructions: instructions})
	mcp.AddTool(m, &mcp.Tool{Name: "check", Description: "Run the project's check once, and list what it finds. Asks no model.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, s.check)
	mcp.AddTool(m, &mcp.Tool{Name: "start", Description: "Start a run in which hone's own model edits the project's files until a check passes or a budget is used up. Returns the run's id at once. " +
		"Only one run works in a directory at a time. Do not edit the project's files while it works. The loops are " + strings.Join(o.Loops, ", ") + "; fix makes a check pass, task carries out the task that text describes."}, s.start)
	mcp.AddTool(m, &mcp.Tool{Name: "wait", Description: "Wait until a run ends, and show its rounds and its result. If it still works after the given seconds, say so: call wait again.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, s.wait)
	mcp.AddTool(m, &mcp.Tool{Name: "show", Description: "Show a run: its rounds and its result, or the changes that it made as a diff. Without a run, list all runs of the directory.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, s.show)
	mcp.AddTool(m, &mcp.Tool{Name: "stop", Description: "Stop a run that this server has started. What it has changed stays; undo takes it back."}, s.stop)
	mcp.AddTool(m, &mcp.Tool{Name: "undo", Description: "Restore all files that a run of this server has changed. If one was changed after the run, nothing is restored."}, s.undo)
	return m.Run(ctx, &mcp.StdioTransport{})
}

const instructions = "hone runs a model in a loop until a check passes, within a budget that the user has set. Call start, then wait until the run has ended, then show with diff. " +
	"You cannot answer its questions, and cannot change its limits, model or walls: if a run needs that, tell the user the command that hone names."

type server struct{ Options }

type checkIn struct {
	Check string `json:"check,omitempty" jsonschema:"a shell command that exits with 0 if all is well; without it the project's own"`
}

type startIn struct {
	Loop string   `json:"loop" jsonschema:"fix, task, implement, reconcile or improve"`
	Text string   `json:"text,omitempty" jsonschema:"for task, what is to be done; for fix and improve, advice; for implement, the query"`
	Args []string `json:"args,omitempty" jsonschema:"more flags of the loop, such as --check and make test; hone help LOOP lists them"`
}

type runIn struct {
	Run string `json:"run" jsonschema:"the id that start returned"`
}

type waitIn struct {
	Run     string `json:"run" jsonschema:"the id that start returned"`
	Seconds int    `json:"seconds,omitempty" jsonschema:"at most 600; 60 if it is left out"`
}

type showIn struct {
	Run  string `json:"run,omitempty" jsonschema:"an id; left out: list the runs"`
	Diff bool   `json:"diff,omitempty" jsonschema:"show the changes as a diff"`
}

type request = *mcp.CallToolRequest

func (s *server) check(ctx context.Context, _ request, in checkIn) (*mcp.CallToolResult, any, error) {
	args := []string{"check", "-C", s.Dir}
	if in.Check != "" {
		args = append(args, "--check="+in.Check)
	}
	text, exit, err := s.hone(ctx, args...)
	switch {
	case err != nil:
		return nil, nil, err
	case exit > 1: // it could not run
		return nil, nil, errors.New(text)
	}
	return result(text), nil, nil
}

func (s *server) start(ctx context.Context, _ request, in startIn) (*mcp.CallToolResult, any, error) {
	if !slices.Contains(s.Loops, in.Loop) {
		return nil, nil, fmt.Errorf("%q is not a loop that can be started here; use %s", in.Loop, strings.Join(s.Loops, ", "))
	}
	if err := s.Valid(in.Loop, in.Args); err != nil {
		return nil, nil, err
	}
	args := slices.Concat([]string{in.Loop}, in.Args, s.Typed, []string{"-C", s.Dir})
	if in.Text != "" {
		args = append(args, "--", in.Text)
	}
	log, err := s.newLog()
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	run := exec.Command(s.Program, args...)
	run.Dir, run.Env, run.Stdout, run.Stderr, run.SysProcAttr = s.Dir, s.Environ, log, log, ownSession()
	if err := run.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = run.Wait() // the run has recorded how it ended
		close(ended)
	}()
	for {
		if run := runOf(log.Name()); run != "" {
			return result(fmt.Sprintf("run %s has started; wait for it", run)), nil, nil
		}
		select {
		case <-ended:
			if run := runOf(log.Name()); run != "" {
				return result(fmt.Sprintf("run %s has ended; show has its result", run)), nil, nil
			}
			text, _ := os.ReadFile(log.Name())
			return nil, nil, errors.New(cmp.Or(strings.TrimSpace(string(text)), "hone ended without a word"))
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// keepLogs is how long what a run printed is kept. Later its client cannot stop or undo it.
const keepLogs = 30 * 24 * time.Hour

// newLog opens a file for what a run prints, and removes old ones.
func (s *server) newLog() (*os.File, error) {
	if err := os.MkdirAll(s.Logs, 0o700); err != nil {
		return nil, err
	}
	old, _ := filepath.Glob(filepath.Join(s.Logs, "*"+logEnd))
	for _, file := range old {
		if info, err := os.Stat(file); err == nil && time.Since(info.ModTime()) > keepLogs {
			_ = os.Remove(file)
		}
	}
	return os.CreateTemp(s.Logs, "*"+logEnd)
}

const logEnd = ".log"

// runOf returns the run whose output is in a file; empty if none has begun.
func runOf(log string) string {
	f, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "hone: run "); ok {
			if id, _, ok := strings.Cut(rest, ","); ok {
				return id
			}
		}
	}
	return ""
}

// logOf returns the file with the output of a run that a server has started; empty if none has.
func (s *server) logOf(run string) string {
	all, _ := filepath.Glob(filepath.Join(s.Logs, "*"+logEnd))
	for _, file := range all {
		if runOf(file) == run {
			return file
		}
	}
	return ""
}

func (s *server) wait(ctx context.Context, r request, in waitIn) (*mcp.CallToolResult, any, error) {
	home, run, err := recorded.Find(s.Dir, in.Run)
	if err != nil {
		return nil, nil, err
	}
	defer home.Close()
	printed := &tail{file: s.logOf(run)}
	end := time.Now().Add(time.Duration(min(max(0, cmp.Or(in.Seconds, 60)), 600)) * time.Second)
	for said := 0; recorded.Working(home, run); {
		for _, line := range printed.lines() {
			said++
			if token := r.Params.GetProgressToken(); token != nil {
				_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Message: line, Progress: float64(said)})
			}
		}
		if time.Now().After(end) {
			return result(fmt.Sprintf("run %s still works; its last lines:\n%s\nCall wait again, or stop.", run, printed.last())), nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
	return s.shown(ctx, run)
}

// tail reads the lines that are added to a file; an empty name has none.
type tail struct {
	file string
	read int64
	text []byte
}

func (t *tail) lines() (fresh []string) {
	f, err := os.Open(t.file)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.NewSectionReader(f, t.read, 1<<20))
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	t.read, t.text = t.read+int64(len(text)), append(t.text, text...)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[:bytes.Count(text, []byte("\n"))]
}

// last returns the last lines.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

func (s *server) show(ctx context.Context, _ request, in showIn) (*mcp.CallToolResult, any, error) {
	if in.Run == "" {
		return s.output(ctx, "runs", "-C", s.Dir)
	}
	if in.Diff {
		return s.output(ctx, "show", "--diff", "-C", s.Dir, "--", in.Run)
	}
	return s.shown(ctx, in.Run)
}

func (s *server) shown(ctx context.Context, run string) (*mcp.CallToolResult, any, error) {
	return s.output(ctx, "show", "-C", s.Dir, "--", run)
}

// own opens a run that a server in this directory has started.
func (s *server) own(ref string) (home *journal.Home, run string, err error) {
	if home, run, err = recorded.Find(s.Dir, ref); err != nil {
		return nil, "", err
	}
	if s.logOf(run) == "" {
		home.Close()
		return nil, "", fmt.Errorf("hone mcp has not started run %s, so only the user can stop or undo it", ref)
	}
	return home, run, nil
}

func (s *server) stop(_ context.Context, _ request, in runIn) (*mcp.CallToolResult, any, error) {
	home, run, err := s.own(in.Run)
	if err != nil {
		return nil, nil, err
	}
	defer home.Close()
	if !recorded.Working(home, run) {
		return result(fmt.Sprintf("run %s has ended already", run)), nil, nil
	}
	if err := home.SignalHolder(syscall.SIGTERM); err != nil && !errors.Is(err, journal.ErrNoHolder) {
		return nil, nil, err
	}
	return result(fmt.Sprintf("run %s is being stopped; wait shows when it has ended", run)), nil, nil
}

func (s *server) undo(ctx context.Context, _ request, in runIn) (*mcp.CallToolResult, any, error) {
	home, run, err := s.own(in.Run)
	if err != nil {
		return nil, nil, err
	}
	home.Close()
	return s.output(ctx, "undo", "-C", s.Dir, "--", run)
}

// output returns what hone prints; it is an error if hone fails.
func (s *server) output(ctx context.Context, args ...string) (*mcp.CallToolResult, any, error) {
	text, exit, err := s.hone(ctx, args...)
	if err == nil && exit != 0 {
		err = errors.New(text)
	}
	if err != nil {
		return nil, nil, err
	}
	return result(text), nil, nil
}

func (s *server) hone(ctx context.Context, args ...string) (text string, exit int, err error) {
	r, err := child.Command{Program: s.Program, Dir: s.Dir, Args: args, Env: s.Environ}.Output(ctx)
	if errors.As(err, new(*child.Failure)) {
		err = ctx.Err()
	}
	return strings.TrimSpace(r.Printed + r.Said), r.Exit, err
}

// maxText is how much of a text a client gets, in bytes.
const maxText = 48 << 10

func result(text string) *mcp.CallToolResult {
	if len(text) > maxText {
		cut := maxText
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "\n… the rest is cut"
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: cmp.Or(text, "(nothing)")}}}
}
