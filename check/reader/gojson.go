package reader

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

type goEvent struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
}

// Lines that are not events are read as those of go build.
func readGoJSON(text string, l *list) bool {
	g := &goEvents{goOutput: goOutput{list: l, pkg: &goPackage{}}, packages: map[string]*goPackage{}}
	events := false
	forEachLine(text, func(line string) {
		var e goEvent
		if strings.HasPrefix(line, `{"`) && strings.Contains(line, `"Action":`) && json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
			events = true
			g.event(e)
			return
		}
		g.build(line)
	})
	g.endBuild()
	for _, name := range g.order {
		g.finish(name, false)
	}
	return events
}

type goEvents struct {
	goOutput
	packages map[string]*goPackage
	order    []string
}

func (g *goEvents) event(e goEvent) {
	if strings.HasPrefix(e.Action, "build-") {
		if e.Action == "build-output" {
			g.build(strings.TrimSuffix(e.Output, "\n"))
		}
		return
	}
	if e.Package == "" {
		return
	}
	p := g.packages[e.Package]
	if p == nil {
		p = &goPackage{verbose: true}
		g.packages[e.Package] = p
		g.order = append(g.order, e.Package)
	}
	switch e.Action {
	case "run", "cont", "pause":
		p.test(e.Test).paused = e.Action == "pause"
	case "output":
		p.output(e)
	case "fail", "pass", "skip":
		if e.Test != "" {
			p.test(e.Test).result = strings.ToUpper(e.Action)
		} else if e.Action == "fail" {
			g.finish(e.Package, e.FailedBuild == "")
		} else {
			delete(g.packages, e.Package)
		}
	}
}

// Lines about tests are left out.
func (p *goPackage) output(e goEvent) {
	line := strings.TrimSuffix(e.Output, "\n")
	if goRun(line) != nil {
		return
	}
	if m := goResult.FindStringSubmatch(line); m != nil && m[3] == e.Test {
		p.test(e.Test).result = m[2]
		return
	}
	var t *goTest
	if e.Test != "" {
		t = p.test(e.Test)
	}
	p.put(t, line)
}

func (g *goEvents) finish(name string, failed bool) {
	p := g.packages[name]
	if p == nil {
		return
	}
	delete(g.packages, name)
	g.endBuild()
	p.out = withoutVerdict(p.out)
	p.finish(g.list, name, failed)
}

func withoutVerdict(out []string) []string {
	var kept []string
	for _, line := range out {
		if ended.FindStringSubmatch(line) == nil {
			kept = append(kept, line)
		}
	}
	return kept
}

// It has for each package, for each analyzer, what it found.
func readVetJSON(text string, l *list) bool {
	if !strings.Contains(text, `"posn"`) {
		return false
	}
	known := false
	forEachDocument(text, func(d *json.Decoder) bool {
		var packages map[string]map[string]json.RawMessage
		if d.Decode(&packages) != nil {
			return false
		}
		for _, pkg := range slices.Sorted(maps.Keys(packages)) {
			for _, rule := range slices.Sorted(maps.Keys(packages[pkg])) {
				var found []struct{ Posn, Message string }
				if json.Unmarshal(packages[pkg][rule], &found) != nil {
					continue // an analyzer that failed has an object
				}
				known = true
				for _, f := range found {
					if m := vetPlace.FindStringSubmatch(f.Posn); m != nil {
						l.add(item{rank: failure, rule: rule, file: m[1], line: number(m[2]), text: withRule(f.Message, rule)})
					}
				}
			}
		}
		return true
	})
	return known
}

var vetPlace = lazyregexp.New(`^(.+?):(\d{1,9})(?::\d{1,9})?$`)
