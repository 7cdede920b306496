package reader

import (
	"strconv"
	"strings"

	"hone/internal/lazyregexp"
)

// readGo reads what go test, go build and go vet print.
func readGo(text string, l *list) bool {
	g := &goOutput{list: l, pkg: &goPackage{}}
	lines(text, g.line)
	g.endBuild()
	g.known = g.pkg.finish(l, "", false) || g.known
	return g.known
}

// goOutput is the state between two lines of the output.
type goOutput struct {
	*list
	pkg   *goPackage
	known bool
	// block is the package of the compiler's output that is being read, and spare its
	// lines without a place.
	block string
	vet   bool // the block is of vet
	spare []string
	// open: the next deeper lines continue the last item.
	open bool
}

var (
	goError = lazyregexp.New(`^(?:vet: )?((?:[A-Za-z]:)?[^\s:][^:\n]*\.(?:go|s|c|cc|cpp|h|mod|work)):(\d{1,9})(?::(\d{1,9}))?: (\S.*)$`)
	// goTool is a line of the go command itself that is an error.
	goTool = lazyregexp.New(`^go: (?:downloading|finding|extracting|added|upgraded|downgraded|removed|found|updating|creating|to add|warning)\b`)
	ended  = lazyregexp.New(`^(FAIL|ok  |\?   |---)\t(\S+)(?:[\t ](.*))?$`)
)

func (g *goOutput) line(line string) {
	if m := ended.FindStringSubmatch(line); m != nil {
		g.endBuild()
		g.known = true
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

// build reads a line of the compiler, of vet or of the go command, and reports whether it
// is one.
func (g *goOutput) build(line string) bool {
	switch {
	case strings.HasPrefix(line, "# "):
		g.beginBuild(strings.TrimPrefix(line, "# "))
		return true
	case strings.HasPrefix(line, "=== ") || strings.Contains(line, "--- FAIL: "):
		g.endBuild()
		return false
	case g.open && line != "" && (line[0] == '\t' || line[0] == ' '):
		g.continued(line)
		return true
	}
	g.open = false
	if m := goError.FindStringSubmatch(line); m != nil && (g.block != "" || m[3] != "" && strings.HasSuffix(m[1], ".go") && g.pkg.atTop()) {
		i := item{rank: crash, file: m[1], text: m[4]}
		if (g.block == "" || g.vet) && !strings.HasPrefix(line, "vet: ") {
			// It is of vet or of another linter, which name their rules.
			i.rank, i.rule = failure, ruleIn(m[4], "")
		}
		i.line, _ = strconv.Atoi(m[2])
		g.add(i)
		g.known, g.open = true, true
		return true
	}
	if strings.HasPrefix(line, "go: ") && !goTool.MatchString(line) && g.pkg.atTop() {
		g.add(item{rank: crash, text: strings.TrimPrefix(line, "go: ")})
		g.known, g.open = true, true
		return true
	}
	if g.block != "" && line != "" {
		g.spare = append(g.spare, line)
		return true
	}
	return g.block != ""
}

func (g *goOutput) continued(line string) {
	last := &g.items[len(g.items)-1]
	if len(last.text) < maxText {
		last.text += "\n" + line
	}
}

// beginBuild starts the output for a package: "# path" or, from vet, "# [path]".
func (g *goOutput) beginBuild(header string) {
	name, _, _ := strings.Cut(strings.Trim(header, "[]"), " ")
	g.vet = strings.HasPrefix(header, "[")
	if name != g.block {
		g.endBuild()
	}
	g.block = name
}

// endBuild ends the output for a package. Lines without a place, such as those of a
// linker, are one finding.
func (g *goOutput) endBuild() {
	said := dedented(g.spare)
	if said != "" && said != "too many errors" && strings.ContainsAny(g.block, "./") {
		g.add(item{rank: crash, test: "build " + g.block, text: headed("building "+g.block+" failed", said)})
	}
	g.block, g.spare, g.open = "", nil, false
}

// goBuildItems returns what the compiler says in a text of another tool's.
func goBuildItems(text string) []item {
	g := &goOutput{list: &list{}, pkg: &goPackage{}}
	lines(text, func(line string) { g.build(line) })
	g.endBuild()
	return g.items
}
