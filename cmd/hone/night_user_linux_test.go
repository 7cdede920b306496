package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nightUser edits and commits his own files in the directory of a loop.
type nightUser struct {
	work    nightWork
	files   map[string]string // what the user wrote last, by name
	commits []string          // subjects, newest first
	edits   int
}

func newNightUser(w nightWork) *nightUser {
	return &nightUser{work: w, files: map[string]string{"notes-of-mine.md": "first\n"}, commits: []string{"first"}}
}

// act edits, deletes or commits a file, and returns what the user did.
func (u *nightUser) act(t *testing.T, rng *rand.Rand) string {
	u.edits++
	switch n := rng.IntN(10); {
	case n < 3:
		return u.edit(t, "notes-of-mine.md")
	case n < 6:
		return u.edit(t, fmt.Sprintf("draft-of-mine-%d.txt", rng.IntN(3)))
	case n < 7:
		return u.edit(t, fmt.Sprintf("mine/chapter-%d.txt", rng.IntN(3)))
	case n < 8:
		return u.remove(t, fmt.Sprintf("draft-of-mine-%d.txt", rng.IntN(3)))
	}
	name := []string{"notes-of-mine.md", "mine/committed.txt"}[rng.IntN(2)]
	u.edit(t, name)
	subject := fmt.Sprintf("edit %d of %s", u.edits, name)
	u.work.git(t, "add", "--", name)
	u.work.git(t, "commit", "-q", "-m", subject, "--", name)
	u.commits = append([]string{subject}, u.commits...)
	return "commits " + name
}

func (u *nightUser) edit(t *testing.T, name string) string {
	t.Helper()
	u.files[name] += fmt.Sprintf("edit %d\n", u.edits)
	at := filepath.Join(u.work.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(u.files[name]), 0o644)); err != nil {
		t.Error(err)
	}
	return "edits " + name
}

func (u *nightUser) remove(t *testing.T, name string) string {
	t.Helper()
	if err := os.Remove(filepath.Join(u.work.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	delete(u.files, name)
	return "deletes " + name
}

// found returns the user's files as they are.
func (u *nightUser) found(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(u.work.dir, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, u.work.dir+"/")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".hone"):
			return fs.SkipDir
		case d.IsDir() || !isMine(name):
			return nil
		}
		text, err := os.ReadFile(path)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return found
}
