package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// project is a testscript command. It makes a directory a project of one phase,
// a service whose hooks need python3, and changes to it. Files of the script in
// the directory are kept.
func project(ts *testscript.TestScript, neg bool, args []string) {
	dir := "project"
	if len(args) > 0 {
		dir = args[0]
	}
	ts.Check(copyProject(ts.MkAbs(dir)))
	ts.Check(ts.Chdir(dir))
}

// copyProject adds the missing files of a project to a directory.
func copyProject(dir string) error {
	from := os.DirFS(filepath.Join("testdata", "project"))
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(to, 0o755))
		}
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		return errors.Join(err, f.Close())
	})
}
