package main

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
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/report"
	"hone/group"
	"hone/internal/child"
	"hone/journal"
	"hone/loop"
)

func (a *app) mcpCommand() *cobra.Command {
	var dir string
	c := helped("mcp", &cobra.Command{
		Args: func(c *cobra.Command, args []string) error {
			if at := c.ArgsLenAtDash(); at > 0 || at < 0 && len(args) > 0 {
				return fmt.Errorf("flags of the loops stand after --")
			}
			return nil
		},
		RunE: func(c *cobra.Command, typed []string) error { return a.mcp(c.Context(), dir, typed) },
	})
	registerDir(c, &dir)
	return c
}

func (a *app) mcp(ctx context.Context, dir string, typed []string) error {
	s := mcpServer{app: a, typed: typed, loops: evalLoops()}
	var err error
	if s.dir, err = loop.AbsDir(dir); err != nil {
		return err
	}
	if s.logs, err = group.Cache("mcp"); err != nil {
		return failure.Of(err, "")
	}
	if s.program, err = os.Executable(); err != nil {
		return err
	}
	if _, err := a.onlyFlags(s.loops[0], typed); err != nil {
		return failure.UsageOf(err, "hone help "+s.loops[0].Name)
	}
	return s.serve(ctx)
}

// workFlags are the flags that describe the work. The others say how it is judged, what it costs,
// or what it may do.
var workFlags = []string{"check", "metric", "lower", "higher", "target", "confirm", "profile", "files", "query"}

func (a *app) clientFlags(k loop.Kind, args []string) error {
	given, err := a.onlyFlags(k, args)
	if err != nil {
		return err
	}
	for _, f := range given {
		if !slices.Contains(workFlags, f.Name) {
			return fmt.Errorf("only the user can give --%s, after hone mcp --", f.Name)
		}
	}
	return nil
}

// onlyFlags returns the flags that a command line of a loop has; there may be nothing else.
func (a *app) onlyFlags(k loop.Kind, args []string) ([]*pflag.Flag, error) {
	given, rest, err := a.parseOnly(k, args)
	if err == nil && (slices.Contains(args, "--") || len(rest) > 0) {
		err = fmt.Errorf("%q is not a flag", append(rest, "--")[0])
	}
	return given, err
}

// mcpServer serves one client. That is a model, so what the user typed when the server started
// decides all that a run may cost and do.
type mcpServer struct {
	*app
	program string      // hone itself
	dir     string      // where the runs work; absolute
	logs    string      // has what the started runs print
	typed   []string    // flags for every run, which have precedence over those of the client
	loops   []loop.Kind // that the client can start
}

// serve serves the client on standard input and output until it disconnects. Runs that it has
// started go on: another server in the same directory finds them.
func (s *mcpServer) serve(ctx context.Context) error {
	m := mcp.NewServer(&mcp.Implementation{Name: "hone", Version: version()}, &mcp.ServerOptions{Instructions: mcpInstructions})
	mcp.AddTool(m, &mcp.Tool{Name: "check", Description: "Run the project's check once, and list what it finds. Asks no model.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, s.runCheck)
	mcp.AddTool(m, &mcp.Tool{Name: "start", Description: "Start a run in which hone's own model edits the project's files until a check passes or a budget is used up. Returns the run's id at once. " +
		"Only one run works in a directory at a time. Do not edit the project's files while it works. The loops are " + s.loopNames() + "; fix makes a check pass, task carries out the task that text describes."}, s.start)
	mcp.AddTool(m, &mcp.Tool{Name: "wait", Description: "Wait until a run ends, and show its rounds and its result. If it still works after the given seconds, say so: call wait again.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, s.wait)
	mcp.AddTool(m, &mcp.Tool{Name: "show", Description: "Show a run: its rounds and its result, or the changes that it made as a diff. Without a run, list all runs of the directory.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, s.showRun)
	mcp.AddTool(m, &mcp.Tool{Name: "stop", Description: "Stop a run that this server has started. What it has changed stays; undo takes it back."}, s.stop)
	mcp.AddTool(m, &mcp.Tool{Name: "undo", Description: "Restore all files that a run of this server has changed. If one was changed after the run, nothing is restored."}, s.undoRun)
	return m.Run(ctx, &mcp.StdioTransport{MaxLineLength: -1})
}

const mcpInstructions = "hone runs a model in a loop until a check passes, within a budget that the user has set. Call start, then wait until the run has ended, then show with diff. " +
	"You cannot answer its questions, and cannot change its limits, model or walls: if a run needs that, tell the user the command that hone names."

func (s *mcpServer) loopNames() string {
	var names []string
	for _, k := range s.loops {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}

type mcpCheck struct {
	Check string `json:"check,omitempty" jsonschema:"a shell command that exits with 0 if all is well; without it the project's own"`
}

type mcpStart struct {
	Loop string   `json:"loop" jsonschema:"fix, task, implement, reconcile or improve"`
	Text string   `json:"text,omitempty" jsonschema:"for task, what is to be done; for fix and improve, advice; for implement, the query"`
	Args []string `json:"args,omitempty" jsonschema:"more flags of the loop, such as --check and make test; hone help LOOP lists them"`
}

type mcpRun struct {
	Run string `json:"run" jsonschema:"the id that start returned"`
}

type mcpWait struct {
	Run     string `json:"run" jsonschema:"the id that start returned"`
	Seconds int    `json:"seconds,omitempty" jsonschema:"at most 600; 60 if it is left out"`
}

type mcpShow struct {
	Run  string `json:"run,omitempty" jsonschema:"an id; left out: list the runs"`
	Diff bool   `json:"diff,omitempty" jsonschema:"show the changes as a diff"`
}

type mcpRequest = *mcp.CallToolRequest

func (s *mcpServer) runCheck(ctx context.Context, _ mcpRequest, in mcpCheck) (*mcp.CallToolResult, any, error) {
	args := []string{"check", "-v", "-C", s.dir}
	if in.Check != "" {
		args = append(args, "--check="+in.Check)
	}
	r, err := s.hone(ctx, args...)
	switch {
	case err != nil:
		return nil, nil, err
	case r.Exit > 1: // it could not run
		return nil, nil, errors.New(strings.TrimSpace(r.Said))
	}
	return mcpText(cmp.Or(r.Printed, r.Said)), nil, nil
}

func (s *mcpServer) start(ctx context.Context, _ mcpRequest, in mcpStart) (*mcp.CallToolResult, any, error) {
	i := slices.IndexFunc(s.loops, func(k loop.Kind) bool { return k.Name == in.Loop })
	if i < 0 {
		return nil, nil, fmt.Errorf("%q is not a loop that can be started here; use %s", in.Loop, s.loopNames())
	}
	if err := s.clientFlags(s.loops[i], in.Args); err != nil {
		return nil, nil, err
	}
	args := slices.Concat([]string{in.Loop}, in.Args, s.typed, []string{"-C", s.dir})
	if in.Text != "" {
		args = append(args, "--", in.Text)
	}
	log, err := s.newLog()
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	run := exec.Command(s.program, args...)
	run.Dir, run.Env, run.Stdout, run.Stderr, run.SysProcAttr = s.dir, s.environ, log, log, ownSession()
	if err := run.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = run.Wait() // the run has recorded how it ended
		close(ended)
	}()
	for {
		if run := runInLog(log.Name()); run != "" {
			return mcpText(fmt.Sprintf("run %s has started; wait for it", run)), nil, nil
		}
		select {
		case <-ended:
			if run := runInLog(log.Name()); run != "" {
				return mcpText(fmt.Sprintf("run %s has ended; show has its result", run)), nil, nil
			}
			text, _ := os.ReadFile(log.Name())
			return nil, nil, errors.New(cmp.Or(strings.TrimSpace(string(text)), "hone ended without a word"))
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// keepMCPLogs is how long what a run printed is kept. Later its client cannot stop or undo it.
const keepMCPLogs = 30 * 24 * time.Hour

func (s *mcpServer) newLog() (*os.File, error) {
	if err := os.MkdirAll(s.logs, 0o700); err != nil {
		return nil, err
	}
	old, _ := filepath.Glob(filepath.Join(s.logs, "*"+mcpLogEnd))
	for _, file := range old {
		if info, err := os.Stat(file); err == nil && time.Since(info.ModTime()) > keepMCPLogs {
			_ = os.Remove(file)
		}
	}
	return os.CreateTemp(s.logs, "*"+mcpLogEnd)
}

const mcpLogEnd = ".log"

// runInLog returns the run whose output is in a file; empty if none has begun.
func runInLog(log string) string {
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
func (s *mcpServer) logOf(run string) string {
	all, _ := filepath.Glob(filepath.Join(s.logs, "*"+mcpLogEnd))
	for _, file := range all {
		if runInLog(file) == run {
			return file
		}
	}
	return ""
}

func (s *mcpServer) wait(ctx context.Context, r mcpRequest, in mcpWait) (*mcp.CallToolResult, any, error) {
	home, run, err := report.Find(s.dir, in.Run)
	if err != nil {
		return nil, nil, err
	}
	defer home.Close()
	printed := &logTail{file: s.logOf(run)}
	end := time.Now().Add(time.Duration(min(max(0, cmp.Or(in.Seconds, 60)), 600)) * time.Second)
	for said := 0; report.Working(home, run); {
		for _, line := range printed.lines() {
			said++
			if token := r.Params.GetProgressToken(); token != nil {
				_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Message: line, Progress: float64(said)})
			}
		}
		if time.Now().After(end) {
			return mcpText(fmt.Sprintf("run %s still works; its last lines:\n%s\nCall wait again, or stop.", run, printed.last())), nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
	return s.shown(ctx, run)
}

// logTail reads the lines that are added to a file; an empty name has none.
type logTail struct {
	file string
	read int64
	text []byte
}

func (t *logTail) lines() (fresh []string) {
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

func (t *logTail) last() string {
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

func (s *mcpServer) showRun(ctx context.Context, _ mcpRequest, in mcpShow) (*mcp.CallToolResult, any, error) {
	if in.Run == "" {
		return s.output(ctx, "runs", "-C", s.dir)
	}
	if in.Diff {
		return s.output(ctx, "show", "--diff", "-C", s.dir, "--", in.Run)
	}
	return s.shown(ctx, in.Run)
}

func (s *mcpServer) shown(ctx context.Context, run string) (*mcp.CallToolResult, any, error) {
	return s.output(ctx, "show", "-C", s.dir, "--", run)
}

// own opens a run that a server in this directory has started.
func (s *mcpServer) own(ref string) (home *journal.Home, run string, err error) {
	if home, run, err = report.Find(s.dir, ref); err != nil {
		return nil, "", err
	}
	if s.logOf(run) == "" {
		home.Close()
		return nil, "", fmt.Errorf("hone mcp has not started run %s, so only the user can stop or undo it", ref)
	}
	return home, run, nil
}

func (s *mcpServer) stop(_ context.Context, _ mcpRequest, in mcpRun) (*mcp.CallToolResult, any, error) {
	home, run, err := s.own(in.Run)
	if err != nil {
		return nil, nil, err
	}
	defer home.Close()
	if !report.Working(home, run) {
		return mcpText(fmt.Sprintf("run %s has ended already", run)), nil, nil
	}
	if err := home.SignalHolder(syscall.SIGTERM); err != nil && !errors.Is(err, journal.ErrNoHolder) {
		return nil, nil, err
	}
	return mcpText(fmt.Sprintf("run %s is being stopped; wait shows when it has ended", run)), nil, nil
}

func (s *mcpServer) undoRun(ctx context.Context, _ mcpRequest, in mcpRun) (*mcp.CallToolResult, any, error) {
	home, run, err := s.own(in.Run)
	if err != nil {
		return nil, nil, err
	}
	home.Close()
	return s.output(ctx, "undo", "-C", s.dir, "--", run)
}

func (s *mcpServer) output(ctx context.Context, args ...string) (*mcp.CallToolResult, any, error) {
	r, err := s.hone(ctx, args...)
	text := strings.TrimSpace(r.Printed + r.Said)
	if err == nil && r.Exit != 0 {
		err = errors.New(text)
	}
	if err != nil {
		return nil, nil, err
	}
	return mcpText(text), nil, nil
}

func (s *mcpServer) hone(ctx context.Context, args ...string) (child.Result, error) {
	r, err := child.Command{Program: s.program, Dir: s.dir, Args: args, Env: s.environ}.Output(ctx)
	if errors.As(err, new(*child.Failure)) {
		err = ctx.Err()
	}
	return r, err
}

// maxMCPText is how much of a text a client gets, in bytes.
const maxMCPText = 48 << 10

func mcpText(text string) *mcp.CallToolResult {
	if len(text) > maxMCPText {
		cut := maxMCPText
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "\n… the rest is cut"
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: cmp.Or(text, "(nothing)")}}}
}
