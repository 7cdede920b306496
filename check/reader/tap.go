package reader

import (
	"cmp"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/tap"
)

var (
	tapLine    = lazyregexp.New(`^((?: {4})*)(?:(?:not )?ok\b|1\.\.\d|TAP version \d|# Subtest\b|Bail out!)`)
	tapSure    = lazyregexp.New(`(?m)^(?:TAP version 1[34]\s*$|1\.\.\d+\s*(?:#.*)?$)`)
	tapTime    = lazyregexp.New(`\s*#\s*time=[\d.]+m?s\b`)
	tapSummary = lazyregexp.New(`^(?:(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms|time) ?[=]?[\d.]+(?:ms)?|failed \d+ (?:of \d+ )?tests?|Subtest: .*)$`)
)

// It reads versions 13 and 14, with subtests.
func readTAP(text string, l *list) {
	if !tapSure.MatchString(text) {
		return
	}
	t := &tapOutput{}
	forEachLine(text, t.line)
	for _, f := range slices.Concat(t.failed...) {
		l.add(f.item())
	}
}

// tapOutput has the failures of the points that were read, by level. The points of subtests come before that of their test,
// or follow it in braces.
type tapOutput struct {
	failed [][]*tapFailure
	open   []*tapFailure // tests whose subtests follow
	depth  int
	last   *tapFailure // what follows may be of this point
	yaml   int         // the indentation of the open YAML block; 0 if there is none
	said   []string    // the comments since the last point, which a program that died printed
}

// tapFailure is a failed point, with the points above it, the next one first.
type tapFailure struct {
	tap.Point
	said  []string // before it
	above []*tapFailure
}

func (t *tapOutput) line(line string) {
	line = strings.TrimRight(line, " ")
	rest := strings.TrimLeft(line, " ")
	indent := len(line) - len(rest)
	below := t.last != nil && !t.last.OK && indent > 4*t.depth
	if t.yaml > 0 && (indent >= t.yaml || rest == "") {
		if t.last.Diagnostics += line[min(t.yaml, len(line)):] + "\n"; indent == t.yaml && rest == "..." {
			t.last.Diagnostics, t.yaml = strings.TrimSuffix(t.last.Diagnostics, "...\n"), 0
		}
		return
	}
	t.yaml = 0
	m := tapLine.FindStringSubmatch(line)
	switch comment, isComment := strings.CutPrefix(rest, "#"); {
	case below && rest == "---":
		t.yaml = indent
	case m != nil:
		if t.depth = min(len(m[1])/4, len(t.failed)); t.depth == len(t.failed) {
			t.failed = append(t.failed, nil)
		}
		if t.last = nil; strings.HasPrefix(strings.TrimPrefix(rest, "not "), "ok") {
			t.point(strings.TrimSuffix(rest, " {"))
		}
		if strings.HasSuffix(rest, " {") {
			for len(t.open) < t.depth {
				t.open = append(t.open, nil)
			}
			t.open = append(t.open[:t.depth], t.last)
		}
	case rest == "}" && indent%4 == 0 && indent/4 < len(t.open):
		t.depth = indent / 4
		t.close(t.open[t.depth])
		t.open, t.last = t.open[:t.depth], nil
	case isComment || below: // mocha has no YAML block
		comment = strings.TrimPrefix(cmp.Or(comment, rest), " ")
		if t.last != nil {
			t.last.Diagnostics += strings.TrimSpace(comment) + "\n"
		}
		if isComment && len(t.said) < 100 {
			t.said = append(t.said, comment)
		}
	}
}

func (t *tapOutput) point(text string) {
	t.last = &tapFailure{Point: tap.Parse(tapTime.ReplaceAllString(text, "")).Points[0], said: t.said}
	t.said = nil
	t.close(t.last)
}

// A point is known with its subtests. Failures that have others below are left out.
func (t *tapOutput) close(f *tapFailure) {
	below := slices.Concat(t.failed[t.depth+1:]...)
	t.failed = t.failed[:t.depth+1]
	level := &t.failed[t.depth]
	switch {
	case f == nil || f.OK || f.Directive != "":
	case len(below) == 0 && !slices.Contains((*level)[max(0, len(*level)-1):], f):
		*level = append(*level, f)
	case len(below) > 0:
		*level = slices.DeleteFunc(*level, func(other *tapFailure) bool { return other == f })
		for _, b := range below {
			b.above = append(b.above, f)
		}
		*level = append(*level, below...)
	}
}

// tapTold are the keys of diagnostics that say what is wrong. Others say the place, which the finding has, the environment of
// the test, and what its runner calls the failure.
const tapTold = " diff pattern "

// tapValues are keys whose values become one line.
const tapValues = " expected actual found wanted got want received doNotWant "

var (
	tapKey = lazyregexp.New(`^([a-z_]\w*):(?: |$)`)
	// tapCall is the line of the source that node-tap marks.
	tapCall = lazyregexp.New(`(?m)^(\S.*)\n*^-*\^$`)
	// tapTruth is such a line that only asks whether a value is true, or not true.
	tapTruth = lazyregexp.New(`\.(?:(ok|true|assert)|notOk|false|notok)\(`)
)

func (f *tapFailure) item() item {
	name, around := f.Description, ""
	for n, a := range f.above {
		if name = a.Description + " > " + name; n == 0 {
			around = tapPlace(a.Point)
		}
	}
	i := item{rank: failure, test: cmp.Or(name, "not ok")}
	said := cmp.Or(f.Value("message"), f.Value("error"))
	places := []string{f.Value("stack"), f.Value("at"), f.Value("location"), f.Diagnostics, tapPlace(f.Point), around}
	if f.Value("exitCode") != "" {
		f.Diagnostics = strings.Join(append(f.said, f.Diagnostics), "\n")
		places = []string{around, tapPlace(f.Point), f.Diagnostics}
		i.rank, said = crash, cmp.Or(specError.FindString(f.Diagnostics), said)
	}
	if first := strings.TrimSpace(firstLine(f.Diagnostics)); said == "" && !strings.Contains(first, ":") {
		said = first
	}
	if expired := f.Value("expired"); expired != "" {
		said = strings.TrimSuffix("timed out: "+expired, ": TAP") // which is no name
	} else if signal := f.Value("signal"); said == "" && strings.HasPrefix(signal, "SIG") {
		said = "ended by " + signal
	}
	if call := tapCall.FindStringSubmatch(f.Value("source")); said+f.Value("tapCaught") == "" && call != nil && !strings.Contains("\n"+f.Diagnostics, "\ndiff:") && f.Value("wanted")+f.Value("doNotWant") == "" {
		said = cutValue(call[1])
		if truth := tapTruth.FindStringSubmatch(said); truth != nil && truth[1] != "" {
			said += ": got falsy, want truthy"
		} else if truth != nil {
			said += ": got truthy, want falsy"
		}
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
func (f *tapFailure) told(file string) string {
	var body []string
	skip := false
	for line := range strings.Lines(f.Diagnostics) {
		line = strings.TrimSuffix(line, "\n")
		if m := tapKey.FindStringSubmatch(line); m != nil {
			skip = !strings.Contains(tapTold, " "+m[1]+" ")
			if strings.Contains(tapValues, " "+m[1]+" ") {
				if value := strings.Join(strings.Fields(f.Value(m[1])), " "); value == "~" {
					body = append(body, m[1]+": null")
				} else if value != "" {
					body = append(body, strings.Replace(m[1]+": "+value, "doNotWant: ", "wanted: not ", 1))
				}
			}
		}
		if !skip && !tapSummary.MatchString(line) {
			body = append(body, line)
		}
	}
	// node leaves out a value that is undefined.
	if has := func(key string) bool { return strings.Contains("\n"+f.Diagnostics, "\n"+key+":") }; has("operator") && has("actual") != has("expected") && f.Value("actual")+f.Value("expected") != "" {
		body = append(body, map[bool]string{true: "expected: undefined", false: "actual: undefined"}[has("actual")])
	}
	place := true // the first frame
	forEachLine(f.Value("stack"), func(frame string) {
		if m := jsFrame.FindStringSubmatch(frame); m != nil && isUserFile(m[1]) {
			if !place && !strings.Contains(frame, file+":") {
				body = append(body, "    at "+frame)
			}
			place = false
		}
	})
	if exit := f.Value("exitCode"); exit != "" && exit != "1" {
		body = append(body, "exitCode: "+exit)
	}
	return dedent(body)
}
