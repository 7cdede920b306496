package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hone/internal/artifact"
	"hone/internal/lazyregexp"
)

// maxSpec limits the size of a specification, in bytes.
const maxSpec = 1 << 20

// Error says what is wrong with a project's specifications.
type Error struct {
	Why     string
	Missing bool // only the given phase has no file
}

func (e *Error) Error() string { return e.Why }

// Dir returns the directory of a project's specifications, with slashes: specs, or .abl/specs if there is only that, as
// in ABL's later layout.
func Dir(root string) string {
	const later = ".abl/specs"
	if _, err := os.Stat(filepath.Join(root, "specs")); errors.Is(err, fs.ErrNotExist) {
		if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(later))); err == nil && info.IsDir() {
			return later
		}
	}
	return "specs"
}

// Read returns a project's specifications in the order of their phases, resolved: all
// of them if phase is 0, else those up to the phase, because no role gets a later one
// (ruling A1). The error is a [*Error] if the project is at fault, such as a file that
// is not UTF-8 text of at most 1 MiB, a symlink, two files for one phase, or no file
// for the given one. Other files beside them are ignored.
func Read(dir string, phase int) ([]Phase, error) {
	folder := Dir(dir)
	specs, err := readAll(dir, folder)
	if err == nil && len(specs) == 0 {
		err = fmt.Errorf("no specs: there is no %s/phaseN.md; write %[1]s/phase1.md with one contract a line, such as: GET /health → 200", folder)
	}
	if err != nil {
		return nil, &Error{Why: err.Error()}
	}
	if phase > 0 {
		specs = slices.DeleteFunc(specs, func(s Phase) bool { return s.Number > phase })
		if len(specs) == 0 || specs[len(specs)-1].Number != phase {
			return nil, &Error{Why: fmt.Sprintf("there is no %s/phase%d.md", folder, phase), Missing: true}
		}
	}
	Resolve(specs)
	return specs, nil
}

var specName = lazyregexp.New(`^phase([0-9]{1,6})\.md$`)

// Number returns the phase that a file in specs/ specifies, 2 for phase2.md. It returns
// false for other names.
func Number(name string) (int, bool) {
	found := specName.FindStringSubmatch(name)
	if found == nil {
		return 0, false
	}
	n, err := strconv.Atoi(found[1])
	return n, err == nil
}

func readAll(dir, folder string) (specs []Phase, err error) {
	// A parent that is a symlink is refused, as below.
	if err := artifact.CheckParents(dir, folder+"/x"); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(folder)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		number, ok := Number(e.Name())
		if !ok {
			continue
		}
		path := folder + "/" + e.Name()
		text, err := readText(dir, path)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(specs, func(s Phase) bool { return s.Number == number }); i >= 0 {
			return nil, fmt.Errorf("%s and %s are both phase %d; keep one of them", specs[i].Path, path, number)
		}
		specs = append(specs, Parse(number, path, text))
	}
	slices.SortFunc(specs, func(a, b Phase) int { return a.Number - b.Number })
	return specs, nil
}

func readText(dir, name string) (string, error) {
	content, err := artifact.Read(dir, name, maxSpec)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(content) || strings.ContainsRune(string(content), 0) {
		return "", fmt.Errorf("%s is not UTF-8 text; save it as UTF-8", name)
	}
	return strings.TrimPrefix(string(content), "\ufeff"), nil
}
