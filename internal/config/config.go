// Package config is the table of hone's settings, and reads how the user has configured a
// project: hone's own .config/hone.toml by [Load], and .config/bork.json of the loop
// reconcile by [Bork].
//
// A setting is a row of the table in table.go: a variable of type [Setting] with its default,
// key, flag, variable, rule, help, loops and need of trust; see [Row]. Everything else comes
// from the rows: the flags of all commands ([AddFlags]) with their choices for completion, the
// keys of the file with the line of every error ([Load]), hone help config ([Help]) and
// docs/configuration.md, the questions of trust ([File.Opens]), what a run records
// ([Values.Recorded]) and the flags that repeat it ([Values.Repeat]). To add a setting, add a
// row; the code that needs it says config.Patience.In(values).
//
// Values are maps by the name of a setting. Those that were typed and those of the file stay
// apart until [File.For] merges them for a loop, in the order of precedence: flag, variable,
// section of the loop, other section, default. A run records the merged values, so that a
// resumed run has the same ones, but for those of rows that are Apart: models and walls, of
// which it records what was resolved, and what only its start needs.
//
// Both files are strict. An unknown key, a wrong type or a wrong value is an
// [*Error] that names the file, the line and the key, and says what to write
// instead. A missing file counts as an empty one.
//
// The configuration decides what a model may do, so it must be where no model
// can write: a regular file in a real directory. A symbolic link is an error even
// if it stays inside the project, because its target is not protected.
//
// go-toml decodes hone.toml, but does not return where an accepted value is. Errors about
// such values name their lines, too; this is why document.go reads the place of each key.
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

// Paths of the files, relative to the root of the project.
const (
	HonePath = ".config/hone.toml"
	BorkPath = ".config/bork.json"
)

// Error reports what is wrong with a configuration file, and where.
type Error struct {
	File    string // relative to the root of the project
	Line    int    // counted from 1; 0 means the whole file
	Key     string // as in "limits.rounds"; empty if the error concerns no key
	Problem string
	Hint    string // what the user should do; never empty
}

// Error returns one line: place, key, problem and hint.
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

func read(root, file string) (text []byte, exists bool, err error) {
	defer func() {
		if _, said := errors.AsType[*Error](err); err != nil && !said {
			err = fmt.Errorf("read %s: %w", file, err)
		}
	}()
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, false, err
	}
	defer dir.Close()
	for _, name := range []string{".config", file} {
		info, err := dir.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, false, nil
		case err != nil:
			return nil, false, err
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, false, &Error{File: name, Problem: "it is a symbolic link, and its target is not protected from a model", Hint: "replace it with the file or directory itself"}
		case name == file && !info.Mode().IsRegular():
			return nil, false, &Error{File: name, Problem: "it is not a regular file", Hint: "move it away"}
		case name != file && !info.IsDir():
			return nil, false, &Error{File: name, Problem: "it is not a directory", Hint: "move it away"}
		}
	}
	f, err := dir.Open(file)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	const most = 1 << 20
	if text, err = io.ReadAll(io.LimitReader(f, most+1)); err == nil && len(text) > most {
		err = &Error{File: file, Problem: "it is larger than 1 MiB", Hint: "shorten it"}
	}
	if err != nil {
		return nil, false, err
	}
	return text, true, checkText(file, text)
}

func checkText(file string, text []byte) error {
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return &Error{File: file, Line: 1, Problem: "it begins with a byte order mark", Hint: "save it as UTF-8 without one"}
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(line) {
			return &Error{File: file, Line: i + 1, Problem: "it is not UTF-8", Hint: "save it as UTF-8"}
		}
	}
	return nil
}
