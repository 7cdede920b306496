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

var (
	pyFrame     = lazyregexp.New(`^(?:E\s)?[\s|]*File "(?P<file>[^"\n]+)", line (?P<line>\d{1,9})`)
	pytestFrame = lazyregexp.New(`^(?:[A-Za-z]:)?(?P<file>[^\s:][^:\n]*\.py):(?P<line>\d{1,9}):(?: |$)`)
	jsFrame     = lazyregexp.New(`(?:^|[\s(])(?:file://)?(?P<file>[^\s()]+\.(?:[cm]?[jt]sx?|vue|svelte)):(?P<line>\d{1,9}):\d{1,9}\)?,?$`)
	javaFrame   = lazyregexp.New(`^\s*at (?:[\w.@-]*/)*(?P<text>[\w$.]+)\.[\w$<>]+\((?P<file>\w+\.(?:java|kt|scala|groovy)):(?P<line>\d{1,9})\)`)
	rustPanic   = lazyregexp.New(`panicked at (?:'.*', )?(?P<file>[^\s:'][^:\n]*\.rs):(?P<line>\d{1,9}):\d{1,9}`)
	perlPlace   = lazyregexp.New(`\b(?:at|file) (?P<file>\S+?),? line (?P<line>\d{1,9})\b`)
	anyPlace    = lazyregexp.New(`(?:^|[\s('"\[])(?P<file>(?:[A-Za-z]:[\\/]|\.{0,2}/)?[\w@~+][\w@~+./\\-]*\.[A-Za-z]\w{0,9}):(?P<line>\d{1,9})\b`)
)

// placed are lines with a place, by how sure they are. Python's stacks end with the failure, others start with it.
func placed() [3][]*lazyregexp.Regexp {
	return [3][]*lazyregexp.Regexp{{pyFrame, pytestFrame}, {jsFrame, javaFrame, rustPanic}, {perlPlace, anyPlace}}
}

// The file is empty if there is none.
func locate(text string) (file string, line int) {
	var at [3]item
	forEachLine(text, func(l string) {
		if len(l) > 4<<10 {
			return
		}
		for kind, expressions := range placed() {
			if kind > 0 && at[kind].file != "" || kind == 2 && at[0].file+at[1].file != "" {
				continue
			}
			for _, re := range expressions {
				i, ok := matched(re, l)
				if class := i.text; ok && class != "" {
					ok = isUserClass(class)
					i.file = strings.TrimPrefix(strings.ReplaceAll(class[:strings.LastIndexByte("."+class, '.')], ".", "/")+"/"+i.file, "/")
				}
				if ok && isUserFile(i.file) {
					at[kind] = i
					break
				}
			}
		}
	})
	for _, i := range at {
		if i.file != "" {
			return i.file, i.line
		}
	}
	return "", 0
}

// foreignFrame is a frame of a runtime or an installed package in a JavaScript stack.
var foreignFrame = lazyregexp.New(`^\s*at (?:.*[ (])?(?:node:|internal/|<anonymous>\)|\S*/node_modules/|async Promise\.all)`)

// Runtimes and installed packages are foreign.
func withoutForeign(text string) string {
	if !strings.Contains(text, " at ") && !strings.Contains(text, "\tat ") {
		return text
	}
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		i, ok := matched(javaFrame, l)
		return ok && !isUserClass(i.text) || foreignFrame.MatchString(l)
	}), "\n")
}

func isUserFile(file string) bool {
	file = strings.ReplaceAll(file, `\`, "/")
	if strings.HasPrefix(file, "<") || strings.HasPrefix(file, "node:") || strings.HasPrefix(file, "internal/") {
		return false
	}
	for _, dir := range []string{"/node_modules/", "/site-packages/", "/dist-packages/", "/lib/python", "/pkg/mod/", "/vendor/", "/.cargo/", "/rustc/", "/.rustup/", "/gems/", "/libsanitizer/", "/compiler-rt/", "/sysdeps/", "/csu/", "/usr/include/"} {
		if strings.Contains("/"+file, dir) {
			return false
		}
	}
	return true
}

func isUserClass(class string) bool {
	for _, p := range []string{"java.", "javax.", "jdk.", "sun.", "com.sun.", "kotlin.", "scala.", "groovy.", "org.junit.", "junit.", "org.testng.", "org.gradle.", "org.apache.maven.", "org.assertj.", "org.hamcrest.", "org.mockito.", "org.opentest4j.", "org.codehaus.groovy.", "org.spockframework.", "worker.org.gradle."} {
		if strings.HasPrefix(class, p) {
			return false
		}
	}
	return true
}
