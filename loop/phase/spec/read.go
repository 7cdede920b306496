package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hone/internal/render"
)

const (
	specFolder = "specs"
	specLimit  = 1 << 20 // bytes
)

// Read reads specs/phaseN.md below a project's root, in the order of
// their numbers. The error says what to do about a file that is no readable
// text of at most 1 MiB, about two files for one phase, and about there being
// no spec at all. Symlinks are not followed. Other files in specs/ are passed
// over; those whose names nearly fit become Strays.
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
			if nearlySpec(name) {
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
	if err := numbered(specs, strays); err != nil {
		return nil, err
	}
	assign(specs, strays)
	return specs, nil
}

// Error says which specification a project lacks.
type Error struct {
	Why  string
	None bool // it has none that can be read
}

func (e *Error) Error() string { return e.Why }

// All are a project's specifications, in the order of their phases; never none
// without an error. The error is a [*Error] where the project is at fault.
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

// UpTo are the specifications of the phases up to one, in their order, below a
// project's root. There is one of that phase itself, or an error as of [All].
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

// openSpecs opens specs/ itself, and not what a symlink of that name points to.
func openSpecs(root *os.Root) (*os.Root, error) {
	before, err := root.Lstat(specFolder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, noSpecs("there is no folder specs/")
	case err != nil:
		return nil, fmt.Errorf("specs: %w", err)
	case !before.IsDir():
		return nil, fmt.Errorf("specs is %s; make it a folder of this project", kindOf(before))
	}
	folder, err := root.OpenRoot(specFolder)
	if err != nil {
		return nil, fmt.Errorf("specs: %w", err)
	}
	after, err := folder.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errors.New("the folder was exchanged while it was opened; run again")
	}
	if err != nil {
		folder.Close()
		return nil, fmt.Errorf("specs: %w", err)
	}
	return folder, nil
}

// namesIn are the names in a folder, in byte order.
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
	specName = regexp.MustCompile(`^phase([0-9]{1,6})\.md$`)
	// nearName is what people and tools make of it: Phase2.md, phase-2.md,
	// phase2.txt, and phase2-login.md, which the seed's Makefile would read.
	nearName = regexp.MustCompile(`(?i)^phase(?:.*\.md|[ _.-]*[0-9]+(?:[^0-9].*)?)$`)
	// spare are the copies that editors and version control leave behind.
	spare      = regexp.MustCompile(`(?i)(?:~|\.bak|\.orig|\.rej|\.tmp|\.sw[a-z])$`)
	nameNumber = regexp.MustCompile(`[0-9]+`)
)

func phaseOf(name string) (int, bool) {
	found := specName.FindStringSubmatch(name)
	if found == nil {
		return 0, false
	}
	number, err := strconv.Atoi(found[1])
	return number, err == nil
}

func nearlySpec(name string) bool { return nearName.MatchString(name) && !spare.MatchString(name) }

// readSpec reads one file as text that a prompt can hold.
func readSpec(folder *os.Root, name string) (string, error) {
	const act = "make it a regular file with the spec's text"
	info, err := folder.Lstat(name)
	if err != nil {
		return "", err
	}
	// Looked at before it is opened, as opening a pipe waits for its other end.
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("it is %s; %s", kindOf(info), act)
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
		return "", errors.New("the file was exchanged while it was opened; run again")
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
		return "", errors.New("it is larger than 1 MiB; split the phase, or move what is no contract out of specs/")
	case !utf8.ValidString(text):
		return "", fmt.Errorf("line %d is not UTF-8; save the file as UTF-8", firstLine(text, func(l string) bool { return !utf8.ValidString(l) }))
	case strings.ContainsRune(text, 0):
		return "", fmt.Errorf("line %d holds a NUL byte; save the file as UTF-8 text", firstLine(text, func(l string) bool { return strings.ContainsRune(l, 0) }))
	}
	return text, nil
}

// firstLine is the number of the first line that a test holds for.
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

func kindOf(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "a folder"
	case mode.IsRegular():
		return "a file"
	case mode&fs.ModeSymlink != 0:
		return "a symlink"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "no regular file"
}

// ordered are the specs by number, in a slice of their own.
func ordered(specs []Phase) []Phase {
	specs = slices.Clone(specs)
	slices.SortStableFunc(specs, func(a, b Phase) int { return a.Number - b.Number })
	return specs
}

// numbered says what is wrong with the numbers of the specs as a whole.
func numbered(specs []Phase, strays []string) error {
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

// assign gives each stray to the spec whose number comes next below its own.
func assign(specs []Phase, strays []string) {
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
