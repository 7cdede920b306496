// Package git asks the git program about a repository: what it holds, what is
// ignored, and how a tree differs from a branch. It also makes repositories and
// commits, for the loops that keep their history in git.
//
// A repository may have been written to attack whoever looks at it. So no call
// lets the repository choose a program to run: file system monitors, hooks,
// external diffs, text converters, content filters, pagers, aliases, signing
// programs, editors and transports are switched off (ruling G9). Nor does it
// let the repository move its work tree elsewhere, or git go on to a repository
// further up.
//
// Every call only looks, save two. [Git.Init] makes a repository, and
// [Repo.Commit] writes objects, the index and the branch of one whose git
// directory lies in the work tree and leads nowhere else. Neither changes a file
// of the work tree.
//
// What it does not guard against: a process that writes the repository while
// git runs, objects whose contents are not what their names say, and
// repositories that only cost time. A person who has configured a filter, such
// as Git LFS, gets differences and commits of what is in the files rather than
// of what the filter makes of it.
package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode"
)

// ErrNoGit says that the git program is not on PATH.
var ErrNoGit = errors.New("git is not installed, or not on PATH")

// Git is the git program, found once. The zero Git is of no use; see [Find].
type Git struct {
	path     string
	env      []string
	patience time.Duration // how long a call may take; 0: the constant
}

// Find looks the git program up on PATH and chooses the environment that it
// will run with.
func Find() (*Git, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoGit, err)
	}
	return &Git{path: path, env: environment(os.Environ())}, nil
}

// Version is what the git program says of itself, such as "2.39.5".
func (g *Git) Version(ctx context.Context) (string, error) {
	out, err := g.run(ctx, call{args: []string{"version"}})
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "), nil
}

// kept are the variables that git has from outside. GIT_DIR and its like are
// not among them: they would point it at another repository. HOME and its like
// let it find the person's own configuration, with what they ignore everywhere
// and which directories they call safe.
var kept = map[string]bool{
	"PATH": true, "HOME": true, "XDG_CONFIG_HOME": true, "TMPDIR": true, "SUDO_UID": true,
	"GIT_CONFIG_GLOBAL": true, "GIT_CONFIG_SYSTEM": true, "GIT_CONFIG_NOSYSTEM": true, "GIT_EXEC_PATH": true,
	"SYSTEMROOT": true, "SYSTEMDRIVE": true, "USERPROFILE": true, "HOMEDRIVE": true, "HOMEPATH": true,
	"DEVELOPER_DIR": true, "PROGRAMDATA": true, "APPDATA": true, "LOCALAPPDATA": true, "TEMP": true, "TMP": true, "PATHEXT": true, "COMSPEC": true,
}

// environment is the whole environment of every call.
func environment(from []string) []string {
	env := []string{
		"LC_ALL=C", // the messages that are looked at below are the untranslated ones
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_PAGER=cat",
		// A partial clone fetches what it lacks by running whatever its
		// configuration calls a transport. Older versions know only the second.
		"GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none",
	}
	for _, kv := range from {
		name, _, _ := strings.Cut(kv, "=")
		if kept[strings.ToUpper(name)] {
			env = append(env, kv)
		}
	}
	return env
}

// harmless comes before every subcommand. Settings on the command line win
// over the repository's.
func harmless() []string {
	args := []string{"--no-pager", "--no-optional-locks"}
	for _, setting := range []string{
		"core.fsmonitor=false",
		"core.hooksPath=" + os.DevNull,
		"core.untrackedCache=false",
		"core.pager=cat",
		"core.sshCommand=false",
		"core.quotePath=false",
		"diff.external=",
		"diff.suppressBlankEmpty=false",
		"submodule.recurse=false",
	} {
		args = append(args, "-c", setting)
	}
	return args
}

// call is one call of the git program.
type call struct {
	dir   string   // working directory; empty means the process's
	set   []string // settings, such as "core.safecrlf=false", beside the harmless ones
	args  []string // the subcommand and its arguments
	env   []string // beside the usual environment
	stdin []byte   // nil means nothing
	none  int      // an exit status that means "nothing", besides 0
}

// flags is everything before the subcommand.
func (c call) flags() []string {
	args := harmless()
	for _, setting := range c.set {
		args = append(args, "-c", setting)
	}
	return args
}

// patience is how long one call may take: a file system that does not answer
// must not hold up whoever waits for git.
const patience = 15 * time.Minute

// errPatience is the cause of a call's end that took too long.
var errPatience = fmt.Errorf("it had not ended after %s", patience)

// run runs git to its end, but no longer than patience, and returns its
// standard output.
func (g *Git) run(ctx context.Context, c call) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(g.patience, patience), errPatience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, g.path, append(c.flags(), c.args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &stdout, &stderr
	if c.stdin != nil {
		cmd.Stdin = bytes.NewReader(c.stdin)
	}
	cmd.Env = append(g.env[:len(g.env):len(g.env)], c.env...)
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if err == nil {
		return stdout.Bytes(), nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("git %s: %w", c.args[0], context.Cause(ctx))
	}
	failure := &Error{Command: c.args[0], Message: oneLine(stderr.String()), Err: err}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		failure.Exit = exit.ExitCode()
		if c.none != 0 && failure.Exit == c.none && failure.Message == "" {
			return stdout.Bytes(), nil
		}
	}
	failure.Hint = hint(stderr.String(), c.dir)
	return nil, failure
}

// Error says that git ran, or could not be started, and did not do as asked.
type Error struct {
	Command string // the subcommand
	Exit    int    // git's exit status; -1 when a signal ended it, 0 when it did not start
	Message string // what it wrote to standard error, on one line, without control characters
	Hint    string // what a person may type to mend it; empty where nothing is known
	Err     error  // what the operating system said
}

// Error is one line without the hint.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("git %s: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("git %s: %s", e.Command, e.Message)
}

// Unwrap is the operating system's error.
func (e *Error) Unwrap() error { return e.Err }

// hint knows the two refusals that a person meets on a sound repository. Git
// reports both with the exit status of every other fatal error, so its words
// are the only thing to go by.
func hint(stderr, dir string) string {
	switch {
	case strings.Contains(stderr, "dubious ownership"), strings.Contains(stderr, "unsafe repository"):
		return "git config --global --add safe.directory " + quote(dir)
	case strings.Contains(stderr, "unable to access") && strings.Contains(stderr, "config"):
		return "make the configuration file that git names readable, or set GIT_CONFIG_NOSYSTEM=1 if it is the system's"
	}
	return ""
}

// quote writes a path so that a shell takes it as one word.
func quote(path string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+:@%,", r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// oneLine joins the lines of a message and takes out what a terminal would
// act on.
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
