package reader

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hone/internal/lazyregexp"
)

// It returns the names of the tests that it reports.
func (p *goPackage) addCrash(l *list, pkg string, parents map[string]bool) map[string]bool {
	if p.crash == nil || pkg == "" && !slices.ContainsFunc(p.crash, isGoroutine) {
		return nil
	}
	stacks := goroutines(p.crash)
	died := map[string]bool{}
	if running := runningTests(p.crash); running != nil {
		head, _, _ := strings.Cut(strings.TrimPrefix(p.crash[0], "panic: "), " after ")
		of := framesOf(stacks)
		for _, name := range running {
			died[name] = true
			top, _, sub := strings.Cut(name, "/")
			if sub {
				top += "/"
			}
			p.addDeath(l, pkg, name, head, of[top])
		}
		return died
	}
	name := p.crashedTest(stacks, parents)
	died[name] = true
	var frames []frame
	for _, s := range stacks {
		if frames = s; len(frames) > 0 {
			break
		}
	}
	p.addDeath(l, pkg, name, crashMessage(p.crash, " [recovered"), frames)
	return died
}

// name is empty if the crash is in no test.
func (p *goPackage) addDeath(l *list, pkg, name, message string, frames []frame) {
	i := item{rank: crash, test: goName(pkg, name)}
	switch {
	case name != "":
		message = name + ": " + message
	case pkg != "":
		i.test = pkg + ": " + firstLine(stableText(message))
	default:
		i.test, i.rule = "", "crash"
	}
	var body []string
	if t := p.byName[name]; t != nil {
		body = append(body, dedent(t.out))
	}
	for n, f := range frames {
		if n == 10 {
			break
		}
		body = append(body, fmt.Sprintf("    at %s (%s:%d)", f.call, f.file, f.line))
	}
	if len(frames) > 0 {
		i.file, i.line = frames[0].file, frames[0].line
	}
	i.text = headed(message, strings.Join(body, "\n"))
	l.add(i)
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

var goTestIn = lazyregexp.New(`\.((?:Test|Benchmark|Fuzz|Example)(?:[^a-z\W]\w*)?)(?:[.(\[ ]|$)`)

// It is empty if it is not known. A panic that a test's own goroutine recovered ends the test first. Any other one is that of
// the test that was running or that is in the stack.
func (p *goPackage) crashedTest(stacks [][]frame, parents map[string]bool) string {
	if strings.Contains(crashMessage(p.crash, ""), " [recovered") {
		for _, t := range slices.Backward(p.tests) {
			if t.result == "FAIL" && !parents[t.name] {
				return t.name
			}
		}
	}
	if p.crashed != nil && p.crashed.result == "" {
		return p.crashed.name
	}
	for _, s := range stacks {
		for _, f := range slices.Backward(s) {
			if m := goTestIn.FindStringSubmatch(f.call); m != nil {
				return m[1]
			}
		}
		if len(s) > 0 {
			break
		}
	}
	return ""
}

// Tests that were waiting for subtests are left out; nil if the crash is not a timeout.
func runningTests(lines []string) (names []string) {
	if !strings.HasPrefix(lines[0], "panic: test timed out after ") {
		return nil
	}
	parents := map[string]bool{}
	for _, line := range lines[1:] {
		name, ok := strings.CutPrefix(line, "\t\t")
		switch {
		case ok:
			name, _, _ = strings.Cut(name, " (")
			names = append(names, name)
			markParents(parents, name)
		case strings.TrimSpace(line) != "running tests:":
			return slices.DeleteFunc(names, func(n string) bool { return parents[n] })
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return parents[n] })
}

// Stacks are left out, and the end of lines from the mark on.
func crashMessage(lines []string, mark string) string {
	var message []string
	for n, line := range lines {
		if n > 0 && (line == "" || isGoroutine(line)) || n == 20 {
			break
		}
		if i := strings.Index(line, mark); i > 0 {
			line = line[:i]
		}
		if n == 0 || strings.TrimSpace(line) != message[0] {
			message = append(message, line)
		}
	}
	return strings.Join(message, "\n")
}

type frame struct {
	call string
	file string
	line int
}

func isGoroutine(line string) bool {
	return strings.HasPrefix(line, "goroutine ") && strings.HasSuffix(line, ":")
}

var goFrame = lazyregexp.New(`^\t(.+\.(?:go|s|c)):(\d{1,9})(?: \+0x[0-9a-f]+)?$`)

// They are the user's, deepest first.
func goroutines(lines []string) (stacks [][]frame) {
	root := ""
	call := ""
	for _, line := range lines {
		if isGoroutine(line) {
			stacks = append(stacks, nil)
			continue
		}
		m := goFrame.FindStringSubmatch(line)
		if m == nil || len(stacks) == 0 {
			call = line
			continue
		}
		root = goRoot(root, call, m[1])
		if isUserFrame(root, m[1]) {
			n, _ := strconv.Atoi(m[2])
			last := len(stacks) - 1
			stacks[last] = append(stacks[last], frame{withoutArguments(call), m[1], n})
		}
	}
	return stacks
}

// Calls of the runtime and of testing reveal the directory of the standard library's sources.
func goRoot(root, call, file string) string {
	for _, name := range []string{"/src/runtime/", "/src/testing/"} {
		if i := strings.LastIndex(file, name); i >= 0 && root == "" && (strings.Contains(call, "runtime.") || strings.Contains(call, "testing.") || strings.HasPrefix(call, "panic(")) {
			return file[:i] + "/src/"
		}
	}
	return root
}

// Files of the standard library and of other modules are not the user's.
func isUserFrame(root, file string) bool {
	switch {
	case root != "" && strings.HasPrefix(file, root), strings.Contains(file, "/pkg/mod/"), strings.Contains(file, "/vendor/"), strings.HasPrefix(file, "_"):
		return false
	case isAbs(file):
		return !strings.Contains(file, "/go/src/runtime/") && !strings.Contains(file, "/go/src/testing/")
	}
	// With -trimpath files are named by import path, those of modules with a version.
	first, _, _ := strings.Cut(file, "/")
	return !strings.Contains(file, "@v") && !slices.Contains(strings.Fields(standardLibrary), first)
}

const standardLibrary = `archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar
	flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp runtime slices
	sort strconv strings structs sync syscall testing text time unicode unique unsafe weak`

func withoutArguments(call string) string {
	call = strings.TrimPrefix(call, "created by ")
	call, _, _ = strings.Cut(call, " in goroutine ")
	if strings.HasSuffix(call, ")") {
		if i := strings.LastIndexByte(call, '('); i > 0 {
			return call[:i]
		}
	}
	return call
}

// It is the first stack that calls the function of a test, and under its name with "/" the first that calls a function in it,
// as subtests are.
func framesOf(stacks [][]frame) map[string][]frame {
	of := map[string][]frame{}
	for _, s := range stacks {
		for _, f := range s {
			m := goTestIn.FindStringSubmatch(f.call)
			if m == nil {
				continue
			}
			name := m[1]
			if !strings.HasSuffix(f.call, name) {
				name += "/"
			}
			if of[name] == nil {
				of[name] = s
			}
		}
	}
	return of
}
