package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Refs is what a repository's names held at one time. The zero value means that it is not known.
type Refs struct {
	// Branch is the branch that HEAD was on, such as "main"; empty if it was on none.
	Branch string
	// IDs are the objects of the branches and tags, such as "refs/heads/main".
	IDs map[string]string
	// Stash are the stashed commits, the newest first.
	Stash []string
}

// maxRefs is how many branches and tags are looked at.
const maxRefs = 2000

// Refs returns what the repository's names hold: the zero value if it has more than 2 000
// branches and tags.
func (r *Repo) Refs(ctx context.Context) (Refs, error) {
	const stash = "refs/stash"
	out, err := r.runOwn(ctx, call{args: []string{"for-each-ref", "--format=%(HEAD)%(objectname) %(refname)", "refs/heads", "refs/tags", stash}})
	if err != nil {
		return Refs{}, err
	}
	refs, stashed := Refs{IDs: map[string]string{}}, false
	for line := range strings.Lines(string(out)) {
		id, name, _ := strings.Cut(strings.TrimSpace(line[1:]), " ")
		if name == stash {
			stashed = true
			continue
		}
		if refs.IDs[name] = id; line[0] == '*' {
			refs.Branch = strings.TrimPrefix(name, branches)
		}
	}
	if len(refs.IDs) > maxRefs {
		return Refs{}, nil
	}
	if stashed {
		out, err = r.runOwn(ctx, call{args: []string{"rev-list", "--walk-reflogs", stash, "--"}})
		refs.Stash = strings.Fields(string(out))
	}
	return refs, err
}

const branches, tags = "refs/heads/", "refs/tags/"

// Lost names what the repository's names held once and no longer do: branches that are
// gone or no longer contain their commit, tags and stashed commits that are gone, and another
// branch at HEAD; a line each, with the command that brings it back.
func (r *Repo) Lost(ctx context.Context, was Refs) (lines []string, err error) {
	if was.IDs == nil {
		return nil, nil
	}
	is, err := r.Refs(ctx)
	if err != nil || is.IDs == nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(was.IDs)) {
		id, now := was.IDs[name], is.IDs[name]
		branch, isBranch := strings.CutPrefix(name, branches)
		tag := strings.TrimPrefix(name, tags)
		switch {
		case now == id:
		case isBranch && now == "":
			lines = append(lines, fmt.Sprintf("git: the branch %s is gone; to bring it back: git branch %s %s", branch, quote(branch), short(id)))
		case isBranch:
			held, ancestorErr := r.isAncestor(ctx, id, now)
			if err = errors.Join(err, ancestorErr); !held && ancestorErr == nil {
				lines = append(lines, fmt.Sprintf("git: the branch %s no longer contains %s; to keep that: git branch %[3]s %[2]s", branch, short(id), quote(branch+"-before")))
			}
		case now == "":
			lines = append(lines, fmt.Sprintf("git: the tag %s is gone; to bring it back: git tag %s %s", tag, quote(tag), short(id)))
		default:
			lines = append(lines, fmt.Sprintf("git: the tag %s was moved; to move it back: git tag -f %s %s", tag, quote(tag), short(id)))
		}
	}
	for _, id := range was.Stash { // "git stash store" does nothing if only the reflog is gone
		if !slices.Contains(is.Stash, id) {
			lines = append(lines, fmt.Sprintf("git: a stash is gone; to keep it for git stash apply: git branch stash-%s %[1]s", short(id)))
		}
	}
	if was.Branch != "" && is.Branch != was.Branch && is.IDs[branches+was.Branch] != "" {
		lines = append(lines, fmt.Sprintf("git: HEAD is no longer on the branch %s; to go back: git switch %s", was.Branch, quote(was.Branch)))
	}
	return lines, err
}

func (r *Repo) isAncestor(ctx context.Context, id, of string) (bool, error) {
	_, err := r.runOwn(ctx, call{args: []string{"merge-base", "--is-ancestor", id, of}})
	if failed, ok := errors.AsType[*Error](err); ok && failed.Exit == 1 {
		return false, nil
	}
	return err == nil, err
}

func short(id string) string { return id[:min(len(id), 12)] }
