package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hone/internal/lazyregexp"
	"hone/internal/render"
)

const (
	specFolder = "specs"
	specLimit  = 1 << 20 // bytes
)

// Read reads the files specs/phaseN.md below a project's root, in the order of
// their numbers. It returns an error, with what to do, if a file is not a readable
// text of at most 1 MiB, if two files specify one phase, and if there is no spec.
// It does not follow symlinks, and ignores other files in specs/; those whose names
// resemble a spec's become Strays.
func Read(root *os.Root) ([]Phase, error) {
	folder, err := openSpecs(root)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := namesIn(folder)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", specFolder, err)
	}
	var specs []Phase
	var strays []string
	for _, name := range names {
		number, ok := phaseOf(name)
		if !ok {
			if resemblesSpec(name) {
				strays = append(strays, name)
			}
			continue
		}
		text, err := readSpec(folder, name)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", specFolder, name, err)
		}
		specs = append(specs, Parse(number, specFolder+"/"+name, text))
	}
	specs = ordered(specs)
	if err := checkNumbers(specs, strays); err != nil {
		return nil, err
	}
	assignStrays(specs, strays)
	return specs, nil
}

// Error says what is wrong with a project's specifications.
type Error struct {
	Why  string
	None bool // the project has no specification that can be read
}

func (e *Error) Error() string { return e.Why }

// All returns a project's specifications in the order of their phases. There is at
// least one, or an error: a [*Error] if the project is at fault.
func All(dir string) ([]Phase, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	specs, err := Read(root)
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
	var some []Phase
	for _, s := range all {
		if s.Number <= phase {
			some = append(some, s)
		}
	}
	if len(some) == 0 || some[len(some)-1].Number != phase {
		return nil, &Error{Why: fmt.Sprintf("there is no specs/phase%d.md", phase)}
	}
	return some, nil
}

func noSpecs(why string) error {
	return fmt.Errorf("no specs: %s; write specs/phase1.md with one contract a line, such as: GET /health → 200", why)
}

// openSpecs opens the directory specs/. It does not follow a symlink.
func openSpecs(root *os.Root) (*os.Root, error) {
	before, err := root.Lstat(specFolder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, noSpecs("there is no directory specs/")
	case err != nil:
		return nil, fmt.Errorf("specs: %w", err)
	case !before.IsDir():
		return nil, fmt.Errorf("specs is %s; make it a directory of this project", fileKind(before))
	}
	folder, err := root.OpenRoot(specFolder)
	if err != nil {
		return nil, fmt.Errorf("specs: %w", err)
	}
	after, err := folder.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errors.New("the directory was replaced while it was being opened; run again")
	}
	if err != nil {
		folder.Close()
		return nil, fmt.Errorf("specs: %w", err)
	}
	return folder, nil
}

// namesIn returns the names in a directory, in byte order.
func namesIn(folder *os.Root) ([]string, error) {
	dir, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

var (
	specName = lazyregexp.New(`^phase([0-9]{1,6})\.md$`)
	// nearName matches similar names: Phase2.md, phase-2.md, phase2.txt, and
	// phase2-login.md, which the seed's Makefile would read.
	nearName = lazyregexp.New(`(?i)^phase(?:.*\.md|[ _.-]*[0-9]+(?:[^0-9].*)?)$`)
	// spare matches the copies that editors and version control leave behind.
	spare      = lazyregexp.New(`(?i)(?:~|\.bak|\.orig|\.rej|\.tmp|\.sw[a-z])$`)
	nameNumber = lazyregexp.New(`[0-9]+`)
)

func phaseOf(name string) (int, bool) {
	found := specName.FindStringSubmatch(name)
	if found == nil {
		return 0, false
	}
	number, err := strconv.Atoi(found[1])
	return number, err == nil
}

func resemblesSpec(name string) bool { return nearName.MatchString(name) && !spare.MatchString(name) }

// readSpec reads one file as text that can be part of a prompt.
func readSpec(folder *os.Root, name string) (string, error) {
	const act = "make it a regular file with the spec's text"
	info, err := folder.Lstat(name)
	if err != nil {
		return "", err
	}
	// Checked before it is opened, because opening a pipe blocks.
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("it is %s; %s", fileKind(info), act)
	}
	f, err := folder.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !os.SameFile(info, opened) {
		return "", errors.New("the file was replaced while it was being opened; run again")
	}
	content, err := io.ReadAll(io.LimitReader(f, specLimit+1))
	if err != nil {
		return "", err
	}
	return specText(content)
}

func specText(content []byte) (string, error) {
	text := strings.TrimPrefix(string(content), "\ufeff")
	switch {
	case len(content) > specLimit:
		return "", errors.New("it is larger than 1 MiB; split the phase, or move everything that is not a contract out of specs/")
	case !utf8.ValidString(text):
		return "", fmt.Errorf("line %d is not UTF-8; save the file as UTF-8", firstLine(text, func(l string) bool { return !utf8.ValidString(l) }))
	case strings.ContainsRune(text, 0):
		return "", fmt.Errorf("line %d contains a NUL byte; save the file as UTF-8 text", firstLine(text, func(l string) bool { return strings.ContainsRune(l, 0) }))
	}
	return text, nil
}

// firstLine returns the number of the first line for which test is true.
func firstLine(text string, test func(string) bool) int {
	number := 0
	for l := range strings.Lines(text) {
		number++
		if test(l) {
			break
		}
	}
	return number
}

func fileKind(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "a directory"
	case mode.IsRegular():
		return "a file"
	case mode&fs.ModeSymlink != 0:
		return "a symlink"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "not a regular file"
}

// ordered returns a copy of the specs, sorted by number.
func ordered(specs []Phase) []Phase {
	specs = slices.Clone(specs)
	slices.SortStableFunc(specs, func(a, b Phase) int { return a.Number - b.Number })
	return specs
}

// checkNumbers returns an error if two specs have the same number, or if there is
// no spec.
func checkNumbers(specs []Phase, strays []string) error {
	for i := 1; i < len(specs); i++ {
		if a, b := specs[i-1], specs[i]; a.Number == b.Number {
			return fmt.Errorf("%s and %s are both phase %d; keep one of them", a.Path, b.Path, a.Number)
		}
	}
	switch {
	case len(specs) > 0:
		return nil
	case len(strays) > 0:
		return noSpecs(fmt.Sprintf("%s is not called phaseN.md", render.Line(specFolder+"/"+strays[0])))
	}
	return noSpecs("there is no specs/phaseN.md")
}

// assignStrays adds each stray to the spec with the next lower number.
func assignStrays(specs []Phase, strays []string) {
	for _, name := range strays {
		number, err := strconv.Atoi(nameNumber.FindString(name))
		if err != nil {
			number = 0
		}
		at := 0
		for i, s := range specs {
			if s.Number <= number {
				at = i
			}
		}
		specs[at].Strays = append(specs[at].Strays, specFolder+"/"+name)
	}
}
