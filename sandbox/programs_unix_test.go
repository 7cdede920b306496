//go:build unix

package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hone/sandbox"
)

// TestFindProgram plants a program under each name that leads to what commands may write.
func TestFindProgram(t *testing.T) {
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	for _, dir := range []string{"tree/bin", "away", "mine", "good"} {
		must(0, os.MkdirAll(at(dir), 0o755))
	}
	for _, file := range []string{"tree/bin/git", "away/git", "good/git"} {
		must(0, os.WriteFile(at(file), []byte("#!/bin/sh\n"), 0o755))
	}
	must(0, os.WriteFile(at("mine/not-executable"), nil, 0o644))
	for link, target := range map[string]string{
		"into": "tree/bin", "tree/out": "../away", "mine/git": at("tree/bin/git"), "twice": "tree/out", "alias": "tree",
	} {
		must(0, os.Symlink(target, at(link)))
	}
	t.Chdir(at("tree"))
	for _, dir := range []string{"", ".", "bin", at("tree/bin"), at("tree/bin") + "/../bin/", at("into"), at("tree/out"), at("mine"), at("twice"), at("alias/bin")} {
		env := []string{"PATH=" + dir + ":" + at("good")}
		for _, tree := range []string{at("tree"), at("alias"), "."} {
			if got, err := sandbox.FindProgram("git", env, at("none"), tree); err != nil || got != at("good/git") {
				t.Errorf("PATH %q, tree %q: %q, %v", dir, tree, got, err)
			}
		}
		if got, err := sandbox.FindProgram("git", append(env, sandbox.Origin+"="+at("tree")), at("none")); err != nil || got != at("good/git") {
			t.Errorf("PATH %q, in a copy of the tree: %q, %v", dir, got, err)
		}
		if got, err := sandbox.FindProgram("git", env[:1], at("tree"), at("good")); !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("all may be written: %q, %v", got, err)
		}
		own := sandbox.EnvValue(sandbox.OwnEnviron(append(env, "A=B"), at("tree")), "PATH")
		if dir != at("mine") && own != at("good") {
			t.Errorf("PATH %q for what hone runs: %q", dir, own)
		}
	}
	if own := strings.Join(sandbox.OwnEnviron([]string{"PATH=:bin", "A=B"}, at("tree")), " "); own != "A=B PATH=/dev/null" {
		t.Errorf("nothing of PATH is left: %q", own)
	}
	// A repository is not a tree: what only the user writes is run.
	must(0, os.Mkdir(at("good/.git"), 0o755))
	if got, err := sandbox.FindProgram("git", []string{"PATH=" + at("good")}, at("tree")); err != nil || got != at("good/git") {
		t.Errorf("in a repository: %q, %v", got, err)
	}
}
