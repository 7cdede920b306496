// Package spec reads the specifications of a project's phases, the files
// specs/phaseN.md: what each states as a contract or a flow, and what a later phase
// supersedes (ruling A5).
//
// [Read] reads the files. [Parse] reads one text and never fails, because a spec is
// prose with contracts in it, and [Resolve] compares the phases. [DueItems] returns what
// needs a test, and [List] shows what was read.
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
	"hone/internal/render"
)

// Phase is one phase's specification: context in natural language, and
// contracts that a test can be derived from.
type Phase struct {
	// Number is the number in the file's name.
	Number int `json:"phase"`
	// Path is the file, relative to the project's root: "specs/phase2.md".
	Path string `json:"path"`
	// Text is the file as it was read, without a byte order mark.
	Text string `json:"text"`
	// Items are the contracts and flows in the order of their lines.
	Items []Item `json:"items,omitempty"`
	// Warnings are what the user should look at: lines that start with the file's name
	// and are safe to print. They never stop a run (ruling A5).
	Warnings []string `json:"warnings,omitempty"`
}

// Item is what one test tests: a contract, or a flow.
type Item struct {
	Path string `json:"path"`
	Line int    `json:"line"` // counted from 1
	// Flow is the name of a flow; empty for a contract, which has one step.
	Flow string `json:"flow,omitempty"`
	// Steps are the contracts of a flow in their order: state carries from each to
	// the next.
	Steps []Contract `json:"steps,omitempty"`
	// Supersedes are the contracts or, as "FLOW: NAME", the flows that this item
	// replaces.
	Supersedes []string `json:"supersedes,omitempty"`
	// By is the place of the item that supersedes this one; empty if it holds.
	By string `json:"by,omitempty"`
}

// Contract is one action and its one expected result, with white space collapsed.
// One of the two is empty if the spec states only the other.
type Contract struct {
	Line     int    `json:"line"`
	Action   string `json:"action"`
	Expected string `json:"expected"`
	By       string `json:"by,omitempty"` // the place of what supersedes this step of a flow
}

// String returns the contract as a line of a spec, with an arrow.
func (c Contract) String() string { return strings.TrimSpace(c.Action + " → " + c.Expected) }

// String returns the item as a line of a spec: a contract, or the name of a flow.
func (i Item) String() string {
	if i.isFlow() {
		return "FLOW: " + i.Flow
	}
	return i.Steps[0].String()
}

func (i Item) isFlow() bool { return i.Flow != "" || len(i.Steps) != 1 }

// Place returns the file and the line of the item.
func (i Item) Place() string { return fmt.Sprintf("%s:%d", i.Path, i.Line) }

func (p *Phase) warn(line int, format string, args ...any) {
	p.Warnings = append(p.Warnings, render.Line(fmt.Sprintf("%s:%d: ", p.Path, line)+fmt.Sprintf(format, args...)))
}

// DueItems returns what needs a test: the contracts and flows of resolved specs that none
// of these supersedes, in their order. What is stated twice is returned once.
func DueItems(specs []Phase) []Item {
	var due []Item
	stated := map[string]bool{}
	for _, s := range specs {
		for _, i := range s.Items {
			if key := Plain(i.String()); i.By == "" && !stated[key] {
				stated[key] = true
				due = append(due, i)
			}
		}
	}
	return due
}

// List returns resolved specs as plain text for a terminal: the contracts and flows of
// each phase with their lines, what is superseded and where, and the warnings. Control
// characters are escaped.
func List(specs []Phase) string {
	var b strings.Builder
	row := func(line int, text, by string) {
		if by != "" {
			text += "  [superseded by " + by + "]"
		}
		fmt.Fprintf(&b, "  %4d  %s\n", line, render.Line(text))
	}
	warnings := ""
	for _, s := range specs {
		fmt.Fprintf(&b, "Phase %d (%s)\n", s.Number, s.Path)
		for _, i := range s.Items {
			lead := ""
			if i.isFlow() {
				row(i.Line, i.String(), i.By)
				lead = "  "
			}
			for _, c := range i.Steps {
				row(c.Line, lead+c.String(), c.By)
			}
		}
		b.WriteByte('\n')
		for _, w := range s.Warnings {
			warnings += "  " + w + "\n"
		}
	}
	if warnings == "" {
		return strings.TrimSuffix(b.String(), "\n")
	}
	return b.String() + "Warnings\n" + warnings
}

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
