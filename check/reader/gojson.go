package reader

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// Lines that are not events are those of go build.
func readGoJSON(text string, l *list) {
	if !strings.Contains(text, `"Action":`) {
		return
	}
	g, packages := newGoOutput(l), map[string]*goPackage{}
	var order []string
	begun := map[[2]string]string{} // what tests printed of a line
	forEachLine(text, func(line string) {
		var e goEvent
		if !strings.HasPrefix(line, `{"`) || !strings.Contains(line, `"Action":`) || json.Unmarshal([]byte(line), &e) != nil {
			g.build(line)
			return
		}
		p := packages[e.Package]
		if p == nil {
			p = &goPackage{verbose: true}
			packages[e.Package], order = p, append(order, e.Package)
		}
		var t *goTest
		if e.Test != "" {
			t = p.test(e.Test)
		}
		switch {
		case e.Action == "build-output":
			g.build(strings.TrimSuffix(e.Output, "\n"))
		case e.Action == "output":
			key := [2]string{e.Package, e.Test}
			printed, ended := strings.CutSuffix(begun[key]+e.Output, "\n")
			if begun[key] = printed; ended {
				delete(begun, key)
				p.print(t, printed)
			}
		case t != nil && (e.Action == "pause" || e.Action == "cont"):
			t.paused = e.Action == "pause"
		case e.Action != "fail" && e.Action != "pass" && e.Action != "skip":
		case t != nil:
			t.result = strings.ToUpper(e.Action)
		default:
			g.endBuild()
			p.finish(l, e.Package, e.Action == "fail" && e.FailedBuild == "")
			packages[e.Package] = &goPackage{verbose: true}
		}
	})
	g.endBuild()
	for _, name := range order {
		packages[name].finish(l, name, false)
	}
}

type goEvent struct{ Action, Package, Test, Output, FailedBuild string }

// What go test prints around what a test did is left out.
func (p *goPackage) print(t *goTest, line string) {
	if !goRuns.MatchString(line) && !goResult.MatchString(line) && !goEnded.MatchString(line) {
		p.put(t, line)
	}
}

var vetPlace = lazyregexp.New(`^(?P<file>.+?):(?P<line>\d{1,9})(?::\d{1,9})?$`)

// go vet -json has for each package, for each analyzer, what it found.
func readVetJSON(text string, l *list) {
	if !strings.Contains(text, `"posn"`) {
		return
	}
	forEachValue(text, nil, func(packages map[string]map[string]json.RawMessage) {
		for _, pkg := range slices.Sorted(maps.Keys(packages)) {
			for _, rule := range slices.Sorted(maps.Keys(packages[pkg])) {
				var found []struct{ Posn, Message string }
				if json.Unmarshal(packages[pkg][rule], &found) != nil {
					continue // an analyzer that failed has an object
				}
				for _, f := range found {
					if i, ok := matched(vetPlace, f.Posn); ok {
						i.rule, i.text = rule, withRule(f.Message, rule)
						l.add(i)
					}
				}
			}
		}
	})
}
