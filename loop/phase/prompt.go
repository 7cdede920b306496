package phase

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"text/template"
	"unicode/utf8"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/artifact"
	"hone/internal/render"
	"hone/loop"
	"hone/loop/phase/spec"
	"hone/model"
)

// The roles as `hone init phase` writes them into prompts/. They are also used if
// those files are missing.
var (
	//go:embed builder.md
	BuilderRole string
	//go:embed verifier.md
	VerifierRole string
)

var (
	//go:embed folder-builder.md
	builderFolder string
	//go:embed folder-builder-tools.md
	builderTools string
	//go:embed folder-verifier.md
	verifierFolder string
	//go:embed folder-verifier-suite.md
	verifierSuite string
	//go:embed folder-verifier-session.md
	verifierSession string
	//go:embed folder-verifier-tools.md
	verifierTools string
)

// BuilderSystem returns the system text of a builder: the text of its role, a
// description of its workspace, and one of its tools unless it is an agent with tools
// of its own.
func BuilderSystem(role string, agent bool) string {
	return system(role, builderFolder, builderTools, agent)
}

// VerifierSystem returns the system text of a verifier; url is the server's address.
func VerifierSystem(role, url string, agent bool) string {
	return system(role, fmt.Sprintf(verifierFolder, url)+"\n"+verifierSuite+"\n"+verifierSession, verifierTools, agent)
}

func system(role, folder, tools string, agent bool) string {
	text := strings.TrimSpace(role) + "\n\n" + strings.TrimSpace(folder)
	if !agent {
		text += "\n\n" + strings.TrimSpace(tools)
	}
	return text + "\n"
}

// assignment is what a role is asked to do, in the seed's words.
type assignment string

const (
	toBuild  assignment = "Execute your build instructions."
	toWrite  assignment = "Write the initial test suite for this phase."
	toVerify assignment = "Run the test suite. Write failed_specs.md on failure."
	// It is hone's (ruling A14).
	toCorrect assignment = "Correct the test suite."
)

type composed struct {
	Context     string `json:"context"`
	Instruction string `json:"instruction"`
	history.Report
}

// What the prompt contains, and what not, is the information boundary of the seed, but for the names that the builder chose:
// the verifier does not get the map (ruling A15).
func (l *Loop) compose(ctx context.Context, r *hone.Run, e assignment, prior []check.Finding) ([]model.Message, error) {
	deps, err := repeatable(ctx, r, "map dependencies", func(ctx context.Context) (string, error) {
		got, err := l.Hooks.Call(ctx, "map_deps")
		if err != nil || got.Exit == 0 {
			return got.Output, err
		}
		if tree, err := Map(filepathIn(r, Src)); err == nil && strings.HasSuffix(tree, emptyMap) {
			return "", nil // there is nothing yet that could depend on anything (ruling A9)
		}
		return "", got.Failed("map_deps")
	})
	if err != nil {
		return nil, err
	}
	projectMap, err := hone.Step(ctx, r, "map", deps, func(context.Context) (string, error) {
		tree, err := Map(filepathIn(r, Src))
		if err != nil {
			return "", fmt.Errorf("map %s: %w", Src, err)
		}
		text := l.Guard.Redact(strings.TrimRight(tree, "\n")) + "\n---\n" + l.readable(deps) + "\n" // the seed's form
		return text, artifact.Write(r.Tree.Dir(), MapName, strings.NewReader(text))
	})
	if err != nil {
		return nil, err
	}
	if e != toBuild {
		projectMap = ""
	}
	c, err := hone.Step(ctx, r, "compose", []any{e, prior, projectMap}, func(context.Context) (composed, error) {
		last := ""
		if e == toBuild {
			if last, err = r.LastSession(l.Builder); err != nil {
				return composed{}, err
			}
		}
		return l.prompt(r.Tree.Dir(), e, r.Round(), projectMap, last, prior)
	})
	if err != nil {
		return nil, err
	}
	if err := l.fits(e, r.Tree.Dir(), c); err != nil {
		return nil, err
	}
	return []model.Message{{Role: model.User, Parts: []model.Part{{Text: c.Context}, {Text: c.Instruction}}}}, nil
}

func (l *Loop) role(e assignment) hone.Role {
	switch e {
	case toBuild:
		return l.Builder
	case toWrite, toCorrect:
		return l.Writer
	}
	return l.Verifier
}

//go:embed request.md
var requestText string

// requests are the templates of what a role gets beside its system text: what it should know, and what it is asked to do.
var requests = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"section": func(title, text string) string {
			if text = strings.TrimRight(text, "\n"); text == "" {
				return ""
			}
			return fmt.Sprintf("===== %s =====\n%s\n\n", title, text)
		},
		"said": func(prior []check.Finding, source string) string { return loop.FindingTexts(fromSource(prior, source)) },
	}).Parse(requestText))
})

// Ruling A2 and the seed's information boundaries say what a role gets about earlier rounds.
func (l *Loop) prompt(dir string, e assignment, round int, projectMap, last string, prior []check.Finding) (composed, error) {
	specs, err := l.specs(dir)
	project, other := readText(dir, projectName)
	if project == "" && other == nil {
		project, other = readText(dir, ".abl/"+projectName) // ABL's later layout
	}
	if err = cmp.Or(err, other); err != nil {
		return composed{}, err
	}
	role := l.role(e)
	var outside []check.Finding // about the role's own files
	for _, f := range fromSource(prior, "outside") {
		if name, ok := strings.CutPrefix(f.File, role.Dir+"/"); ok && e != toWrite && e != toCorrect {
			outside = append(outside, check.Finding{File: name, Text: f.Text})
		}
	}
	data := map[string]any{"Asks": e, "Builds": e == toBuild, "Verifies": e == toVerify, "Corrects": e == toCorrect, "Phase": l.Phase, "Round": round,
		"Project": project, "Map": projectMap, "Specs": specs, "Last": last, "Prior": prior, "Outside": outside,
		"Checked": strings.Join(loop.ForModel(fromSource(prior, check.SourceCommand)), "\n\n"), "Role": role, "Bounds": role.Bounds.Resolved(), "Server": l.Server}
	var context, instruction strings.Builder
	err = cmp.Or(requests().ExecuteTemplate(&context, "context", data), requests().ExecuteTemplate(&instruction, "instruction", data))
	return composed{l.Guard.Redact(context.String()), instruction.String(), history.Report{Said: l.announce(e, prior)}}, err
}

func (l *Loop) announce(e assignment, prior []check.Finding) string {
	name := "the " + l.role(e).Name
	switch e {
	case toWrite:
		return name + " writes the suite"
	case toVerify:
		return name + " attacks the server"
	case toCorrect:
		return name + " gets the suite back:\n" + loop.FindingTexts(fromSource(prior, sourceSuite))
	}
	if failed := check.BlockingOf(prior); len(failed) > 0 {
		return name + " gets " + check.Tally(failed)
	}
	return name + " writes code"
}

// Both roles get the specifications of the phases up to this one (rulings A1 and A13).
func (l *Loop) specs(dir string) ([]spec.Phase, error) {
	specs, err := spec.Read(dir, l.Phase)
	if wrong := (*spec.Error)(nil); errors.As(err, &wrong) {
		err = &hone.Stop{Kind: hone.KindUsage, Why: wrong.Why, Next: hone.Next{First: "fix the specifications", Verb: hone.Resume}}
	}
	return specs, err
}

const maxText = 1 << 20

func readText(dir, name string) (string, error) {
	text, err := artifact.Read(dir, name, maxText)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !utf8.Valid(text):
		return "", fmt.Errorf("%s is not UTF-8 text", name)
	}
	return string(bytes.TrimPrefix(text, []byte("\uFEFF"))), nil
}

// RoleText returns the text of a role in the project's prompts/, or hone's own if
// there is none.
func RoleText(dir, role string) (string, error) {
	text, err := readText(dir, "prompts/"+role+".md")
	if err != nil || strings.TrimSpace(text) != "" {
		return text, err
	}
	if role == "builder" {
		return BuilderRole, nil
	}
	return VerifierRole, nil
}

func (l *Loop) fits(e assignment, dir string, c composed) error {
	role := l.role(e)
	return loop.Explain(role.Fits(int64(len(role.System)+len(c.Context)+len(c.Instruction))), func() string {
		var b strings.Builder
		rest := len(c.Context)
		specs, _ := l.specs(dir) // which the prompt already contains
		for _, s := range specs {
			fmt.Fprintf(&b, "  %10d bytes  %s\n", len(s.Text), s.Path)
			rest -= len(s.Text)
		}
		fmt.Fprintf(&b, "  %10d bytes  %s, %s and the failures", max(rest, 0), projectName, MapName)
		return b.String()
	}, "shorten the specifications")
}

// Map draws the tree of files below a directory, like the program tree with
// -I 'node_modules|.git' --dirsfirst: without hidden files, directories first,
// names in byte order. The first line is the directory's name with a slash, the last
// line "N directories, M files", without the directory itself. Every line ends with
// a line feed.
//
// Besides node_modules and .git it omits large directories that tools create:
// __pycache__, directories with a CACHEDIR.TAG (such as Cargo's target), and
// Python's virtual environments. It lists symlinks with their targets, counts them
// as files and never follows them. It escapes control characters in names. The line of
// a directory that cannot be read says so; Map returns an error only if dir itself
// cannot be read.
func Map(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("map: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("map: %w", err)
	}
	defer root.Close()
	var out strings.Builder
	folders, files := 0, 0
	var draw func(dir, lead string, entries []fs.DirEntry)
	draw = func(dir, lead string, entries []fs.DirEntry) {
		for i, e := range entries {
			branch, below := "├── ", "│   "
			if i == len(entries)-1 {
				branch, below = "└── ", "    "
			}
			name, text := path.Join(dir, e.Name()), lead+branch+mapName(e.Name())
			if target, err := root.Readlink(name); err == nil {
				text += " -> " + mapName(target)
			}
			if !e.IsDir() {
				files++
				out.WriteString(text + "\n")
				continue
			}
			folders++
			children, err := mapped(root, name)
			if err != nil {
				text += "  [cannot be read]"
			}
			out.WriteString(text + "\n")
			draw(name, lead+below, children)
		}
	}
	entries, err := mapped(root, ".")
	if err != nil {
		return "", fmt.Errorf("map: %w", err)
	}
	out.WriteString(mapName(filepath.Base(abs)) + "/\n")
	draw(".", "", entries)
	fmt.Fprintf(&out, "\n%s, %s\n", plural(folders, "directory", "directories"), plural(files, "file", "files"))
	return out.String(), nil
}

// emptyMap is how the map of an empty directory ends.
const emptyMap = "/\n\n0 directories, 0 files\n"

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func mapName(name string) string {
	return strings.ReplaceAll(render.Line(name), "\t", `\t`)
}

// mapped are the entries of a directory that a map shows, in its order.
func mapped(root *os.Root, dir string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(root.FS(), dir)
	var folders, files []fs.DirEntry
	for _, e := range all {
		name := e.Name()
		made := strings.HasPrefix(name, ".") || name == "node_modules" || name == "__pycache__"
		for _, tag := range []string{"CACHEDIR.TAG", "pyvenv.cfg"} {
			info, err := root.Lstat(path.Join(dir, name, tag))
			made = made || e.IsDir() && err == nil && info.Mode().IsRegular()
		}
		switch {
		case made:
		case e.IsDir():
			folders = append(folders, e)
		default:
			files = append(files, e)
		}
	}
	return append(folders, files...), err
}
