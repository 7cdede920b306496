package reader

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
)

var (
	// arrow is the line with the place below a message of rustc and other tools.
	arrow       = lazyregexp.New(`^ *--> (\S.*?):(\d{1,9}):(\d{1,9})$`)
	rustHead    = lazyregexp.New(`^(?P<severity>error|warning)(?:\[(?P<rule>[\w:-]+)\])?: (?P<text>\S.*)$`)
	rustVerdict = lazyregexp.New(`^error: (?:could not compile|test failed|doctest failed|bench failed|\d+ targets? failed|aborting due to|build failed)`)
	rustRunning = lazyregexp.New(`^ +(?:Running (?:unittests )?(\S+)|Doc-tests (\S+))`)
	rustResult  = lazyregexp.New(`^test (\S.*?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)`)
	rustCargo   = lazyregexp.New(`^ +(?:Compiling|Checking|Building|Finished|Running|Doc-tests|Blocking|Updating|Fresh|Documenting) `)
	rustSlow    = lazyregexp.New(`^test (\S.*?) has been running for over`)
	rustDeep    = lazyregexp.New(`^thread '(.+)' (?:\(\d+\) )?has (overflowed its stack)`)
	rustSection = lazyregexp.New(`^---- (\S.*) stdout ----$`)
	rustDied    = lazyregexp.New(`process didn't exit successfully: .*\((signal: \d+.*|exit (?:status|code): .*)\)$`)
	rustLine    = lazyregexp.New(` \(line \d+\)`)
)

// arrows reads messages whose place is in the line below their head, up to an empty line.
type arrows struct {
	head *lazyregexp.Regexp // the first line of a message
	// crash is the rule that what does not compile breaks; empty if every error is that.
	crash string
	// files are the suffixes of the files that count: others belong to another tool.
	files   []string
	known   bool
	pending *item // has no place yet
	open    bool  // what follows belongs to the last item
}

func (a *arrows) line(line string, l *list) {
	if i, ok := matched(a.head, line); ok {
		if a.crash == "" && i.rank == failure || a.crash != "" && i.rule == a.crash {
			i.rank = crash
		}
		a.pending, a.open = &i, false
		return
	}
	switch m := arrow.FindStringSubmatch(line); {
	case a.pending != nil && m != nil && slices.Contains(a.files, path.Ext(m[1])):
		a.pending.file, a.pending.line = m[1], number(m[2])
		l.add(*a.pending)
		a.pending, a.known, a.open = nil, true, true
	case a.pending != nil || strings.TrimSpace(line) == "":
		a.pending, a.open = nil, false
	case a.open:
		l.more(line)
	}
}

type cargoMessage struct {
	Reason  string
	Message struct {
		Level    string
		Message  string
		Rendered string
		Code     *struct{ Code string }
		Spans    []struct {
			FileName  string `json:"file_name"`
			LineStart int    `json:"line_start"`
			IsPrimary bool   `json:"is_primary"`
		}
	}
}

type cargoOutput struct {
	*list
	arrows
	known  bool
	target string // the file whose tests run
	tests  map[string]*cargoTest
	order  []*cargoTest
	open   *cargoTest
	seen   map[string]bool // messages, which come once for each target
	loose  []item          // errors without a place
	ran    bool            // the output is cargo's
}

// cargoTest is a test that failed, or that runs for long; without a name it passed.
type cargoTest struct {
	target, name string
	end          string // how it ended, if not by a result
	text         []string
}

// The output is plain or of --message-format=json.
func readCargo(text string, l *list) bool {
	c := &cargoOutput{list: l, tests: map[string]*cargoTest{}, seen: map[string]bool{}}
	c.arrows = arrows{head: rustHead, files: []string{".rs", ".toml"}}
	forEachLine(text, c.line)
	c.endMessage()
	known := c.known || c.arrows.known || c.ran
	if known {
		l.add(c.loose...)
	}
	for _, t := range c.order {
		if t.name != "" {
			l.add(t.item())
		}
	}
	return known
}

func (c *cargoOutput) line(line string) {
	switch {
	case strings.HasPrefix(line, `{"reason":`):
		c.json(line)
	case c.open != nil && strings.TrimSpace(line) != "failures:" && !strings.HasPrefix(line, "---- "):
		c.open.text = append(c.open.text, line)
	case c.test(line):
	default:
		c.open = nil
		c.compiler(line)
	}
}

func (c *cargoOutput) compiler(line string) {
	c.ran = c.ran || rustCargo.MatchString(line)
	if !arrow.MatchString(line) {
		c.endMessage()
	}
	c.arrows.line(line, c.list)
	if m := rustDied.FindStringSubmatch(line); m != nil && !strings.Contains(m[1], "101") {
		c.known = true
		if n := len(c.order); n == 0 || c.order[n-1].target != c.target || c.order[n-1].end == "" {
			c.add(item{rank: crash, test: c.target, file: c.target, text: "the tests of " + c.target + " died: " + m[1]})
		}
	}
}

// An error such as the linker's has no place.
func (c *cargoOutput) endMessage() {
	if c.pending == nil || c.pending.rank != crash {
		return
	}
	if rustVerdict.MatchString("error: " + c.pending.text) {
		c.ran = true
	} else {
		c.loose = append(c.loose, *c.pending)
	}
	c.pending = nil
}

// It reports whether the line is about tests.
func (c *cargoOutput) test(line string) bool {
	if m := rustRunning.FindStringSubmatch(line); m != nil {
		c.target = m[1] + m[2]
		return true
	}
	if m := rustSection.FindStringSubmatch(line); m != nil {
		c.open = c.testNamed(m[1])
		return true
	}
	if m := rustDeep.FindStringSubmatch(line); m != nil {
		c.testNamed(m[1]).end = m[2]
		return true
	}
	if !strings.HasPrefix(line, "test ") {
		return false
	}
	if m := rustSlow.FindStringSubmatch(line); m != nil {
		c.testNamed(m[1]).end = "did not finish"
		return true
	}
	m := rustResult.FindStringSubmatch(line)
	if m == nil {
		return strings.HasPrefix(line, "test result: ")
	}
	c.known = true
	if m[2] == "FAILED" {
		c.testNamed(m[1]).end = ""
	} else if t := c.tests[c.target+"\x00"+m[1]]; t != nil {
		t.name = "" // it was slow, but passed
	}
	return true
}

func (c *cargoOutput) testNamed(name string) *cargoTest {
	c.known = true
	key := c.target + "\x00" + name
	t := c.tests[key]
	if t == nil {
		t = &cargoTest{target: c.target, name: name}
		c.tests[key] = t
		c.order = append(c.order, t)
	}
	return t
}

func (c *cargoOutput) json(line string) {
	var m cargoMessage
	if json.Unmarshal([]byte(line), &m) != nil {
		return
	}
	c.known = true
	said := m.Message
	if m.Reason != "compiler-message" || said.Message == "" || c.seen[said.Rendered] || said.Level == "failure-note" || len(said.Spans) == 0 && rustVerdict.MatchString("error: "+said.Message) {
		return
	}
	c.seen[said.Rendered] = true
	code := ""
	if said.Code != nil {
		code = said.Code.Code
	}
	i := item{rank: rankOf(said.Level), rule: code, text: withRule(said.Message, code)}
	if i.rank == failure {
		i.rank = crash
	}
	for _, s := range said.Spans {
		if s.IsPrimary {
			i.file, i.line = s.FileName, s.LineStart
			break
		}
	}
	_, below, _ := strings.Cut(strings.TrimSpace(excerpt.Screen(said.Rendered)), "\n")
	if i.file != "" {
		_, below, _ = strings.Cut(below, "\n") // the arrow
	}
	i.text = headed(i.text, below)
	c.add(i)
}

func (t *cargoTest) item() item {
	i := item{rank: failure, test: rustLine.ReplaceAllString(t.name, "")}
	if t.target != "" && !strings.HasPrefix(t.name, t.target) {
		i.test = t.target + ": " + i.test
	}
	if t.end != "" {
		i.rank, i.text = crash, t.name+": "+t.end
		return i
	}
	said, next := "", false
	var kept []string
	for _, line := range t.text {
		if strings.HasPrefix(line, "stack backtrace:") {
			break
		}
		kept = append(kept, line)
		if next || said == "" && strings.TrimSpace(line) != "" {
			said, next = strings.TrimSpace(line), false
		}
		next = next || strings.Contains(line, " panicked at ") && strings.HasSuffix(line, ":")
	}
	if said == "" {
		said = "failed"
	}
	i.file, i.line = locate(strings.Join(t.text, "\n"))
	i.text = headed(t.name+": "+said, dedent(kept))
	return i
}
