package loop

import (
	"path/filepath"
	"strings"
	"unicode"

	"hone/workspace/secret"
)

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
	for {
		_, rest, found := strings.Cut(line, dir)
		if !found {
			return false
		}
		next := strings.IndexFunc(rest, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-+@", r)
		})
		if next == 0 || rest == "" {
			return true
		}
		line = rest
	}
}
