package leg

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// refused matches messages of git after which a retry would fail as well: the repository or
// the branch does not exist, or the worker may not read it.
var refused = regexp.MustCompile(`(?i)not found|does not exist|does not appear to be a git repository|authentication failed|permission denied|could not read (username|password)|access denied|dubious ownership|couldn't find remote ref|not our ref|unable to find remote helper`)

// unreachable matches messages of git about a failed network.
var unreachable = regexp.MustCompile(`(?i)could not resolve host|timed out|connection (refused|reset)|unable to access .*error: 5\d\d|temporary failure`)

// There are no hooks and prompts.
func (w *Worker) git(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)...)
	c.Dir = dir
	c.Env = append(slices.Clone(w.environ()), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	if !slices.ContainsFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, "GIT_SSH_COMMAND=") }) {
		c.Env = append(c.Env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	switch {
	case err == nil:
		return strings.TrimSpace(out.String()), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	err = fmt.Errorf("git %s: %s", args[0], strings.Join(strings.Fields(said.String()), " "))
	if refused.MatchString(said.String()) && !unreachable.MatchString(said.String()) {
		err = &fatalError{err}
	}
	return "", err
}

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// An empty commit means that of ref: a branch, a tag or a commit; an empty ref is the default branch. It returns the commit.
func (w *Worker) checkOut(ctx context.Context, repo, ref, commit, dir string) (found string, err error) {
	if repo == "" || strings.HasPrefix(repo, "-") || strings.HasPrefix(ref, "-") {
		return "", fatal("git cannot clone %q with ref %q", repo, ref)
	}
	if _, err := w.git(ctx, "", "clone", "-q", "--no-checkout", "--", repo, dir); err != nil {
		return "", err
	}
	names := []string{"refs/remotes/origin/" + ref, "refs/tags/" + ref, ref}
	if ref == "" {
		names = []string{"HEAD"}
	}
	if commit != "" {
		names, ref = []string{commit}, commit
	}
	for i := 0; i < len(names) && found == ""; i++ {
		found, _ = w.git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", names[i]+"^{commit}")
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	switch {
	case found != "":
	case fullHash.MatchString(ref): // no branch or tag has it any more
		if _, err := w.git(ctx, dir, "fetch", "-q", "origin", ref); err != nil {
			return "", err
		}
		found = ref
	case ref == "":
		return "", fatal("%s has no commit", repo)
	default:
		return "", fatal("%s has no branch, tag or commit %s", repo, ref)
	}
	_, err = w.git(ctx, dir, "checkout", "-q", "--detach", found)
	return found, err
}
