package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hone/internal/artifact"
	"hone/internal/lazyregexp"
)

const (
	specFolder = "specs"
	specLimit  = 1 << 20 // bytes
)

// Error says what is wrong with a project's specifications.
type Error struct {
	Why  string
	None bool // the project has no specification that can be read
}

func (e *Error) Error() string { return e.Why }

// All returns a project's specifications in the order of their phases. There is at
// least one, or an error: a [*Error] if the project is at fault, such as a file that
// is not UTF-8 text of at most 1 MiB, a symlink, or two files for one phase. Other
// files in specs/ are ignored.
func All(dir string) ([]Phase, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	specs, err := read(root)
	if err != nil {
		return nil, &Error{Why: err.Error(), None: true}
	}
	return specs, nil
}

// UpTo returns the specifications of a project's phases up to the given one, in
// their order. The last is the one of that phase itself; if it does not exist the
// error is a [*Error].
func UpTo(dir string, phase int) ([]Phase, error) {
	all, err := All(dir)
	if err != nil {
		return nil, err
	}
	some := upTo(all, phase)
	if len(some) == 0 || some[len(some)-1].Number != phase {
		return nil, &Error{Why: fmt.Sprintf("there is no specs/phase%d.md", phase)}
	}
	return some, nil
}

// upTo returns the specs of the phases up to one. No role sees a later one (ruling
// A1).
func upTo(specs []Phase, phase int) []Phase {
	return slices.DeleteFunc(slices.Clone(specs), func(s Phase) bool { return s.Number > phase })
}

var (
	specName = lazyregexp.New(`^phase([0-9]{1,6})\.md$`)
	nearName = lazyregexp.New(`(?i)^phase.*\.(?:md|markdown|txt)$`)
)

// read reads the files specs/phaseN.md.
func read(root *os.Root) ([]Phase, error) {
	// A parent that is a symlink is refused, as below.
	if err := artifact.CheckParents(root, specFolder+"/x"); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(root.FS(), specFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noSpecs("there is no directory specs/")
	}
	if err != nil {
		return nil, err
	}
	var specs []Phase
	var strays []string
	for _, e := range entries {
		at := specFolder + "/" + e.Name()
		found := specName.FindStringSubmatch(e.Name())
		if found == nil {
			if nearName.MatchString(e.Name()) {
				strays = append(strays, at)
			}
			continue
		}
		text, err := readText(root, at)
		if err != nil {
			return nil, err
		}
		number, _ := strconv.Atoi(found[1])
		specs = append(specs, Parse(number, at, text))
	}
	if len(specs) == 0 {
		return nil, noSpecs(strings.Join(append(strays, "there is no specs/phaseN.md"), " is not called phaseN.md, and "))
	}
	slices.SortStableFunc(specs, func(a, b Phase) int { return a.Number - b.Number })
	for i := 1; i < len(specs); i++ {
		if a, b := specs[i-1], specs[i]; a.Number == b.Number {
			return nil, fmt.Errorf("%s and %s are both phase %d; keep one of them", a.Path, b.Path, a.Number)
		}
	}
	specs[0].Strays = strays
	return specs, nil
}

func noSpecs(why string) error {
	return fmt.Errorf("no specs: %s; write specs/phase1.md with one contract a line, such as: GET /health → 200", why)
}

// readText reads one file as text that can be part of a prompt.
func readText(root *os.Root, name string) (string, error) {
	content, err := artifact.Read(root, name, specLimit)
	if err != nil {
		return "", err
	}
	text := strings.TrimPrefix(string(content), "\ufeff")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("%s is not UTF-8 text; save it as UTF-8", name)
	}
	return text, nil
}
