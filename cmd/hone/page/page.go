// Package page renders runs as HTML: a run as one file that needs nothing else
// ([Renderer.File]), or as the parts of a page ([Renderer.Run], [Renderer.View]), which a
// server sends again when they change.
//
// Every text may come from a model or a command. This package escapes all of them, and
// the policy of every page forbids what it does not need: the file allows its own style
// sheet and nothing else, the page of a server only what that server sends.
package page

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"
	"time"

	"hone/history"
	"hone/internal/render"
	"hone/model"
	"hone/story"
)

// Link is an address with its words.
type Link struct{ Text, Address string }

// Part is an element of a page that is sent as a whole.
type Part struct {
	ID   string // of the element
	HTML string // the element
}

var (
	//go:embed page.html
	pageTemplates string
	//go:embed views.html
	viewTemplates string
	//go:embed page.css
	pageStyle string
	//go:embed views.css
	viewStyle string
	//go:embed page.js
	script string
	//go:embed icon.svg
	icon string
)

// Style returns the style sheet of all pages.
func Style() string { return pageStyle + viewStyle + actStyle }

// Script returns the program of a server's pages, without which they have to be
// reloaded.
func Script() string { return script }

// Icon returns the picture in the browser's tab, as SVG.
func Icon() string { return icon }

// MaxText is where a long text is cut, in bytes.
const MaxText = 256 << 10

// Renderer renders pages. It may be used from several goroutines.
type Renderer struct {
	clean func(string) string
	root  string
	t     *template.Template
}

// New returns a renderer. clean removes secrets from a text; nil removes nothing.
func New(clean func(string) string) *Renderer {
	r := &Renderer{clean: clean}
	r.t = template.Must(template.New("page").Funcs(template.FuncMap{
		"text":  func(s any) string { return r.text(fmt.Sprint(s)) },
		"at":    r.at,
		"class": func(mark any) string { return class(fmt.Sprint(mark)) },
		"diff":  func(s string) []file { return files(r.text(s)) },
		"mild":  func(e Entry) bool { return e.Rest == "" && len(e.Parts) == 0 },
		"time":  render.Duration,
		"means": func(state string) string { return meanings[state] },
		"stamp": func(t time.Time) string { return t.Local().Format("2006-01-02 15:04 MST") },
		"code":  highlighted,
		"plots": plots,
		"lanes": r.lanes,
		"use":   func(u *model.Usage) string { return cmp.Or(story.UsageText(u), "tokens not reported") },
		"total": totalUse,
		"count": render.Count,
		"name":  r.name,
	}).Parse(pageTemplates + viewTemplates + actTemplates))
	return r
}

// Under puts a path before each address of the server, instead of nothing. Call it before
// anything is rendered.
func (r *Renderer) Under(root string) { r.root = root }

// The address is of the server, or of a place on the same page.
func (r *Renderer) at(address string) string {
	if strings.HasPrefix(address, "/") {
		return r.root + r.text(address)
	}
	return r.text(address)
}

// It has no secrets and control characters. A text that is longer than MaxText is cut.
func (r *Renderer) text(s string) string {
	if r.clean != nil {
		s = r.clean(s)
	}
	if more := len(s) - MaxText; more > 0 {
		s = s[:MaxText] + "\n[" + render.Bytes(int64(more)) + " more]"
	}
	return render.Escape(strings.ReplaceAll(s, "\r\n", "\n"))
}

// A narrow column can break the name between its parts.
func (r *Renderer) name(s string) template.HTML {
	return template.HTML(strings.NewReplacer("/", "/<wbr>", ":", ":<wbr>").Replace(template.HTMLEscapeString(r.text(s)))) // no entity contains these
}

func (r *Renderer) part(id, name string, data any) (Part, error) {
	var b strings.Builder
	err := r.t.ExecuteTemplate(&b, name, data)
	return Part{id, b.String()}, err
}

// Run renders a run: what it is and what it has used, the list of its rounds, and the details of
// the last ones.
func (r *Renderer) Run(p Page) (parts []Part, err error) {
	add := func(id, name string, data any) {
		var one Part
		if err == nil {
			one, err = r.part(id, name, data)
			parts = append(parts, one)
		}
	}
	add("run", "run", p)
	add("rounds", "rounds", p)
	for _, round := range p.Detailed() {
		add(fmt.Sprintf("r%d", round.Number), "round", round)
	}
	return parts, err
}

// View is an element of a page of a server: [Acts], [Evaluation], [List], [Pair], [Plan], [Refusal], [SignIn] or [Wait].
type View interface {
	element() string // its id, and the name of its template
}

func (Acts) element() string       { return "act" }
func (Evaluation) element() string { return "evaluation" }
func (List) element() string       { return "runs" }
func (Pair) element() string       { return "compare" }
func (Plan) element() string       { return "plan" }
func (Refusal) element() string    { return "refusal" }
func (SignIn) element() string     { return "sign-in" }
func (Wait) element() string       { return "wait" }

// View renders an element. It exists even if it has nothing to show.
func (r *Renderer) View(v View) (Part, error) { return r.part(v.element(), v.element(), v) }

// Pair is two runs, side by side.
type Pair []Page

// SignIn is the password form, which posts to a path. Why says what was wrong with the last
// attempt; it may be empty.
type SignIn struct{ To, Why string }

// Refusal says that there is no page to show, and why.
type Refusal struct{ Title, Why string }

// Wait is a call of a model that has not ended.
type Wait struct {
	Model string // empty if no model is asked now
	Role  string
	Since string // the time of day
	Text  string // of the reply so far; empty if none has arrived, or if it is unknown
}

type document struct {
	Served
	Policy string       // of a page that is one file
	Sheet  template.CSS // its style sheet; empty if a server has it
	Body   template.HTML
}

// File writes a run as one file that needs no script, no network and no other file.
func (r *Renderer) File(w io.Writer, p Page) error {
	parts, err := r.Run(p)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(Style()))
	return r.write(w, document{Served: Served{Title: p.Title(), Version: p.Version, Parts: parts}, Sheet: template.CSS(Style()),
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"})
}

// Served is a page of a server, which also serves [Style] as /page.css, [Script] as
// /page.js and [Icon] as /icon.svg, all three below the path of [Renderer.Under].
type Served struct {
	Title   string
	Version string // of the program
	Place   string // the page's name in the bar at the top; empty: it is the list of runs
	Stream  string // the path from which changes of its parts come
	Seen    string // the last change that the parts include
	Parts   []Part
}

// Serve writes a page of a server.
func (r *Renderer) Serve(w io.Writer, s Served) error { return r.write(w, document{Served: s}) }

func (r *Renderer) write(w io.Writer, d document) error {
	var body strings.Builder
	for _, p := range d.Parts {
		body.WriteString(p.HTML)
	}
	d.Body = template.HTML(body.String()) // rendered by this package
	return r.t.ExecuteTemplate(w, "document", d)
}

// The class gives the mark its colour.
func class(mark string) string {
	switch mark {
	case "✓":
		return "good"
	case "✗", "▪":
		return "bad"
	case "!":
		return "warn"
	case "▸":
		return "live"
	}
	return "dim"
}

// Reply is the text of a model's reply while it arrives. The zero value is empty. Its methods
// may be called from several goroutines, and on nil, which stays empty.
type Reply struct {
	mu   sync.Mutex
	text string
}

// mostReply is how many bytes of the end of a reply are kept.
const mostReply = 16 << 10

// Add adds a piece of the text. Secrets must have been removed from it.
func (r *Reply) Add(text string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text += text
	if cut := len(r.text) - mostReply; cut > 0 {
		_, r.text, _ = strings.Cut(r.text[cut:], "\n") // whole lines
	}
}

// Show empties the text before each attempt at a call, and when the reply is recorded.
func (r *Reply) Show(e history.Event) {
	switch e.Payload.(type) {
	case history.Reserve, history.Replied:
		if r != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.text = ""
		}
	}
}

// Text returns the text that has arrived.
func (r *Reply) Text() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text
}
