package reader

import (
	"path"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// gotestsum's output and the JSON of go vet are read too.
func readGo(text string, l *list) bool {
	g := &goOutput{list: l, pkg: &goPackage{}}
	forEachLine(text, g.line)
	g.endBuild()
	g.known = g.pkg.finish(l, g.name, false) || g.known
	return readVetJSON(text, l) || g.known
}

type goOutput struct {
	*list
	pkg   *goPackage
	known bool
	// block is the package of the compiler's output that is being read, and spare its
	// lines without a place.
	block string
	vet   bool // the block is from vet
	spare []string
	// open means that the next lines, if indented, continue the last item.
	open bool
	// summary says that gotestsum's summary is being read, and name is the package
	// there, relative to the module.
	summary bool
	name    string
}

var (
	goError = lazyregexp.New(`^(?:vet: )?((?:[A-Za-z]:)?[^\s:][^:\n]*\.(?:go|s|c|cc|cpp|h|mod|work)):(\d{1,9})(?::(\d{1,9}))?: (\S.*)$`)
	// goHeader precedes the compiler's messages about a package.
	goHeader = lazyregexp.New(`^# (?:\[[\w.~@/-]+\]|[\w.~@/-]+(?: \[[\w.~@/-]+\])?)$`)
	// goNotice is a message of the go command that is not an error.
	goNotice  = lazyregexp.New(`^(?:downloading|finding|extracting|added|upgraded|downgraded|removed|found|updating|creating|to add|warning)\b`)
	goMod     = lazyregexp.New(`^((?:[A-Za-z]:)?[^\s:]*go\.(?:mod|work)):(\d{1,9}): (\S.*)$`)
	goSummary = lazyregexp.New(`^=== FAIL: (\S+) (\S*) \(\d+\.\d+s\)$`)
	ended     = lazyregexp.New(`^(FAIL|ok  |\?   )\t(\S+)(?:[\t ](.*))?$`)
)

func (g *goOutput) line(line string) {
	if strings.HasPrefix(line, "=== ") && g.readSummary(line) {
		return
	}
	if m := ended.FindStringSubmatch(line); m != nil {
		g.endBuild()
		g.known = true
		if g.summary {
			m[2] = g.name
		}
		g.pkg.finish(g.list, m[2], m[1] == "FAIL" && !strings.HasPrefix(m[3], "[build failed]") && !strings.HasPrefix(m[3], "[setup failed]"))
		g.pkg = &goPackage{}
		return
	}
	if g.build(line) {
		return
	}
	if g.pkg.line(line) {
		g.known = true
	}
}

// It reports whether the line starts a part of the summary, which has all failures, whatever was printed before.
func (g *goOutput) readSummary(line string) bool {
	m := goSummary.FindStringSubmatch(line)
	switch {
	case line == "=== Failed":
		g.items = slices.DeleteFunc(g.items, func(i item) bool { return i.test != "" })
		g.known, g.summary, g.pkg = true, true, &goPackage{}
	case !g.summary:
		return false
	case line == "=== Errors":
		g.pkg.finish(g.list, g.name, false)
		g.pkg, g.block = &goPackage{}, "errors"
	case m != nil:
		if m[1] != g.name || g.pkg.crash != nil {
			g.pkg.finish(g.list, g.name, false)
			g.name, g.pkg = m[1], &goPackage{verbose: true}
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
		g.beginBuild(strings.TrimPrefix(line, "# "))
		return true
	case strings.HasPrefix(line, "=== ") || strings.Contains(line, "--- FAIL: "):
		g.endBuild()
		return false
	case g.open && (line == "" || line[0] == '\t' || line[0] == ' '):
		if line != "" {
			g.more(line)
		}
		return g.block != "" || line != ""
	}
	g.open = false
	if g.compiler(line) || g.command(line) {
		g.known = true
		return true
	}
	if g.block != "" && line != "" {
		g.spare = append(g.spare, line)
	}
	return false
}

func (g *goOutput) compiler(line string) bool {
	m := goError.FindStringSubmatch(line)
	if m == nil || g.block == "" && (m[3] == "" || !strings.HasSuffix(m[1], ".go") || !g.pkg.atTop()) {
		return false
	}
	i := item{rank: crash, file: m[1], line: number(m[2]), text: m[4]}
	if (g.block == "" || g.vet) && !strings.HasPrefix(line, "vet: ") {
		// The line is from vet or another linter: these name their rules.
		i.rank, i.rule = failure, ruleIn(m[4], "")
	}
	g.add(i)
	g.open = true
	return true
}

// The go command itself prints these errors.
func (g *goOutput) command(line string) bool {
	if !g.pkg.atTop() {
		return false
	}
	if m := goMod.FindStringSubmatch(line); m != nil {
		i := item{rank: crash, file: m[1], line: number(m[2]), text: m[3]}
		if n := len(g.items); n > 0 && strings.HasSuffix(g.items[n-1].text, "errors parsing "+path.Base(i.file)+":") {
			g.items = g.items[:n-1]
		}
		g.add(i)
		return true
	}
	said, ok := strings.CutPrefix(line, "go: ")
	if !ok || goNotice.MatchString(said) {
		return false
	}
	g.add(item{rank: crash, text: said})
	g.open = true
	return true
}

// header is "# path" or, from vet, "# [path]".
func (g *goOutput) beginBuild(header string) {
	name, _, _ := strings.Cut(strings.Trim(header, "[]"), " ")
	g.vet = strings.HasPrefix(header, "[")
	if name != g.block {
		g.endBuild()
	}
	g.block = name
}

// Lines without a place, such as those of a linker, are one finding.
func (g *goOutput) endBuild() {
	said := dedent(g.spare)
	if said != "" && said != "too many errors" && strings.ContainsAny(g.block, "./") {
		g.add(item{rank: crash, test: "build " + g.block, text: headed("building "+g.block+" failed", said)})
	}
	g.block, g.spare, g.open = "", nil, false
}

// The output is that of another tool.
func goBuildItems(text string) []item {
	g := &goOutput{list: &list{}, pkg: &goPackage{}}
	forEachLine(text, func(line string) { g.build(line) })
	g.endBuild()
	return g.items
}
