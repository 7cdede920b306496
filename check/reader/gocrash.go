package reader

import (
	"fmt"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// goStack is the user's part of a stack, deepest call first.
type goStack []struct {
	call, file string
	line       int
}

var (
	goFrame  = lazyregexp.New(`^(?:\t| {6})(.+\.(?:go|s|c)):(\d{1,9})(?: \+0x[0-9a-f]+)?$`)
	goTestIn = lazyregexp.New(`\.((?:Test|Benchmark|Fuzz|Example)(?:[^a-z\W]\w*)?)(?:[.(\[ ]|$)`)
)

const standardLibrary = ` archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash html image index internal ` +
	`io iter log maps math mime net os panic path plugin reflect regexp runtime slices sort strconv strings structs sync syscall testing text time unicode unique unsafe weak `

// An empty line is between two stacks.
func goStacks(lines []string) (stacks []goStack) {
	var s goStack
	call := ""
	for _, line := range append(lines, "") {
		m := goFrame.FindStringSubmatch(line)
		switch {
		case line == "" && len(s) > 0:
			stacks, s = append(stacks, s), nil
		case m == nil:
			call = strings.TrimPrefix(strings.TrimSpace(line), "created by ")
		case !strings.Contains(standardLibrary, " "+call[:strings.IndexAny(call+".", "./(")]+" ") && isUserFile(m[1]) && !strings.Contains(m[1], "@v"):
			call, _, _ = strings.Cut(call, " in goroutine ")
			if i := strings.LastIndexByte(call, '('); i > 0 && strings.HasSuffix(call, ")") {
				call = call[:i]
			}
			s = append(s, goStack{{call, m[1], number(m[2])}}...)
		}
	}
	return stacks
}

// It returns the names of the tests that it reports.
func (p *goPackage) addCrash(l *list, pkg string, parents map[string]bool) map[string]bool {
	died := map[string]bool{}
	if p.crash == nil || pkg == "" && !slices.ContainsFunc(p.crash, isGoroutine) {
		return died
	}
	stacks := goStacks(p.crash)
	if strings.HasPrefix(p.crash[0], "panic: test timed out after ") {
		head, _, _ := strings.Cut(strings.TrimPrefix(p.crash[0], "panic: "), " after ")
		for _, name := range runningTests(p.crash[1:]) {
			died[name] = true
			p.addDeath(l, pkg, name, head, stackOf(stacks, name))
		}
	}
	if len(died) == 0 {
		var stack goStack
		if len(stacks) > 0 {
			stack = stacks[0]
		}
		name := p.crashedTest(stack, parents)
		died[name] = true
		p.addDeath(l, pkg, name, crashMessage(p.crash), stack)
	}
	return died
}

// name is empty if the crash is in no test.
func (p *goPackage) addDeath(l *list, pkg, name, message string, stack goStack) {
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
	for _, f := range stack[:min(len(stack), 10)] {
		body = append(body, fmt.Sprintf("    at %s (%s:%d)", f.call, f.file, f.line))
	}
	if len(stack) > 0 {
		i.file, i.line = stack[0].file, stack[0].line
	}
	i.text = headed(message, strings.Join(body, "\n"))
	l.add(i)
}

// It is empty if it is not known. A panic that a test's own goroutine recovered ends the test first. Any other one is that of
// the test that was running or that is in the stack.
func (p *goPackage) crashedTest(stack goStack, parents map[string]bool) string {
	if strings.Contains(strings.Join(p.crash[:min(20, len(p.crash))], "\n"), " [recovered") {
		for _, t := range slices.Backward(p.tests) {
			if t.result == "FAIL" && !parents[t.name] {
				return t.name
			}
		}
	}
	if p.crashed != nil && p.crashed.result == "" {
		return p.crashed.name
	}
	for _, f := range slices.Backward(stack) {
		if m := goTestIn.FindStringSubmatch(f.call); m != nil {
			return m[1]
		}
	}
	return ""
}

// Tests that were waiting for subtests are left out.
func runningTests(lines []string) (names []string) {
	parents := map[string]bool{}
	for _, line := range lines {
		name, ok := strings.CutPrefix(line, "\t\t")
		if !ok && strings.TrimSpace(line) != "running tests:" {
			break
		}
		if name, _, ok = strings.Cut(name, " ("); ok {
			names = append(names, name)
			markParents(parents, name)
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return parents[n] })
}

// A subtest's stack starts in a function inside the test's.
func stackOf(stacks []goStack, name string) goStack {
	top, _, sub := strings.Cut(name, "/")
	for _, s := range stacks {
		for _, f := range s {
			if m := goTestIn.FindStringSubmatch(f.call); m != nil && m[1] == top && sub != strings.HasSuffix(f.call, top) {
				return s
			}
		}
	}
	return nil
}

// Stacks are left out.
func crashMessage(lines []string) string {
	var message []string
	for n, line := range lines[:min(20, len(lines))] {
		if n > 0 && (line == "" || isGoroutine(line)) {
			break
		}
		line, _, _ = strings.Cut(line, " [recovered")
		if n == 0 || strings.TrimSpace(line) != message[0] {
			message = append(message, line)
		}
	}
	return strings.Join(message, "\n")
}

func isGoroutine(line string) bool {
	return strings.HasPrefix(line, "goroutine ") && strings.HasSuffix(line, ":")
}
