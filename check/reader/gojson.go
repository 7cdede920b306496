package reader

import (
	"encoding/json"
	"strings"
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
