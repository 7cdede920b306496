// Package config reads what a person has set for a project: hone's own
// .config/hone.toml, and .config/bork.json, which reconcile's users have.
//
// Both are read strictly. Whatever is not understood is an [*Error] that names
// the file, the line and the key, and says what to write instead; nothing is
// guessed and nothing passed over. A file that is not there is an empty one.
//
// A configuration says what a model may do, so it is only taken from where a
// model cannot write: a regular file in a real directory. A symbolic link on
// the way is an error even where it stays in the project, because what it
// points to is not protected.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"
)

// The files, relative to the project's root.
const (
	HonePath = ".config/hone.toml"
	BorkPath = ".config/bork.json"
)

// Error says what is wrong with a configuration, and where.
type Error struct {
	File    string // relative to the project's root
	Line    int    // counted from 1; 0 where it concerns the whole file
	Key     string // as in "limits.rounds"; empty where it concerns no key
	Problem string
	Hint    string // what to write or type next; never empty
}

// Error is one line: place, key, problem and what to do.
func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Key != "" {
		at += ": " + e.Key
	}
	return fmt.Sprintf("%s: %s; %s", at, e.Problem, e.Hint)
}

// read is the contents of a file below root; false means that there is none.
func read(root, file string) ([]byte, bool, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", file, err)
	}
	defer dir.Close()
	there, err := sound(dir, file)
	if err != nil || !there {
		return nil, false, err
	}
	f, err := dir.Open(file)
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", file, err)
	}
	defer f.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("read %s: %w", file, err)
	case len(text) > most:
		return nil, false, &Error{File: file, Problem: "it is larger than 1 MiB", Hint: "shorten it"}
	}
	return text, true, checkText(file, text)
}

// sound reports whether a file is there, and is an error unless it and its
// directory are what they should be.
func sound(root *os.Root, file string) (bool, error) {
	for _, name := range []string{".config", file} {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read %s: %w", file, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return false, &Error{File: name, Problem: "it is a symbolic link, and what it points to is not protected from a model", Hint: "put the file itself there"}
		case name == file && !info.Mode().IsRegular():
			return false, &Error{File: name, Problem: "it is not a regular file", Hint: "move it away"}
		case name != file && !info.IsDir():
			return false, &Error{File: name, Problem: "it is not a directory", Hint: "move it away"}
		}
	}
	return true, nil
}

// checkText refuses what is not plain UTF-8.
func checkText(file string, text []byte) error {
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return &Error{File: file, Line: 1, Problem: "it begins with a byte order mark", Hint: "save it as UTF-8 without one"}
	}
	for line := 1; len(text) > 0; {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			return &Error{File: file, Line: line, Problem: "it is not UTF-8", Hint: "save it as UTF-8"}
		}
		if r == '\n' {
			line++
		}
		text = text[n:]
	}
	return nil
}
