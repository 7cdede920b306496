// Package git runs the git program to read a repository: its files, what it
// ignores, and how a tree differs from a branch. It also creates repositories
// and commits for the loops that keep their history in git.
//
// Find the program with [Find], then open a repository with [Git.Open], or
// create one with [Git.Init].
//
// A repository may have been written to attack its readers. So no call lets the
// repository choose a program to run: file system monitors, hooks, external
// diffs, text converters, content filters, pagers, aliases, signing programs,
// editors and transports are disabled (ruling G9). The repository also cannot
// move its work tree elsewhere or make git use a repository further up.
//
// All calls only read, with two exceptions. [Git.Init] creates a repository.
// [Repo.Commit] writes objects, the index and the branch, if the git directory
// is inside the work tree and leads nowhere else. Neither changes a file of the
// work tree.
//
// The package does not protect against a process that writes to the repository
// while git runs, against objects whose contents do not match their names, or
// against repositories that only waste time. If the user has configured a
// filter, such as Git LFS, differences and commits contain the files as they
// are, unfiltered.
package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"

	"hone/sandbox"
)

// ErrNoGit says that the git program is not on PATH.
var ErrNoGit = errors.New("git is not installed, or not on PATH")

// Git is the git program. [Find] returns one; the zero Git is not usable.
type Git struct {
	path    string
	env     []string
	timeout time.Duration // maximum duration of a call; 0 means callTimeout
}

// Find looks up the git program on PATH and sets up its environment. What lies in
// tree, which a model's commands may write, is neither run nor on git's own PATH;
// an empty tree is none.
func Find(tree string) (*Git, error) {
	path, err := sandbox.FindProgram("git", os.Environ(), tree)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoGit, err)
	}
	return &Git{path: path, env: environment(sandbox.OwnEnviron(os.Environ(), tree))}, nil
}

// Version returns the version of the git program, such as "2.39.5".
func (g *Git) Version(ctx context.Context) (string, error) {
	out, err := g.run(ctx, call{args: []string{"version"}})
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "), nil
}

// inheritedEnv are the variables that git inherits. GIT_DIR and the like are
// missing because they would select another repository. HOME and the like let
// git find the user's configuration, such as global ignore rules and safe
// directories.
var inheritedEnv = map[string]bool{
	"PATH": true, "HOME": true, "XDG_CONFIG_HOME": true, "TMPDIR": true, "SUDO_UID": true,
	"GIT_CONFIG_GLOBAL": true, "GIT_CONFIG_SYSTEM": true, "GIT_CONFIG_NOSYSTEM": true, "GIT_EXEC_PATH": true,
	"SYSTEMROOT": true, "SYSTEMDRIVE": true, "USERPROFILE": true, "HOMEDRIVE": true, "HOMEPATH": true,
	"DEVELOPER_DIR": true, "PROGRAMDATA": true, "APPDATA": true, "LOCALAPPDATA": true, "TEMP": true, "TMP": true, "PATHEXT": true, "COMSPEC": true,
}

func environment(from []string) []string {
	env := []string{
		"LC_ALL=C", // hintFor reads untranslated messages
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_PAGER=cat",
		// A partial clone fetches missing objects with whatever transport its
		// configuration names. Older versions support only the second.
		"GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none",
	}
	for _, kv := range from {
		name, _, _ := strings.Cut(kv, "=")
		if inheritedEnv[strings.ToUpper(name)] {
			env = append(env, kv)
		}
	}
	return env
}

// They override the repository's settings.
func (c call) flags() []string {
	args := []string{"--no-pager", "--no-optional-locks"}
	for _, setting := range append([]string{
		"core.fsmonitor=false",
		"core.hooksPath=" + os.DevNull,
		"core.untrackedCache=false",
		"core.pager=cat",
		"core.sshCommand=false",
		"core.quotePath=false",
		"diff.external=",
		"diff.suppressBlankEmpty=false",
		"submodule.recurse=false",
	}, c.set...) {
		args = append(args, "-c", setting)
	}
	return args
}

type call struct {
	dir       string   // working directory; empty means the process's
	set       []string // further settings, such as "core.safecrlf=false"
	args      []string // the subcommand and its arguments
	env       []string // added to the usual environment
	stdin     []byte   // nil means empty
	emptyExit int      // exit status that means an empty result; 0 if there is none
	again     bool     // a signal has killed it once
}

// callTimeout is the maximum duration of a call. A file system that does not
// respond must not block the caller.
const callTimeout = 15 * time.Minute

// ioDelay is how long git's output is awaited after git has ended. On a machine with
// much else to do, a second was too short.
const ioDelay = 10 * time.Second

var errTimeout = fmt.Errorf("it did not finish within %s", callTimeout)

func (g *Git) run(ctx context.Context, c call) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(g.timeout, callTimeout), errTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, g.path, append(c.flags(), c.args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &stdout, &stderr
	if c.stdin != nil {
		cmd.Stdin = bytes.NewReader(c.stdin)
	}
	cmd.Env = append(g.env[:len(g.env):len(g.env)], c.env...)
	cmd.WaitDelay = ioDelay
	err := cmd.Run()
	if err == nil {
		return stdout.Bytes(), nil
	}
	if wasKilled(err) && reads[c.args[0]] && !c.again && ctx.Err() == nil {
		c.again = true
		return g.run(ctx, c)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("git %s: %w", c.args[0], context.Cause(ctx))
	}
	failure := &Error{Command: c.args[0], Message: oneLine(stderr.String()), Err: err}
	if strings.Contains(failure.Message, "Out of memory") { // git reads ignore files whole
		failure.Message += "; this finds ignore files that are too large: find " + quote(c.dir) + " -name .gitignore -size +1M"
	}
	if slices.ContainsFunc(brokenIndex, func(words string) bool { return strings.Contains(failure.Message, words) }) {
		failure.Message += "; to make the index anew: git -C " + quote(c.dir) + " read-tree HEAD"
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		failure.Exit = exit.ExitCode()
		if c.emptyExit != 0 && failure.Exit == c.emptyExit && failure.Message == "" {
			return stdout.Bytes(), nil
		}
	}
	failure.Hint = hintFor(stderr.String(), c.dir)
	return nil, failure
}

// brokenIndex are git's words for an index that it cannot read, as a command can leave it.
var brokenIndex = []string{"index file corrupt", "index file smaller", "bad index", "bad signature", "unordered stage entries", "index file version"}

// reads are the subcommands that only read, so that they can be started again.
var reads = map[string]bool{
	"version": true, "config": true, "rev-parse": true, "rev-list": true, "ls-files": true, "ls-tree": true, "cat-file": true,
	"check-ignore": true, "status": true, "diff": true, "diff-index": true, "diff-tree": true, "log": true, "for-each-ref": true, "merge-base": true,
}

// The signal may be that of a system that is out of memory.
func wasKilled(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() < 0
}

// Error says that git failed, or could not be started.
type Error struct {
	Command string // the subcommand
	Exit    int    // git's exit status; -1 if a signal killed it, 0 if it did not start
	Message string // its standard error on one line, without control characters
	Hint    string // what the user can type to fix it; empty if unknown
	Err     error  // from the operating system
}

// Error returns one line without the hint.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("git %s: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("git %s: %s", e.Command, e.Message)
}

// Unwrap returns the operating system's error.
func (e *Error) Unwrap() error { return e.Err }

// Users meet these two errors with intact repositories. Git reports both with the same exit status as any fatal error, so only
// the message identifies them.
func hintFor(stderr, dir string) string {
	switch {
	case strings.Contains(stderr, "dubious ownership"), strings.Contains(stderr, "unsafe repository"):
		return safeDirectory + quote(dir)
	case strings.Contains(stderr, "unable to access") && strings.Contains(stderr, "config"):
		return "make the configuration file that git names readable, or set GIT_CONFIG_NOSYSTEM=1 if it is the system configuration"
	}
	return ""
}

func quote(path string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+:@%,", r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.Join(lines, "; "))
	const most = 1000
	if len(clean) > most {
		clean = strings.ToValidUTF8(clean[:most], "") + " …"
	}
	return strings.TrimSpace(clean)
}
