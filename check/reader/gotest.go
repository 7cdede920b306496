package reader

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// goPackage is what the tests of one package printed.
type goPackage struct {
	tests   []*goTest
	byName  map[string]*goTest
	out     []string // lines of no test
	current *goTest  // the test whose output follows
	verbose bool     // the output says which test runs
	// crash is the output from where the process died, and crashed the test that was
	// running by then, or nil.
	crash   []string
	crashed *goTest
}

type goTest struct {
	name   string
	out    []string
	result string // FAIL, PASS or SKIP; empty as long as the test runs
	paused bool   // it waits for tests that are not parallel
}

func (p *goPackage) test(name string) *goTest {
	t := p.byName[name]
	if t == nil {
		t = &goTest{name: name}
		if p.byName == nil {
			p.byName = map[string]*goTest{}
		}
		p.byName[name] = t
		p.tests = append(p.tests, t)
	}
	return t
}

// No test is running, as far as the output tells.
func (p *goPackage) atTop() bool {
	return p.crash == nil && (p.current == nil || p.current.result != "")
}

var (
	goRuns   = lazyregexp.New(`^(|.*?)=== (RUN|CONT|NAME|PAUSE|ATTR|ARTIFACTS) +([A-Z]\S*|$)`)
	goResult = lazyregexp.New(`^(.*?)--- (FAIL|PASS|SKIP): (\S+) \(\d+\.\d+(?:s| seconds)\)$`)
	goDies   = lazyregexp.New(`^(?:panic: |fatal error: |SIG[A-Z]+: |unexpected fault address|runtime: goroutine stack exceeds)`)
)

// What is before the words of go test, the test printed without a line end.
func (p *goPackage) line(line string) {
	var run, result []string
	if strings.Contains(line, "=== ") {
		run = goRuns.FindStringSubmatch(line)
	} else if strings.Contains(line, "--- ") {
		result = goResult.FindStringSubmatch(line)
	}
	if run == nil && result == nil {
		p.put(p.current, line)
		return
	}
	if before := strings.TrimRight(append(run, result...)[1], " "); before != "" {
		p.put(p.current, before)
	}
	p.crash = nil
	switch {
	case result != nil:
		p.current = p.test(result[3])
		p.current.result = result[2]
		return
	case run[3] == "": // no test
		p.current = nil
	case run[2] == "PAUSE":
		p.test(run[3]).paused = true
	case run[2] == "RUN" || run[2] == "CONT" || run[2] == "NAME":
		p.current = p.test(run[3])
		p.current.paused = false
	}
	p.verbose = true
}

// A nil t means no test.
func (p *goPackage) put(t *goTest, line string) {
	switch {
	case p.crash != nil:
		p.crash = append(p.crash, line)
	case line != "" && strings.IndexByte("pfSur", line[0]) >= 0 && goDies.MatchString(line):
		p.crash, p.crashed = []string{line}, t
	case strings.TrimSpace(line) == "" && t == nil, line == "FAIL", line == "PASS", strings.HasPrefix(line, "exit status "), strings.HasPrefix(line, "coverage: "):
	case t != nil && (t.result == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(t.name, "Example")):
		t.out = append(t.out, line) // what tests log follows their result, but what they print is before
	default:
		p.out = append(p.out, line)
	}
}

// failed means that the package failed, whether or not a test did.
func (p *goPackage) finish(l *list, name string, failed bool) {
	parents := map[string]bool{}
	for _, t := range p.tests {
		if t.result == "FAIL" {
			markParents(parents, t.name)
		}
	}
	before := len(l.items)
	died := p.addCrash(l, name, parents)
	for _, t := range p.tests {
		if t.result == "FAIL" && !parents[t.name] && !died[t.name] {
			l.add(p.failure(t, name))
		}
	}
	if p.crash == nil && p.verbose {
		p.addInterrupted(l, name)
	}
	if failed && len(l.items) == before {
		l.add(p.endedItem(name))
	}
}

// Tests that were waiting for subtests are left out.
func (p *goPackage) addInterrupted(l *list, pkg string) {
	waiting := map[string]bool{}
	for _, t := range p.tests {
		if t.result == "" {
			markParents(waiting, t.name)
		}
	}
	for _, t := range p.tests {
		if t.result == "" && !t.paused && !waiting[t.name] {
			l.addInterrupted(goName(pkg, t.name), t.name, t.out)
		}
	}
}

// The package failed without a failed test: its process ended before the tests did, or could not start them.
func (p *goPackage) endedItem(name string) item {
	i, who, out := item{rank: failure, test: name}, "the test program of "+name, p.out
	if p.verbose {
		for _, t := range slices.Backward(p.tests) {
			if t.result == "" {
				i, who, out = item{rank: crash, test: goName(name, t.name)}, t.name, t.out
				break
			}
		}
	}
	how := "exited before its end:"
	for _, line := range out {
		if signal, ok := strings.CutPrefix(line, "signal: "); ok {
			i.rank, how = crash, "crashed (signal: "+signal+")"
		}
	}
	i.text = headed(who+" "+how, dedent(slices.DeleteFunc(slices.Clone(out), func(line string) bool { return strings.HasPrefix(line, "signal: ") })))
	return i
}

// No tests are deeper than the limit.
func markParents(parents map[string]bool, name string) {
	for range 64 {
		i := strings.LastIndexByte(name, '/')
		if i < 0 || parents[name[:i]] {
			return
		}
		name = name[:i]
		parents[name] = true
	}
}

var (
	// goLogged is a line that a test logged, with its place.
	goLogged = lazyregexp.New(`^\s*((?:[A-Za-z]:)?[^\s:]*\.go):(\d{1,9}): ?(.*)$`)
	// testifyError and testifyMessage are what an assertion of testify says, and testifyNoise what the finding has.
	testifyError   = lazyregexp.New(`(?m)^\s*Error:\s+(\S.*?)\s*$`)
	testifyMessage = lazyregexp.New(`(?m)^\s*Messages:\s+(\S.*?)\s*$`)
	testifyNoise   = lazyregexp.New(`(?m)^(?:\S*\.go:\d+:\s*|\s*(?:Error Trace|Error|Messages|Test):\s.*)$\n?`)
)

// Its place is that of the last line that the test logged, because earlier ones are more often progress than the failure; and
// its first line is the first that the test logged there, as for the first of the rows of a table that fail.
func (t *goTest) item(pkg string) item {
	i := item{rank: failure, test: goName(pkg, t.name)}
	said, last := "", 0
	for n, line := range slices.Backward(t.out) {
		m := goLogged.FindStringSubmatch(line)
		if m == nil || m[1] == "testing.go" || i.file != "" && (goFile(pkg, m[1]) != i.file || number(m[2]) != i.line) {
			continue
		}
		i.file, said, last = goFile(pkg, m[1]), m[3], n
		i.line = number(m[2])
	}
	rest := t.out
	if said != "" && (last == 0 || last == len(rest)-1) { // between other lines it belongs to what follows
		rest = slices.Delete(slices.Clone(rest), last, last+1)
	}
	body := dedent(rest)
	if m := testifyError.FindStringSubmatch(body); said == "" && m != nil {
		if said = m[1]; testifyMessage.MatchString(body) {
			said = testifyMessage.FindStringSubmatch(body)[1] + ": " + said
		}
		body = testifyNoise.ReplaceAllString(body, "")
	}
	switch {
	case said == "" && body == "":
		i.text = t.name + " failed"
	case said == "":
		i.text = headed(t.name+" failed", body)
	default:
		i.text = headed(t.name+": "+said, body)
	}
	return i
}

// A data race has its place in the report, which is in the output of the test or of none.
func (p *goPackage) failure(t *goTest, pkg string) item {
	i := t.item(pkg)
	if i.file != "" || !strings.Contains(i.text, "race detected during execution of test") {
		return i
	}
	out := slices.Concat(t.out, p.out)
	if at := slices.Index(out, "WARNING: DATA RACE"); at >= 0 {
		out = out[at+1:]
		if end := slices.IndexFunc(out, func(line string) bool { return strings.HasPrefix(line, "======") }); end >= 0 {
			out = out[:end]
		}
		if stacks := goStacks(out); len(stacks) > 0 {
			i.file, i.line = stacks[0][0].file, stacks[0][0].line
			i.text = headed(t.name+": data race", dedent(out))
		}
	}
	return i
}

func goName(pkg, test string) string {
	if pkg == "" {
		return test
	}
	return pkg + "." + test
}

// Go prints only the base name.
func goFile(pkg, file string) string {
	if pkg == "" || strings.ContainsAny(file, `/\`) {
		return file
	}
	return path.Join(strings.TrimSuffix(pkg, "_test"), file)
}

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
