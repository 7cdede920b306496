package reader

import (
	"cmp"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/tap"
)

var (
	tapLine    = lazyregexp.New(`^((?: {4})*)(?:(not )?ok\b|1\.\.\d|TAP version \d|# Subtest\b|Bail out!)`)
	tapSure    = lazyregexp.New(`(?m)^(?:TAP version 1[34]\s*$|1\.\.\d+\s*(?:#.*)?$)`)
	tapPoint   = lazyregexp.New(`(?m)^ *(?:not )?ok\b`)
	tapTime    = lazyregexp.New(`\s*#\s*time=[\d.]+m?s\b`)
	tapSummary = lazyregexp.New(`^(?:(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms|time) ?[=]?[\d.]+(?:ms)?|failed \d+ of \d+ tests|Subtest: .*)$`)
)

// It reads versions 13 and 14, with subtests.
func readTAP(text string, l *list) bool {
	if !tapSure.MatchString(text) || !tapPoint.MatchString(text) && !strings.Contains(text, "Bail out!") {
		return false
	}
	t := &tapOutput{}
	forEachLine(text, t.line)
	found, report := t.close(0)
	for _, f := range found {
		l.add(f.item())
	}
	if len(found) == 0 {
		for _, problem := range report.Problems {
			l.add(item{rank: crash, rule: "TAP", text: problem})
		}
	}
	return true
}

// tapOutput separates the levels of subtests.
type tapOutput struct {
	levels []*tapLevel
	depth  int
	failed bool // the last point failed
	yaml   int  // the indentation of the open YAML block; 0 if there is none
	// said are the comments since the last point, which a program that died printed.
	said []string
}

// tapLevel is the output of one level, without its indentation.
type tapLevel struct {
	text   strings.Builder
	points int
	below  map[int][]tapFailure // failures of the subtests of a point
}

// tapFailure is a failed point, with the names of the points above it.
type tapFailure struct {
	name string
	tap.Point
	around string // the place of the test around it
}

func (t *tapOutput) line(line string) {
	line = strings.TrimRight(line, " ")
	indent := len(line) - len(strings.TrimLeft(line, " "))
	rest := line[indent:]
	switch {
	case t.yaml > 0 && (indent >= t.yaml || rest == ""):
		t.write("  " + line[min(t.yaml, len(line)):])
		if indent == t.yaml && rest == "..." {
			t.yaml = 0
		}
		return
	case t.failed && rest == "---" && indent > 4*t.depth:
		t.yaml = indent
		t.write("  ---")
		return
	}
	t.yaml = 0
	switch m := tapLine.FindStringSubmatch(line); {
	case m != nil:
		t.enter(min(len(m[1])/4, len(t.levels)), rest)
		t.write(tapTime.ReplaceAllString(strings.TrimSuffix(rest, " {"), ""))
	case rest == "}" && indent%4 == 0 && indent/4 < len(t.levels):
		t.leave(indent / 4)
	case t.failed && indent > 4*t.depth:
		t.write("# " + rest) // mocha's, without a YAML block
	case rest != "" && rest[0] == '#':
		t.write(rest)
		if len(t.said) < 100 {
			t.said = append(t.said, strings.TrimPrefix(strings.TrimPrefix(rest, "#"), " "))
		}
	}
}

func (t *tapOutput) write(line string) {
	if len(t.levels) > 0 {
		t.levels[min(t.depth, len(t.levels)-1)].text.WriteString(line + "\n")
	}
}

// A point ends the subtests before it, which are its own.
func (t *tapOutput) enter(depth int, rest string) {
	if depth == len(t.levels) {
		t.levels = append(t.levels, &tapLevel{below: map[int][]tapFailure{}})
	}
	t.depth, t.failed = depth, strings.HasPrefix(rest, "not ok")
	if !t.failed && !strings.HasPrefix(rest, "ok") {
		return
	}
	level := t.levels[depth]
	if len(t.levels) > depth+1 {
		found, _ := t.close(depth + 1)
		level.below[level.points] = found
	}
	if len(level.below[level.points]) == 0 && len(t.said) > 0 && t.failed {
		died := tap.Point{Diagnostics: strings.Join(t.said, "\n") + "\n"}
		level.below[level.points] = []tapFailure{{Point: died}}
	}
	level.points++
	t.said = nil
}

// Subtests in braces follow their point.
func (t *tapOutput) leave(depth int) {
	level := t.levels[depth]
	t.depth, t.failed = depth, false
	if found, _ := t.close(depth + 1); len(found) > 0 && level.points > 0 {
		level.below[level.points-1] = found
	}
}

// Failures that have others below are left out.
func (t *tapOutput) close(depth int) ([]tapFailure, tap.Report) {
	var found []tapFailure
	var report tap.Report
	for d := len(t.levels) - 1; d >= depth; d-- {
		report = tap.Parse(t.levels[d].text.String())
		found = append(t.levels[d].failures(report), found...)
	}
	t.levels = t.levels[:min(depth, len(t.levels))]
	return found, report
}

func (level *tapLevel) failures(report tap.Report) (found []tapFailure) {
	for n, p := range report.Points {
		if p.OK || p.Directive != "" {
			continue
		}
		below := level.below[n]
		if len(below) == 1 && below[0].Number == 0 {
			// What a program that died printed before its point.
			if p.Value("exitCode") != "" {
				p.Diagnostics = below[0].Diagnostics + p.Diagnostics
			}
			below = nil
		}
		if len(below) == 0 {
			found = append(found, tapFailure{name: p.Description, Point: p})
		}
		for _, b := range below {
			b.name, b.around = p.Description+" > "+b.name, cmp.Or(b.around, tapPlace(p))
			found = append(found, b)
		}
	}
	return found
}

// tapNoise are the keys of diagnostics that say nothing of what is wrong: the place, which
// the finding has, the environment of the test, and what its runner calls the failure.
const tapNoise = " at stack location source file fileName line lineNumber column columnNumber type test typeName name code failureType duration_ms operator compare generatedMessage env stdio command args cwd timeout tapError message error expired exitCode signal "

// tapValues are keys whose values become one line.
const tapValues = " expected actual found wanted got want received "

var tapKey = lazyregexp.New(`^([A-Za-z_]\w*):(?: |$)`)

func (f tapFailure) item() item {
	i := item{rank: failure, test: cmp.Or(f.name, "not ok")}
	said := cmp.Or(f.Value("message"), f.Value("error"))
	places := []string{f.Value("stack"), f.Value("at"), f.Value("location"), f.Diagnostics, tapPlace(f.Point), f.around}
	if first := strings.TrimSpace(firstLine(f.Diagnostics)); said == "" && !strings.Contains(first, ":") {
		said = first
	}
	if expired := f.Value("expired"); expired != "" {
		said = strings.TrimSuffix("timed out: "+expired, ": TAP") // which is no name
	} else if signal := f.Value("signal"); said == "" && strings.HasPrefix(signal, "SIG") {
		said = "ended by " + signal
	}
	if f.Value("exitCode") != "" {
		i.rank = crash
		if why := specError.FindString(f.Diagnostics); why != "" {
			said = why
		}
		slices.Reverse(places)
	}
	for _, text := range places {
		if i.file, i.line = locate(text); i.file != "" {
			break
		}
	}
	i.text = headed(strings.TrimSuffix(i.test+": "+firstLine(said), ": "), said+"\n"+f.told(i.file))
	return i
}

// node-tap says where a test begins.
func tapPlace(p tap.Point) string {
	return p.Value("fileName") + ":" + p.Value("lineNumber") + ":1"
}

// Noise, such as frames in the file of the place, is left out.
func (f tapFailure) told(file string) string {
	var body []string
	skip := false
	for line := range strings.Lines(f.Diagnostics) {
		line = strings.TrimSuffix(line, "\n")
		if m := tapKey.FindStringSubmatch(line); m != nil {
			skip = strings.Contains(tapNoise, " "+m[1]+" ")
			if strings.Contains(tapValues, " "+m[1]+" ") {
				skip = true
				if value := strings.Fields(f.Value(m[1])); len(value) > 0 {
					body = append(body, m[1]+": "+strings.Join(value, " "))
				}
			}
		}
		if !skip && !tapSummary.MatchString(line) {
			body = append(body, line)
		}
	}
	for n, frame := range userFrames(f.Value("stack")) {
		if n > 0 && !strings.Contains(frame, file+":") { // the first is the place
			body = append(body, "    at "+frame)
		}
	}
	if exit := f.Value("exitCode"); exit != "" && exit != "1" {
		body = append(body, "exitCode: "+exit)
	}
	return dedent(body)
}
