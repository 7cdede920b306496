package reader

import (
	"cmp"
	"encoding/json"
	"strings"

	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
)

var (
	rustHead     = lazyregexp.New(`^(?P<severity>error|warning)(?:\[(?P<rule>[\w:-]+)\])?: (?P<text>\S.*)$`)
	rustVerdict  = lazyregexp.New(`^(?:could not compile|test failed|doctest failed|bench failed|\d+ targets? failed|aborting due to|build failed)`)
	rustRunning  = lazyregexp.New(`^ +(?:Running (?:unittests )?(\S+)|Doc-tests (\S+))`)
	rustResult   = lazyregexp.New(`^test (\S.*?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)`)
	rustCargo    = lazyregexp.New(`(?m)^ +(?:Compiling|Checking|Building|Finished|Running|Doc-tests|Blocking|Updating|Fresh|Documenting) `)
	rustStuck    = lazyregexp.New(`^(?:test (\S.*?) has been running for over|thread '(.+)' (?:\(\d+\) )?has (overflowed its stack))`)
	rustSection  = lazyregexp.New(`^---- (\S.*) stdout ----$`)
	rustDied     = lazyregexp.New(`process didn't exit successfully: .*\((signal: \d+.*|exit (?:status|code): .*)\)$`)
	rustPanicked = lazyregexp.New(`(?m) panicked at .*:\n(.+)$`)
	rustLine     = lazyregexp.New(` \(line \d+\)`)
	// arrow is the line with the place below a message of rustc and other tools.
	arrow = lazyregexp.New(`^ *--> (?P<file>\S.*?):(?P<line>\d{1,9}):(\d{1,9})$`)
)

// pointed is a message whose place is in the line below its head; it goes on to an empty line.
func pointed(head *lazyregexp.Regexp, s section) (item, bool) {
	i, ok := matched(head, s.head)
	if !ok || len(s.body) == 0 {
		return i, false
	}
	at, ok := matched(arrow, s.body[0])
	i.file, i.line = at.file, at.line
	for _, line := range s.body[1:] {
		if strings.TrimSpace(line) == "" {
			break
		}
		i.text += "\n" + line
	}
	return i, ok
}

type cargoOutput struct {
	*list
	target string // the file whose tests run
	tests  []*cargoTest
	byName map[string]*cargoTest
}

// cargoTest is a test that failed, or that runs for long; without a name it passed.
type cargoTest struct {
	target, name string
	end          string // how it ended, if not by a result
	text         []string
}

// The output is plain or of --message-format=json.
func readCargo(text string, l *list) {
	c := &cargoOutput{list: l, byName: map[string]*cargoTest{}}
	var loose []item // such as errors of the linker
	printed := false // by a test
	for _, s := range sections(c.rendered(text), func(line string) (string, bool) {
		if m := rustSection.MatchString(line); m || strings.TrimSpace(line) == "failures:" {
			printed = m
			return line, true
		}
		return line, !printed && rustHead.MatchString(line)
	}) {
		if m := rustSection.FindStringSubmatch(s.head); m != nil {
			c.test(m[1]).text = s.body
			continue
		}
		i, placed := pointed(rustHead, s)
		if i.rank == failure {
			i.rank = crash
		}
		switch {
		case placed:
			c.add(i)
		case rustVerdict.MatchString(i.text):
		case i.text != "" && i.rank == crash:
			i.file, i.line, i.text = "", 0, firstLine(i.text)
			loose = append(loose, i)
		}
		for _, line := range s.body {
			c.line(line)
		}
	}
	if len(l.items)+len(c.tests) > 0 || rustCargo.MatchString(text) {
		l.add(loose...)
	}
	for _, t := range c.tests {
		if t.name != "" {
			l.add(t.item())
		}
	}
}

func (c *cargoOutput) line(line string) {
	if m := rustRunning.FindStringSubmatch(line); m != nil {
		c.target = m[1] + m[2]
	} else if m := rustStuck.FindStringSubmatch(line); m != nil {
		if c.test(m[1] + m[2]).end = m[3]; m[3] == "" {
			c.test(m[1]).end = "did not finish"
		}
	} else if m := rustResult.FindStringSubmatch(line); m != nil {
		if m[2] == "FAILED" {
			c.test(m[1]).end = ""
		} else if t := c.byName[c.target+"\x00"+m[1]]; t != nil {
			t.name = "" // it was slow, but passed
		}
	} else if m := rustDied.FindStringSubmatch(line); m != nil && !strings.Contains(m[1], "101") {
		if n := len(c.tests); n == 0 || c.tests[n-1].target != c.target || c.tests[n-1].end == "" {
			c.add(item{rank: crash, test: c.target, file: c.target, text: "the tests of " + c.target + " died: " + m[1]})
		}
	}
}

func (c *cargoOutput) test(name string) *cargoTest {
	key := c.target + "\x00" + name
	if c.byName[key] == nil {
		c.byName[key] = &cargoTest{target: c.target, name: name}
		c.tests = append(c.tests, c.byName[key])
	}
	return c.byName[key]
}

// The messages of --message-format=json have what the compiler prints, once for each target.
func (c *cargoOutput) rendered(text string) string {
	if !strings.Contains(text, `{"reason":`) {
		return text
	}
	seen := map[string]bool{}
	var b strings.Builder
	forEachLine(text, func(line string) {
		var m struct{ Message struct{ Rendered string } }
		if strings.HasPrefix(line, `{"reason":`) && json.Unmarshal([]byte(line), &m) == nil {
			if line = m.Message.Rendered; seen[line] {
				return
			}
			seen[line] = true
		}
		b.WriteString(excerpt.Screen(line) + "\n")
	})
	return b.String()
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
	text, _, _ := strings.Cut(strings.Join(t.text, "\n"), "\nstack backtrace:")
	said := firstLine(strings.TrimSpace(text))
	if m := rustPanicked.FindStringSubmatch(text); m != nil {
		said = strings.TrimSpace(m[1])
	}
	return i.told(t.name, cmp.Or(said, "failed"), dedent(strings.Split(text, "\n")))
}
