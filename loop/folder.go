package loop

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hone"
	"hone/internal/artifact"
	"hone/internal/transient"
)

// AbsDir returns the absolute path of a directory that the user named, without links.
func AbsDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	info, statErr := os.Stat(dir)
	if err := cmp.Or(err, statErr); transient.Is(err) {
		return "", err
	}
	if err != nil || statErr != nil || !info.IsDir() {
		return "", Usage(fmt.Sprintf("%s is not a directory", dir), "name an existing one with -C DIR")
	}
	return abs, nil
}

// AbsPaths is [AbsPath] for several paths; nil if there are none.
func AbsPaths(from string, paths []string) ([]string, error) {
	var all []string
	for _, p := range paths {
		at, err := AbsPath(from, p)
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
}

// AbsPath returns the absolute form of a path that the user wrote. It is relative to
// the user's home directory if it starts with ~, and to the directory from
// otherwise.
func AbsPath(from, path string) (string, error) {
	rest, home := strings.CutPrefix(path, "~")
	switch {
	case home && (rest == "" || rest[0] == '/'):
		at, err := os.UserHomeDir()
		if err != nil {
			return "", Usage(path+": "+err.Error(), "write the full path")
		}
		return filepath.Join(at, rest), nil
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	}
	return filepath.Join(from, path), nil
}

// Below returns a path that the user named, relative to Root, with slashes and with
// links followed; "." is Root itself. A relative path starts at Dir. ok is false if the
// path is outside of Root. The error says that nothing is there, or that it cannot be
// reached.
func (in *Input) Below(name string) (rel string, ok bool, err error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(in.Dir, name)
	}
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", false, err
	}
	rel, err = filepath.Rel(in.Root, real)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel), nil
}

// Files returns the embedded files below a directory, with the paths at which they
// are written. The prefix "dot-" of a name stands for a dot, because embedding omits
// dot files.
func Files(from embed.FS, folder string) (files []File, err error) {
	err = fs.WalkDir(from, folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := from.ReadFile(name)
		files = append(files, File{strings.ReplaceAll(strings.TrimPrefix(name, folder+"/"), "dot-", "."), content})
		return err
	})
	return files, err
}

// CheckEdited returns a usage error if a text that the user must write is still that of an
// embedded starter file. name is the text's file.
func CheckEdited(name, text string, from embed.FS, starter string) error {
	if content, err := from.ReadFile(starter); err == nil && text == string(content) {
		return Usage(name+" still contains the starter's text", "write what you want into it")
	}
	return nil
}

// MakeDir creates a directory below a root, unless it exists. It returns an error
// if something else has that name.
func MakeDir(root, name string) error {
	if err := artifact.MakeDir(root, name); err != nil {
		return &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{First: "move it away", Verb: hone.Resume}}
	}
	return nil
}

// Do is [hone.Step] for what has no result.
func Do(ctx context.Context, r *hone.Run, name string, input any, do func(context.Context) error) error {
	_, err := hone.Step(ctx, r, name, input, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// CheckFiles returns a usage error if hone could not write or append to a file
// below dir because of what the repository has in its place, such as a link. The
// names have slashes.
func CheckFiles(dir string, names ...string) error {
	for _, name := range names {
		if err := artifact.Check(dir, name, true); err != nil {
			return Usage(fmt.Sprintf("cannot write %s: %v", name, err), "nothing was sent or written")
		}
	}
	return nil
}
