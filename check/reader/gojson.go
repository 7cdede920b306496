package reader

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

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
