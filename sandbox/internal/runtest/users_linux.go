package runtest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// User is a user who runs a restrained command.
type User struct {
	Name string
	ID   uint32
}

// Users returns the current user and, if that is root, another one.
func Users() []User {
	all := []User{{"uid" + strconv.Itoa(os.Getuid()), uint32(os.Getuid())}}
	if os.Getuid() == 0 {
		all = append(all, User{"uid65534", 65534})
	}
	return all
}

// OpenDir returns a new directory of a user that every user can reach.
func OpenDir(t testing.TB, u User) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "restraint")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	real, err := filepath.EvalSymlinks(dir)
	if err := errors.Join(err, os.Chmod(dir, 0o755), os.Chown(dir, int(u.ID), int(u.ID))); err != nil {
		t.Fatal(err)
	}
	return real
}

// TestBinary returns the path of a copy of the test binary that a user can run.
func TestBinary(t testing.TB, u User) string {
	t.Helper()
	path := filepath.Join(OpenDir(t, u), "test")
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}
