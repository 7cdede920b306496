package reader

import (
	"cmp"
	"encoding/xml"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

type junitCase struct {
	Name      string       `xml:"name,attr"`
	ClassName string       `xml:"classname,attr"`
	File      string       `xml:"file,attr"`
	Line      string       `xml:"line,attr"`
	Failures  []junitFault `xml:"failure"`
	Errors    []junitFault `xml:"error"`
	Skipped   *struct{}    `xml:"skipped"`
}

type junitFault struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type junitReport struct {
	*list
	suites  []string        // names of the open suites
	parents map[string]bool // names of tests with a failed subtest
}

var (
	junitStart = lazyregexp.New(`<test(?:suites?|case)\b`)
	// illegal is a reference to a character that XML forbids, but which reports contain.
	illegal = lazyregexp.New(`&#(?:x0*[0-8bcefBCEF]|x0*1[0-9a-fA-F]|0*(?:[0-8]|1[1245-9]|2[0-9]|3[01]));`)
)

// JUnit's XML may be in one or more documents: a program's output with other text around, or report files joined.
func readJUnit(text string, l *list) {
	r := &junitReport{list: l, parents: map[string]bool{}}
	if strings.Contains(text, "&#") {
		text = illegal.ReplaceAllString(text, "\uFFFD")
	}
	text = strings.Map(func(c rune) rune {
		if c < ' ' && !strings.ContainsRune("\t\n\r", c) || c == 0xFFFE || c == 0xFFFF {
			return 0xFFFD
		}
		return c
	}, text)
	for {
		start := junitStart.FindStringIndex(text)
		if start == nil {
			break
		}
		d := xml.NewDecoder(strings.NewReader(text[start[0]:]))
		r.document(d)
		text = text[start[0]+max(1, int(d.InputOffset())):]
	}
	// Parents failed because a subtest did, and have no text of their own; so have subtests of a test that crashed.
	said := map[string]bool{}
	for _, i := range r.items {
		said[i.test] = said[i.test] || !i.silent
	}
	r.items = slices.DeleteFunc(r.items, func(i item) bool {
		return i.silent && (r.parents[i.test] || said[i.test] || said[i.test[:max(0, strings.LastIndexByte(i.test, '/'))]])
	})
}

// It ends where the text ends or is not XML.
func (r *junitReport) document(d *xml.Decoder) {
	r.suites = nil
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "testsuites", "testsuite":
				name := ""
				for _, a := range e.Attr {
					if a.Name.Local == "name" && e.Name.Local == "testsuite" {
						name = a.Value
					}
				}
				r.suites = append(r.suites, name)
			case "testcase":
				var c junitCase
				if d.DecodeElement(&c, &e) == nil {
					r.test(c)
				}
			default:
				_ = d.Skip() // the next token has the error
			}
		case xml.EndElement:
			if r.suites = r.suites[:max(0, len(r.suites)-1)]; len(r.suites) == 0 {
				return
			}
		}
	}
}

func (r *junitReport) test(c junitCase) {
	faults := append(c.Failures, c.Errors...)
	if len(faults) == 0 || c.Skipped != nil {
		return
	}
	suite := ""
	if len(r.suites) > 0 {
		suite = r.suites[len(r.suites)-1]
	}
	if strings.HasPrefix(faults[0].Text, "=== RUN ") || c.Name == "TestMain" && c.ClassName == "" {
		r.goTest(suite, c, faults[0].Text)
		return
	}
	i := item{rank: failure, test: r.fullName(c)}
	head, body := strings.TrimSpace(c.Name), []string{}
	for n, f := range faults {
		message := strings.TrimSpace(f.Message)
		if message == "collection failure" { // pytest's words for what it cannot import
			i.rank, message = crash, pytestMessage(strings.Split(f.Text, "\n"))
		}
		if message == "" {
			message = firstLine(strings.TrimSpace(f.Text))
		}
		if n == 0 {
			head += ": " + firstLine(message)
		}
		if !strings.Contains(f.Text, firstLine(message)) && message != "Failed" {
			body = append(body, message)
		}
		body = append(body, strings.Trim(f.Text, "\n"))
	}
	if c.File == "" && c.Line != "" && isAbs(suite) { // ruff's suites are files
		c.File = suite
	}
	if i.file, i.line = locate(strings.Join(body, "\n")); i.file == "" && c.File != "" {
		i.file, i.line = c.File, number(c.Line)
	}
	i.text = headed(strings.TrimSuffix(head, ": "), dedent(strings.Split(strings.Join(body, "\n"), "\n")))
	i.silent = strings.TrimSpace(strings.Join(body, "")) == ""
	r.add(i)
	markParents(r.parents, i.test)
}

func (r *junitReport) fullName(c junitCase) string {
	switch {
	case c.ClassName == "" || c.ClassName == "test":
		suites := slices.DeleteFunc(slices.Clone(r.suites[max(0, len(r.suites)-8):]), func(s string) bool { return s == "" || s == "test" })
		return strings.Join(append(suites, c.Name), " > ")
	case strings.HasPrefix(c.Name, c.ClassName):
		return c.Name
	}
	if strings.ContainsAny(c.ClassName, "/ ") {
		return c.ClassName + " > " + c.Name
	}
	return c.ClassName + "." + c.Name
}

// The text of a Go test is what it printed, as go test -v prints it. A crash is its end.
func (r *junitReport) goTest(suite string, c junitCase, text string) {
	name := cmp.Or(c.ClassName, suite)
	if c.ClassName == "" && strings.HasPrefix(text, "FAIL\t") {
		how := "failed" + strings.TrimPrefix(strings.TrimSpace(text), "FAIL\t"+name)
		if strings.HasSuffix(how, " [build failed]") {
			how = "has a compile error"
		}
		r.add(item{rank: crash, test: name, text: "package " + name + " " + how})
		return
	}
	g := newGoOutput(&list{exit: r.exit})
	g.name, g.pkg.verbose = name, true
	if c.ClassName != "" {
		g.pkg.current = g.pkg.test(c.Name)
		g.pkg.current.result = "FAIL"
	}
	forEachLine(text, g.line)
	g.endPackage(false)
	for _, i := range g.items {
		markParents(r.parents, i.test)
		i.silent = i.text == c.Name+" failed"
		r.add(i)
	}
}
