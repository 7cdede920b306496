package check

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hone/internal/excerpt"
	"hone/internal/transient"
	"hone/sandbox"
)

// The sources of findings in this package.
const (
	SourceCommand = "check"   // a command that must exit 0
	SourceBork    = "checker" // a Bork correctness checker
)

// Program is what a check runs, and how.
type Program struct {
	// Dir is the absolute path of the working directory, which must exist: the root of the
	// tree.
	Dir string
	// Env is the complete environment. It must not contain provider keys
	// (ruling G6), except for [Bork]; see [sandbox.CleanEnv].
	Env []string
	// Timeout stops the program and all processes that it started; 0 means ten minutes, and
	// an hour for [Bork]. A program that runs longer is a finding.
	Timeout time.Duration
	// Live receives the output as it is printed, line by line; may be nil.
	Live io.Writer
	// Redact removes secrets from a text; nil changes nothing. Contract: it is
	// applied to all output before that is shown, read or returned, and must not
	// block.
	Redact func(string) string
}

// CommandConfig describes a command that must exit 0.
type CommandConfig struct {
	Program
	// Command is passed to the system's shell: sh, or cmd on Windows.
	Command string
	// Reader finds findings in the output.
	Reader Reader
	// Reports is called before the command runs. It returns a function that returns the
	// report files that the command wrote; nil means that it writes none.
	Reports func() (written func() []Report)
	// ReportReader finds findings in a report file.
	ReportReader Reader
	// Place makes the files of findings relative to the tree; nil if they are.
	Place func([]Finding)
	// FailOnFindings also fails a command that exits 0, if a Reader finds something.
	FailOnFindings bool
}

// Command returns a check that passes if a command exits 0. If it fails and a Reader
// finds something, that is the result; otherwise the result is one finding whose text is
// the command's output. If the system has sh, both streams are in the order printed.
// What a Reader finds in a command that passed is advisory. If the command cannot be
// started, or the shell cannot find or execute the program (exit status 126 or 127),
// or cannot parse the command, the finding is Broken. If the machine is short of what a start needs, or the runner fails, that is an error.
func Command(r sandbox.Runner, c CommandConfig) Func {
	return func(ctx context.Context) ([]Finding, error) {
		read := c.Begin()
		watched := newLive(c.Live, c.Redact)
		result, unstarted, err := c.run(ctx, r, "check command", sandbox.Command{Argv: shellArgv(c.Command), Live: watched}, watched)
		if err != nil {
			return nil, err
		}
		if unstarted != nil {
			text := fmt.Sprintf("The check command could not be started: %v\n\n    %s\n", unstarted, indentRest(c.Command))
			return []Finding{{Source: SourceCommand, Text: applyRedact(c.Redact, text), Broken: true}}, nil
		}
		if c.isUnreadable(ctx, r, result) {
			text := fmt.Sprintf("The check command could not run: the shell cannot read it.\n\n    %s\n", indentRest(c.Command)) + section("Its output", c.output(result))
			return []Finding{{Source: SourceCommand, Text: applyRedact(c.Redact, text), Broken: true}}, nil
		}
		return read(result), nil
	}
}

// Limit returns the time limit of a command or a build.
func (p Program) Limit() time.Duration { return cmp.Or(p.Timeout, 10*time.Minute) }

// The result says nothing if the program is unstarted because of the program itself. Any other end without a verdict on the tree
// is an error: the context is done, the machine is short of something, or what the runner needs failed. The streams are complete
// then.
func (p Program) run(ctx context.Context, r sandbox.Runner, what string, c sandbox.Command, streams ...*live) (result sandbox.Result, unstarted, err error) {
	c.Dir, c.Env, c.Timeout = p.Dir, p.Env, p.Limit()
	result, err = r.Run(ctx, c)
	for _, s := range streams {
		s.close()
	}
	switch {
	case ctx.Err() != nil && (err != nil || result.Exit < 0):
		return result, nil, fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case transient.Is(err), err != nil && !errors.As(err, new(*sandbox.StartError)):
		return result, nil, fmt.Errorf("%s: %w", what, err)
	}
	return result, err, nil
}

// Begin is called before the command is run by other means than [Command]. The function
// that it returns returns what Command would have found.
func (c CommandConfig) Begin() func(sandbox.Result) []Finding {
	written := func() []Report { return nil }
	if c.Reports != nil {
		written = c.Reports()
	}
	return func(r sandbox.Result) []Finding { return c.findings(r, written) }
}

// If the shell cannot parse a command, no change to the tree can make it pass. The syntax error may be in a script that the
// command ran, so the shell parses the command once more, without running it.
func (c CommandConfig) isUnreadable(ctx context.Context, r sandbox.Runner, result sandbox.Result) bool {
	if result.Exit != 2 || runtime.GOOS == "windows" {
		return false
	}
	if said := strings.ToLower(c.output(result)); !strings.Contains(said, "syntax error") && !strings.Contains(said, "unexpected eof") {
		return false
	}
	parsed, err := r.Run(ctx, sandbox.Command{Argv: []string{"sh", "-n", "-c", c.Command}, Dir: c.Dir, Env: c.Env, Timeout: time.Minute})
	return err == nil && parsed.Exit == 2
}

// The outer sh joins both streams in order; the inner one sees the command as given, with its own line numbers.
func shellArgv(command string) []string {
	if runtime.GOOS == "windows" {
		return sandbox.Shell(command)
	}
	return append(sandbox.Shell(`exec sh -c "$0" 2>&1`), command)
}

func (c CommandConfig) findings(r sandbox.Result, written func() []Report) []Finding {
	passed := r.Exit == 0 && !r.TimedOut
	if cannotRun(r) {
		return []Finding{c.failure(r)}
	}
	out := c.output(r)
	found := c.read(out, r, written())
	switch {
	case passed && !(c.FailOnFindings && Blocking(found)):
		return advisory(found)
	case Blocking(found) && (r.TimedOut || r.Exit < 0): // after it had reported findings
		text := c.head(r) + section("The end of its output", excerpt.End(out, 1<<10))
		return append([]Finding{{Source: SourceCommand, Text: text + hiddenNote(r)}}, found...)
	case Blocking(found):
		if note := hiddenNote(r); note != "" {
			found = append(found, Finding{Source: SourceCommand, Advisory: true, Text: note[1:]})
		}
		return found
	}
	return []Finding{c.failure(r)}
}

// NotRun reports whether an exit status says that the shell did not find or could not execute the program.
func NotRun(exit int) bool { return exit == 126 || exit == 127 }

func cannotRun(r sandbox.Result) bool { return !r.TimedOut && NotRun(r.Exit) }

func (c CommandConfig) failure(r sandbox.Result) Finding {
	text := c.head(r) + section("Its output", excerpt.Middle(c.clean(r.Stdout), MaxText))
	if len(r.Stderr) > 0 {
		text += section("Its standard error", excerpt.Middle(c.clean(r.Stderr), MaxText))
	}
	if r.Discarded > 0 {
		text += fmt.Sprintf("\n[... %d more bytes followed and were discarded ...]\n", r.Discarded)
	}
	return Finding{Source: SourceCommand, Text: text + hiddenNote(r), Broken: cannotRun(r)}
}

func (c CommandConfig) head(r sandbox.Result) string {
	what := "The check command failed: " + c.outcome(r) + silenceCause(r)
	if cannotRun(r) {
		what = fmt.Sprintf("The check command could not run: exit status %d means that the program does not exist or is not executable", r.Exit)
	}
	return fmt.Sprintf("%s.\n\n    %s\n", what, indentRest(applyRedact(c.Redact, c.Command)))
}

func (p Program) outcome(r sandbox.Result) string {
	switch {
	case r.TimedOut:
		return fmt.Sprintf("it did not finish within %v and was stopped", p.Limit())
	case r.Signal != "":
		return fmt.Sprintf("it was killed by a signal (%s)", r.Signal)
	}
	return fmt.Sprintf("exit status %d", r.Exit)
}

func silenceCause(r sandbox.Result) string {
	if !r.TimedOut || len(r.Stdout)+len(r.Stderr) > 0 {
		return ""
	}
	return ". It printed nothing: it may hang, or it may still have been compiling. The first build of a run is slow if the caches behind the walls are empty"
}

func hiddenNote(r sandbox.Result) string {
	if note := r.HiddenNote(); note != "" {
		return "\nNote: " + note + "\n"
	}
	return ""
}

func indentRest(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// All returns a check that runs the given checks in order and joins their
// findings. The first error ends it. A nil check is none; without any other, All
// returns nil.
func All(fs ...Func) Func {
	fs = slices.DeleteFunc(slices.Clone(fs), func(f Func) bool { return f == nil })
	if len(fs) == 0 {
		return nil
	}
	return func(ctx context.Context) ([]Finding, error) {
		var all []Finding
		for _, f := range fs {
			found, err := f(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		return all, nil
	}
}

// live forwards a stream without its secrets. It forwards complete lines,
// because a secret may arrive in two pieces; a very long line is forwarded in
// parts.
type live struct {
	to      io.Writer
	redact  func(string) string
	pending []byte
}

// A nil to discards what is written.
func newLive(to io.Writer, redact func(string) string) *live { return &live{to: to, redact: redact} }

func (l *live) Write(p []byte) (int, error) {
	const most = 64 << 10 // twice as much as the longest secret
	if l.to == nil {
		return len(p), nil
	}
	l.pending = append(l.pending, p...)
	end := bytes.LastIndexByte(l.pending, '\n') + 1
	if end == 0 && len(l.pending) > most {
		end = l.cut(len(l.pending) / 2)
	}
	l.emit(end)
	return len(p), nil
}

// cut returns a position close to n at which no secret is.
func (l *live) cut(n int) int {
	const around = 1 << 10
	clean := func(b []byte) string { return applyRedact(l.redact, excerpt.Output(b)) }
	for at := n; at > n-around; at-- {
		before, after := l.pending[at-around:at], l.pending[at:at+around]
		if utf8.RuneStart(after[0]) && clean(l.pending[at-around:at+around]) == clean(before)+clean(after) {
			return at
		}
	}
	return n
}

// The last line may have no newline.
func (l *live) close() { l.emit(len(l.pending)) }

// Errors of the viewer do not affect the check.
func (l *live) emit(n int) {
	if n == 0 {
		return
	}
	_, _ = io.WriteString(l.to, applyRedact(l.redact, excerpt.Output(l.pending[:n])))
	l.pending = append(l.pending[:0], l.pending[n:]...)
}

// spoolMemory is how many bytes a spool keeps in memory before it uses a file.
const spoolMemory = 1 << 20

// spool stores a stream, in memory while it is small, then in a temporary file.
// reader reports an error of storing.
type spool struct {
	max    int64 // bytes that are stored; 0 means no limit
	size   int64 // bytes that were written, stored or not
	memory bytes.Buffer
	file   *os.File // nil while all is in memory
	named  bool     // the system removes no open file
	err    error
}

func (s *spool) Write(p []byte) (int, error) {
	n := len(p)
	if s.size += int64(n); s.max > 0 && s.size > s.max {
		p = p[:max(0, int64(n)-(s.size-s.max))]
	}
	if s.file == nil && s.memory.Len()+len(p) <= spoolMemory {
		s.memory.Write(p)
		return n, nil
	}
	if s.err == nil && s.file == nil {
		if s.file, s.err = os.CreateTemp("", "hone-output-*"); s.err == nil {
			s.named = os.Remove(s.file.Name()) != nil // a file without a name does not outlive the process
			_, s.err = s.memory.WriteTo(s.file)
		}
	}
	if s.err == nil {
		_, s.err = s.file.Write(p)
	}
	return n, nil
}

func (s *spool) reader() (io.Reader, error) {
	if s.err != nil || s.file == nil {
		return bytes.NewReader(s.memory.Bytes()), s.err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

func (s *spool) remove() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}
