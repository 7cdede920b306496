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
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"hone"
	"hone/check"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/internal/excerpt"
	"hone/internal/transient"
	"hone/workspace/secret"
)

// OneArg returns the end of a command line with one argument, which may begin with a dash;
// nil if it is empty.
func OneArg(arg string) []string {
	if arg == "" {
		return nil
	}
	return []string{"--", arg}
}

// Text returns the command's one argument; empty if there is none. "-" stands for
// what standard input contains, which must not be a terminal or empty. A secret in it is
// replaced (ruling G8): users pipe logs and diffs.
func (in *Input) Text() (string, error) {
	switch {
	case len(in.Args) == 0:
		return "", nil
	case in.Args[0] != "-":
		return new(secret.Guard).Redact(in.Args[0]), nil
	}
	hint := fmt.Sprintf(`hone %[1]s - < FILE, or: hone %[1]s "TEXT"`, in.Kind.Name)
	if f, ok := in.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return "", Usage("- reads the text from standard input, which is a terminal", hint)
	}
	text, err := artifact.InputFrom(in.In, "standard input")
	switch {
	case err != nil:
		return "", Usage(err.Error(), hint)
	case strings.TrimSpace(string(text)) == "":
		return "", Usage("- reads the text from standard input, which is empty", hint)
	}
	return new(secret.Guard).Redact(string(text)), nil
}

// maxReported is how much of the file of --findings is kept beside the findings, in bytes.
const maxReported = 256 << 10

// Reported returns what a check found elsewhere, of the file that the user named; nil if there is none. It depends on the
// resolved settings.
func (in *Input) Reported(ctx context.Context) (*hone.Reported, error) {
	name := config.Findings.In(in.Values)
	read := func() ([]byte, error) { return artifact.Input(name) }
	switch {
	case name == "":
		return nil, nil
	case name == "-" && len(in.Args) > 0 && in.Args[0] == "-":
		return nil, Usage("the advice and --findings cannot both be standard input", "give --findings the name of a file")
	case name == "-":
		name, read = "standard input", func() ([]byte, error) { return artifact.InputFrom(in.In, "standard input") }
	}
	b, err := read()
	if err != nil {
		return nil, UsageOf(fmt.Errorf("--findings: %w", err), "name the log or the report of a check")
	}
	guard, err := in.Guard(ctx)
	if err != nil {
		return nil, err
	}
	text := guard.Redact(string(b))
	found := &hone.Reported{Name: name, Findings: in.ReadFindings(text), Text: excerpt.Middle(excerpt.Output([]byte(text)), maxReported)}
	if !check.Blocking(found.Findings) {
		return nil, Usage("hone finds no findings in "+name,
			`name its format, such as --check-format "%f:%l: %m"; or leave out --findings, and hone runs the check`)
	}
	return found, nil
}

// CheckLine returns a usage error for a check that would run nothing, and so always pass:
// one that has only blanks and comments; and for one that contains a secret, which models and
// receipts would get (ruling G8). An empty line is no check, and no error.
func CheckLine(line string) error {
	if line == "" {
		return nil
	}
	if new(secret.Guard).Redact(line) != line {
		return Usage("the check contains a secret, which a model and the records of the run would get", "put it into a variable, write that in the check, and let commands have it with env in [check]")
	}
	for one := range strings.Lines(line) {
		if one = strings.TrimSpace(one); one != "" && !strings.HasPrefix(one, "#") {
			return nil
		}
	}
	return Usage("the check has only blanks and comments, so it would always pass", `write a command, such as --check "make test"; a variable in it may be empty`)
}

// CheckOfCopies returns a usage error for a check that names a directory by its absolute path
// although it runs in copies of it, which whose says. to is the directory's relative path.
func CheckOfCopies(line, dir, to, whose string) error {
	if !NamesDir(line, dir) {
		return nil
	}
	return Usage("the check names "+dir+" by its absolute path, so it would judge that directory and not the "+whose+", which are in copies",
		"write its paths relative to the directory: "+strings.ReplaceAll(line, dir, to))
}

// NamesDir reports whether a command line names a directory, or something in it, by its
// absolute path. In a copy of the directory it would still mean the original.
func NamesDir(line, dir string) bool {
	if dir = filepath.Clean(dir); !filepath.IsAbs(dir) || dir == filepath.Dir(dir) {
		return false
	}
	_, rest, found := strings.Cut(line, dir)
	for ; found; _, rest, found = strings.Cut(rest, dir) {
		next, _ := utf8.DecodeRuneInString(rest)
		if rest == "" || !unicode.IsLetter(next) && !unicode.IsNumber(next) && !strings.ContainsRune("._+@-", next) {
			return true
		}
	}
	return false
}

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
