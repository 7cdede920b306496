package reader

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// gotestsum's output is read too.
func readGo(text string, l *list) {
	g := newGoOutput(l)
	forEachLine(text, g.line)
	g.endPackage(false)
}

type goOutput struct {
	*list
	pkg  *goPackage
	name string // of the package, where its last line does not say it
	// block is the package of the compiler's output that is being read, and spare its
	// lines without a place.
	block   string
	vet     bool // the block is from vet
	spare   []string
	open    bool // the next lines, if indented, continue the last item
	summary bool // gotestsum's summary is being read
}

func newGoOutput(l *list) *goOutput { return &goOutput{list: l, pkg: &goPackage{}} }

var (
	goError = lazyregexp.New(`^(?:vet: )?(?P<file>(?:[A-Za-z]:)?[^\s:][^:\n]*\.(?:go|s|c|cc|cpp|h|mod|work)):(?P<line>\d{1,9})(?::(\d{1,9}))?: (?P<text>\S.*)$`)
	// goHeader precedes the compiler's messages about a package.
	goHeader = lazyregexp.New(`^# (?:\[[\w.~@/-]+\]|[\w.~@/-]+(?: \[[\w.~@/-]+\])?)$`)
	// goNotice is a message of the go command that is not an error.
	goNotice  = lazyregexp.New(`^(?:downloading|finding|extracting|added|upgraded|downgraded|removed|found|updating|creating|to add|warning)\b`)
	goSummary = lazyregexp.New(`^=== FAIL: (\S+) (\S*) \(\d+\.\d+s\)$`)
	goEnded   = lazyregexp.New(`^(FAIL|ok  |\?   )\t(\S+)(?:[\t ](.*))?\s*$`)
)

func (g *goOutput) line(line string) {
	if strings.HasPrefix(line, "=== ") && g.readSummary(line) {
		return
	}
	if m := goEnded.FindStringSubmatch(line); m != nil {
		if !g.summary {
			g.name = m[2]
		}
		g.endPackage(m[1] == "FAIL" && !strings.HasPrefix(m[3], "[build failed]") && !strings.HasPrefix(m[3], "[setup failed]"))
		return
	}
	if !g.build(line) {
		g.pkg.line(line)
	}
}

func (g *goOutput) endPackage(failed bool) {
	g.endBuild()
	g.pkg.finish(g.list, g.name, failed)
	if g.pkg = (&goPackage{}); !g.summary {
		g.name = ""
	}
}

// It reports whether the line starts a part of the summary, which has all failures, whatever was printed before.
func (g *goOutput) readSummary(line string) bool {
	m := goSummary.FindStringSubmatch(line)
	switch {
	case line == "=== Failed":
		g.items = slices.DeleteFunc(g.items, func(i item) bool { return i.test != "" })
		g.summary, g.pkg = true, &goPackage{}
	case !g.summary:
		return false
	case line == "=== Errors":
		g.endPackage(false)
		g.block = "errors"
	case m != nil:
		if m[1] != g.name || g.pkg.crash != nil {
			g.endPackage(false)
			g.name, g.pkg.verbose = m[1], true
		}
		if g.pkg.current = nil; m[2] != "" {
			g.pkg.current = g.pkg.test(m[2])
			g.pkg.current.result = "FAIL"
		}
	default:
		return strings.HasPrefix(line, "=== RUN") // which is ignored; what the test printed is read as usual
	}
	return true
}

// It reports whether the line is of the compiler, of vet or of the go command.
func (g *goOutput) build(line string) bool {
	switch {
	case goHeader.MatchString(line) && g.pkg.atTop():
		header := strings.TrimPrefix(line, "# ") // a path or, from vet, [path]
		name, _, _ := strings.Cut(strings.Trim(header, "[]"), " ")
		g.vet = strings.HasPrefix(header, "[")
		if name != g.block {
			g.endBuild()
		}
		g.block = name
		return true
	case strings.HasPrefix(line, "=== ") || strings.Contains(line, "--- FAIL: ") || strings.HasPrefix(line, "signal: "):
		g.endBuild()
		return false
	case g.open && (line == "" || line[0] == '\t' || line[0] == ' '):
		if line != "" {
			g.more(line)
		}
		return g.block != "" || line != ""
	}
	if g.open = g.message(line); !g.open && g.block != "" && line != "" {
		g.spare = append(g.spare, line)
	}
	return g.open
}

// The line is an error of the compiler, of vet, or of the go command itself.
func (g *goOutput) message(line string) bool {
	said, command := strings.CutPrefix(line, "go: ")
	i, placed := matched(goError, line)
	switch {
	case placed && (g.block != "" || goError.FindStringSubmatch(line)[3] != "" && path.Ext(i.file) == ".go" && g.pkg.atTop()):
		if i.rank = crash; (g.block == "" || g.vet) && !strings.HasPrefix(line, "vet: ") {
			// The line is from vet or another linter: these name their rules.
			i.rank, i.rule = failure, ruleIn(i.text, "")
		}
	case !g.pkg.atTop():
		return false
	case placed && (path.Base(i.file) == "go.mod" || path.Base(i.file) == "go.work"):
		i.rank = crash
		if n := len(g.items); n > 0 && strings.HasSuffix(g.items[n-1].text, "errors parsing "+path.Base(i.file)+":") {
			g.items = g.items[:n-1]
		}
	case command && !goNotice.MatchString(said):
		i = item{rank: crash, text: said}
	default:
		return false
	}
	g.add(i)
	return true
}

// Lines without a place, such as those of a linker, are one finding.
func (g *goOutput) endBuild() {
	said := dedent(g.spare)
	if said != "" && said != "too many errors" && strings.ContainsAny(g.block, "./") {
		g.add(item{rank: crash, test: "build " + g.block, text: headed("building "+g.block+" failed", said)})
	}
	g.block, g.spare, g.open = "", nil, false
}

// A message without a place may be what the compiler printed.
func (l *list) addCompiled(i item, message string) {
	g := newGoOutput(&list{})
	if i.file == "" {
		forEachLine(message, func(line string) { g.build(line) })
		g.endBuild()
	}
	if len(g.items) == 0 {
		g.add(i)
	}
	l.add(g.items...)
}

// Of each package, the events have what go test -v prints, and what go build does. So have lines that are not events.
func readGoJSON(text string, l *list) {
	if !strings.Contains(text, `"Action":`) {
		return
	}
	printed, order := map[string]*strings.Builder{"": {}}, []string{""} // what is of no package comes first
	forEachLine(text, func(line string) {
		var e struct{ Action, Package, Output string }
		switch {
		case !strings.HasPrefix(line, `{"`) || !strings.Contains(line, `"Action":`) || json.Unmarshal([]byte(line), &e) != nil:
			e.Package, e.Output = "", line+"\n"
		case e.Action != "output" && e.Action != "build-output":
			return
		}
		if printed[e.Package] == nil {
			printed[e.Package] = &strings.Builder{}
			order = append(order, e.Package)
		}
		printed[e.Package].WriteString(e.Output)
	})
	for _, name := range order {
		g := newGoOutput(l)
		g.name = name
		forEachLine(printed[name].String(), g.line)
		g.endPackage(false)
	}
}
