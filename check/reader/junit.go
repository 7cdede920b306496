package reader

import (
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

// JUnit's XML may be in one or more documents: a program's output with other text around, or report files joined.
func readJUnit(text string, l *list) bool {
	r := &junitReport{list: l, goPackages: map[string]*goPackage{}, parents: map[string]bool{}, silent: map[string]bool{}}
	text = legalXML(text)
	for at := 0; ; {
		start := nextJUnit(text[at:])
		if start < 0 {
			break
		}
		at += start
		at += max(1, r.document(text[at:]))
	}
	r.removeParents()
	for _, name := range r.goOrder {
		r.goPackages[name].finish(l, name, false)
	}
	return r.known
}

// It is -1 if there is none. A report may have been cut anywhere.
func nextJUnit(text string) int {
	for at := 0; ; {
		i := strings.Index(text[at:], "<test")
		if i < 0 {
			return -1
		}
		at += i
		if rest := text[at+len("<test"):]; strings.HasPrefix(rest, "suite") || strings.HasPrefix(rest, "case") {
			return at
		}
		at += len("<test")
	}
}

// illegal is a reference to a character that XML forbids, but which reports contain.
var illegal = lazyregexp.New(`&#(?:x0*[0-8bcefBCEF]|x0*1[0-9a-fA-F]|0*(?:[0-8]|1[1245-9]|2[0-9]|3[01]));`)

func legalXML(text string) string {
	if strings.Contains(text, "&#") {
		text = illegal.ReplaceAllString(text, "\uFFFD")
	}
	forbidden := func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF }
	if strings.IndexFunc(text, forbidden) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if forbidden(r) {
			return 0xFFFD
		}
		return r
	}, text)
}

type junitReport struct {
	*list
	known      bool
	suites     []string // names of the open suites
	goPackages map[string]*goPackage
	goOrder    []string
	parents    map[string]bool // names of tests with a failed subtest
	silent     map[string]bool // names of tests that failed without a text
}

// It ends where the text ends or is not XML, and returns how much it read.
func (r *junitReport) document(text string) int {
	d := xml.NewDecoder(strings.NewReader(text))
	r.suites = nil
	for {
		token, err := d.Token()
		if err != nil {
			return int(d.InputOffset())
		}
		switch e := token.(type) {
		case xml.StartElement:
			if err := r.element(d, e); err != nil {
				return int(d.InputOffset())
			}
		case xml.EndElement:
			r.suites = r.suites[:max(0, len(r.suites)-1)]
			if len(r.suites) == 0 {
				return int(d.InputOffset())
			}
		}
	}
}

func (r *junitReport) element(d *xml.Decoder, e xml.StartElement) error {
	switch e.Name.Local {
	case "testsuites":
		r.known = true
		r.suites = append(r.suites, "")
	case "testsuite":
		r.known = true
		r.suites = append(r.suites, attribute(e, "name"))
	case "testcase":
		var c junitCase
		if err := d.DecodeElement(&c, &e); err != nil {
			return err
		}
		r.known = true
		r.test(c)
	default:
		return d.Skip()
	}
	return nil
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
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
	i.file, i.line = junitPlace(c, strings.Join(body, "\n"))
	i.text = headed(strings.TrimSuffix(head, ": "), dedent(strings.Split(strings.Join(body, "\n"), "\n")))
	r.add(i)
	markParents(r.parents, i.test)
	r.silent[i.test] = strings.TrimSpace(strings.Join(body, "")) == ""
}

func junitPlace(c junitCase, text string) (file string, line int) {
	if file, line = locate(text); file != "" {
		return file, line
	}
	if c.File == "" {
		return "", 0
	}
	return c.File, number(c.Line)
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

// The text of a Go test is what it printed.
func (r *junitReport) goTest(suite string, c junitCase, text string) {
	name := c.ClassName
	if name == "" {
		name = suite
	}
	p := r.goPackages[name]
	if p == nil {
		p = &goPackage{}
		r.goPackages[name] = p
		r.goOrder = append(r.goOrder, name)
	}
	if c.ClassName == "" {
		p.current = nil
		if strings.HasPrefix(text, "FAIL\t") {
			r.add(item{rank: crash, test: name, text: "package " + name + " failed" + strings.TrimPrefix(strings.TrimSpace(text), "FAIL\t"+name)})
			return
		}
	} else {
		p.current, p.verbose = p.test(c.Name), true
		p.current.result = "FAIL"
	}
	crashed := p.crash
	p.crash = nil
	forEachLine(text, func(line string) {
		if goRun(line) == nil && !goResult.MatchString(line) && !ended.MatchString(line) {
			p.put(p.current, line)
		}
	})
	if p.crash == nil {
		p.crash = crashed
	}
}

// They failed because a subtest did, and have no text of their own.
func (r *junitReport) removeParents() {
	r.items = slices.DeleteFunc(r.items, func(i item) bool { return r.parents[i.test] && r.silent[i.test] })
}
