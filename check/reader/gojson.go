package reader

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// Events become the lines that go test -v prints, package by package. Lines that are not events are those of go build.
func readGoJSON(text string, l *list) bool {
	g, packages, events := newGoOutput(l), map[string]*goPrinted{}, false
	var order []string
	forEachLine(text, func(line string) {
		var e goEvent
		if !strings.HasPrefix(line, `{"`) || !strings.Contains(line, `"Action":`) || json.Unmarshal([]byte(line), &e) != nil {
			g.build(line)
			return
		}
		events = true
		switch {
		case e.Action == "build-output":
			g.build(strings.TrimSuffix(e.Output, "\n"))
		case e.Package != "" && packages[e.Package] == nil:
			packages[e.Package] = &goPrinted{}
			order = append(order, e.Package)
			fallthrough
		case e.Package != "":
			if packages[e.Package].add(e) {
				g.endBuild()
				g.lines(packages[e.Package].String())
				packages[e.Package] = &goPrinted{}
			}
		}
	})
	for _, name := range order {
		g.name = name
		g.lines(packages[name].String())
		g.endPackage(false)
	}
	return events
}

type goEvent struct{ Action, Package, Test, Output, FailedBuild string }

// goPrinted is what one package printed.
type goPrinted struct {
	strings.Builder
	test string
	died bool // what follows is no longer of a test
}

// It reports whether the package has ended.
func (p *goPrinted) add(e goEvent) bool {
	switch e.Action {
	case "output":
		if goEnded.MatchString(e.Output) {
			break
		}
		p.died = p.died || goDies.MatchString(e.Output)
		if e.Test != p.test {
			p.mark("=== NAME  " + e.Test)
		}
		p.test = e.Test
		p.WriteString(e.Output)
	case "run", "cont", "pause":
		p.mark("=== " + strings.ToUpper(e.Action) + "  " + e.Test)
	case "fail", "pass", "skip":
		if e.Test != "" {
			p.mark(fmt.Sprintf("--- %s: %s (0.00s)", strings.ToUpper(e.Action), e.Test))
			break
		}
		result := map[string]string{"fail": "FAIL", "pass": "ok  ", "skip": "ok  "}[e.Action]
		why := ""
		if e.FailedBuild != "" {
			why = "[build failed]"
		}
		p.WriteString("\n" + result + "\t" + e.Package + "\t" + why + "\n")
		return true
	}
	return false
}

func (p *goPrinted) mark(line string) {
	if p.died {
		return
	}
	if printed := p.String(); printed != "" && !strings.HasSuffix(printed, "\n") {
		p.WriteString("\n")
	}
	p.WriteString(line + "\n")
}

var vetPlace = lazyregexp.New(`^(?P<file>.+?):(?P<line>\d{1,9})(?::\d{1,9})?$`)

// go vet -json has for each package, for each analyzer, what it found.
func readVetJSON(text string, l *list) bool {
	if !strings.Contains(text, `"posn"`) {
		return false
	}
	return forEachValue(text, nil, func(packages map[string]map[string]json.RawMessage) (known bool) {
		for _, pkg := range slices.Sorted(maps.Keys(packages)) {
			for _, rule := range slices.Sorted(maps.Keys(packages[pkg])) {
				var found []struct{ Posn, Message string }
				if json.Unmarshal(packages[pkg][rule], &found) != nil {
					continue // an analyzer that failed has an object
				}
				known = true
				for _, f := range found {
					if i, ok := matched(vetPlace, f.Posn); ok {
						i.rule, i.text = rule, withRule(f.Message, rule)
						l.add(i)
					}
				}
			}
		}
		return known
	})
}
