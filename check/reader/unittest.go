package reader

import (
	"strings"

	"hone/internal/lazyregexp"
)

var (
	unittestHead = lazyregexp.New(`^(FAIL|ERROR): (\S.*)$`)
	unittestName = lazyregexp.New(`^(\S+) \(([\w.<>]+)\)(.*)$`)
	unittestLive = lazyregexp.New(`^\s*(\S+ \([\w.<>]+\)[^.]*?) \.\.\. (.*)$`)
	unittestRan  = lazyregexp.New(`^Ran \d+ tests? in `)
)

const (
	unittestDouble = "======================================================================"
	unittestSingle = "----------------------------------------------------------------------"
)

type unittestOutput struct {
	known   bool
	double  bool   // the last line was a double rule
	head    string // the open report; empty if there is none
	verdict string
	inBody  bool
	text    []string
	found   []item
	live    []string // tests that failed, as they were printed while running
	running string
	death   pyDeath
}

// Django's tests print it too.
func readUnittest(text string, l *list) bool {
	u := &unittestOutput{}
	forEachLine(text, u.line)
	u.close()
	if !u.known {
		return false
	}
	l.add(u.found...)
	before := len(l.items)
	u.death.finish(l, u.running)
	if u.running != "" && len(u.found) == 0 && len(l.items) == before {
		l.addInterrupted(u.running, u.running, nil)
	}
	if len(u.found) == 0 && len(l.items) > before {
		for _, name := range u.live {
			l.add(item{rank: failure, test: name, text: name + " failed"})
		}
	}
	return true
}

func (u *unittestOutput) line(line string) {
	switch {
	case line == unittestDouble:
		u.close()
		u.double = true
		return
	case u.double:
		if m := unittestHead.FindStringSubmatch(line); m != nil {
			u.known, u.verdict, u.head = true, m[1], m[2]
		}
	case u.head != "" && line == unittestSingle:
		if u.inBody {
			u.close()
		} else {
			u.inBody = true
		}
	case u.head != "":
		u.text = append(u.text, line)
	case unittestRan.MatchString(line):
		u.known = true
	default:
		u.progress(line)
	}
	u.double = false
}

// Verbose tests print the line while they run.
func (u *unittestOutput) progress(line string) {
	u.death.line(line)
	m := unittestLive.FindStringSubmatch(line)
	if m == nil {
		return
	}
	u.known, u.running = true, ""
	switch name := unittestFullName(m[1]); {
	case m[2] == "FAIL" || m[2] == "ERROR":
		u.live = append(u.live, name)
	case m[2] != "ok" && !strings.HasPrefix(m[2], "skipped"):
		u.running = name
	}
}

func (u *unittestOutput) close() {
	if u.head != "" && u.inBody {
		u.found = append(u.found, u.item())
	}
	u.head, u.inBody, u.text = "", false, nil
}

func (u *unittestOutput) item() item {
	i := item{rank: failure, test: unittestFullName(u.head)}
	if strings.Contains(u.head, "._FailedTest") {
		i.rank = crash
		i.test, _, _ = strings.Cut(u.head, " ")
	}
	i.file, i.line = locate(strings.Join(u.text, "\n"))
	name := i.test
	if m := unittestName.FindStringSubmatch(u.head); m != nil {
		name = m[1] + m[3]
	}
	i.text = headed(name+": "+pyMessage(u.text), dedent(u.text))
	return i
}

// "test_x (m.Case.test_x) (n=1)" becomes "m.Case.test_x (n=1)", as does "test_x (m.Case) (n=1)" of older versions.
func unittestFullName(head string) string {
	m := unittestName.FindStringSubmatch(head)
	if m == nil {
		return head
	}
	if !strings.HasSuffix(m[2], "."+m[1]) {
		m[2] += "." + m[1]
	}
	return m[2] + m[3]
}
