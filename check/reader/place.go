package reader

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hone/check"
	"hone/internal/lazyregexp"
)

// frameLine is a line of a stack in a text, with its place.
var frameLine = lazyregexp.New(`(?m)^ +at .* \((\S+?):(\d{1,9})(?::\d{1,9})?\)$`)

// Place makes the files of findings relative to a tree, in place. dir is the absolute
// path of the tree where the program ran, with or without symbolic links; has reports whether the tree has a file
// with a slash-separated path.
//
// Paths below dir lose it, also in texts and IDs. From another relative path
// leading directories are removed until the tree has the file: import paths become
// files. For a Java class, and for a name without a directory, the usual source directories
// are tried. If the tree does not have the file, the first frame of a stack in the text
// whose file it has is the place; without one, file and line are moved to the start of the
// text.
func Place(found []check.Finding, dir string, has func(file string) bool) {
	prefixes := []string{strings.TrimSuffix(cleanFile(dir), "/") + "/"}
	if real, err := filepath.EvalSymlinks(dir); err == nil { // programs print either
		prefixes = append(prefixes, strings.TrimSuffix(cleanFile(real), "/")+"/")
	}
	prefixes = slices.Compact(prefixes)
	known := map[string]string{}
	for n := range found {
		f := &found[n]
		for _, p := range prefixes {
			f.ID, f.Text = strings.ReplaceAll(f.ID, p, ""), strings.ReplaceAll(f.Text, p, "")
		}
		if f.File == "" {
			continue
		}
		placed, ok := known[f.File]
		if !ok {
			placed = inTree(f.File, prefixes, has)
			known[f.File] = placed
		}
		line := f.Line
		for _, m := range frameLine.FindAllStringSubmatch(f.Text, 20) {
			if placed == "" {
				placed, line = inTree(cleanFile(m[1]), prefixes, has), number(m[2])
			}
		}
		if placed == "" {
			f.Text, line = fmt.Sprintf("%s: %s", placeText(f.File, f.Line), f.Text), 0
		}
		f.Line = line
		f.File = placed
	}
}

// crashed is in a finding about a program that crashed.
var crashed = lazyregexp.New(`(?m)^    at .* \(\S+:\d+\)$|\bpanic: |\bfatal error: |Sanitizer: |runtime error: |\bassertion failed: |Fatal Python error`)

const (
	maxSources  = 3  // places whose source is shown
	sourceLines = 10 // before the place, and after it
	maxSource   = 160
)

// freedBy is in a finding about memory that was freed: the first frame after that of a function that frees what it gets.
var freedBy = lazyregexp.New(`(?m)^.*\b(?:freed by|free'd)\b.*\n(?: +at .*(?i:free|delete).* \(.*\)\n)? +at .* \((\S+?):(\d{1,9})(?::\d{1,9})?\)$`)

// Source adds to the texts of the first findings about crashes the source around their
// place, which [Place] found in the tree, and around what had freed the memory. read returns a file as a model may see it; ok is
// false if it may not, or if there is none.
func Source(found []check.Finding, read func(file string) (text string, ok bool)) {
	shown := map[string]bool{}
	for n := range found {
		f := &found[n]
		if f.Line == 0 || !crashed.MatchString(f.Text) {
			continue
		}
		places := []check.Finding{{File: f.File, Line: f.Line}}
		if m := freedBy.FindStringSubmatch(f.Text); m != nil {
			places = append(places, check.Finding{File: cleanFile(m[1]), Line: number(m[2])})
		}
		for _, p := range places {
			if len(shown) == maxSources || shown[p.Place()] {
				continue
			}
			if text, ok := read(p.File); ok && p.Line <= strings.Count(text, "\n")+1 {
				shown[p.Place()] = true
				f.Text += around(p, text)
			}
		}
	}
}

func around(place check.Finding, text string) (source string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	from := max(1, place.Line-sourceLines)
	source = "\n\n" + place.File + ":"
	for at, line := range lines[from-1 : min(len(lines), place.Line+sourceLines)] {
		mark := " "
		if from+at == place.Line {
			mark = ">"
		}
		if len(line) > maxSource {
			line = strings.ToValidUTF8(line[:maxSource], "") + "…"
		}
		source += strings.TrimRight(fmt.Sprintf("\n%s%5d  %s", mark, from+at, line), " \r")
	}
	return source
}

func placeText(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// It is empty if the tree does not have the file.
func inTree(file string, prefixes []string, has func(string) bool) string {
	for _, p := range prefixes {
		file = strings.TrimPrefix(file, p)
	}
	if isAbs(file) {
		return ""
	}
	for rest, ok := file, true; ok; _, rest, ok = strings.Cut(rest, "/") {
		if !strings.HasPrefix(rest, "../") && rest != ".." && has(rest) {
			return rest
		}
	}
	for _, source := range []string{"src/test/java/", "src/main/java/", "src/test/kotlin/", "src/main/kotlin/", "src/", "lib/", "test/", "tests/"} {
		if has(source + file) {
			return source + file
		}
	}
	return ""
}
