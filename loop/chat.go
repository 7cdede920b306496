package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/internal/lazyregexp"
	"hone/internal/render"
	"hone/tool"
	"hone/workspace"
	"hone/workspace/secret"
)

// Chat is a [Loop] in whose rounds a model works with tools, in one conversation each, until the user's check passes. The
// [Kind.New] of such a loop returns one with Role, Rules and Prompt; the zero values of the other fields are defaults. A loop
// with more of its own embeds it, and defines the methods that differ.
type Chat struct {
	Settings
	System string `json:"system"` // Rules, and what follows from the settings

	Role  string `json:"-"` // the name of the model's role
	Rules string `json:"-"` // describes its part to the model (ruling G13)
	// AgentRules replaces Rules if the model is a command-line agent with tools of its own. It is empty if the loop's
	// [Kind] allows no agents.
	AgentRules string `json:"-"`
	// Prompt returns the start of a round's prompt, which is the same in all rounds. The user's text is [Settings.Task].
	Prompt func(s *Settings) string `json:"-"`
	// Report returns the end of a round's prompt, after the list of files. last is what the last session did and said;
	// empty if there was none. Nil means [Report] with what the check reports.
	Report func(r *hone.Run, last string, found []check.Finding) string `json:"-"`
	// Tools returns the loop's own tools, beside those of the toolset, which it may change before. Nil means no more.
	Tools func(s Session, set *Toolset) ([]tool.Tool, error) `json:"-"`
}

// Resolve reads flags and configuration. It requires a check.
func (c *Chat) Resolve(_ context.Context, in *Input) (err error) {
	if config.Check.In(in.Values) == "" {
		return Usage("there is no check, so nothing decides when "+in.Kind.Name+" is done",
			`hone `+in.Kind.Name+` --check "`+ExampleCheck+`", or set "command" in the [check] section of .config/hone.toml`)
	}
	return c.Use(in)
}

// Use resolves the settings, with or without a check.
func (c *Chat) Use(in *Input) (err error) {
	if c.Settings, err = in.Settings(); err != nil {
		return err
	}
	c.About, c.System = c.Check, c.Walls.System(c.Rules)
	if c.Model.Agent != nil {
		c.System = c.AgentRules
	}
	c.Task, err = in.Text()
	return err
}

// Build puts round, tools and check together. The check runs before the first round.
func (c *Chat) Build(s Session) (built Built, err error) {
	r := s.NewRun(workspace.Rules{Guard: s.Guard()})
	var role hone.Role
	var checking Walls // nil: those of the model's commands
	if c.Model.Agent == nil {
		role, err = c.equip(s)
	} else {
		// An agent may write its settings into a home of its own. The check does not get what the agent gets.
		agent := s.Walls(WallPlan{OwnHome: true})
		checking = s.Walls(WallPlan{After: agent})
		role = c.Model.Role(c.Role, c.WithAdvice(c.System))
		role.Bounds = c.Bounds()
		err = s.SetModel(&role, &c.Model, agent)
	}
	if c.Check != "" {
		s.SetCheck(checking, s.Check)
	}
	c.SetJudge(r, c.Check)
	r.Trust.CheckFirst = hone.Informed
	return Built{Run: r, Round: c.Round(role, s.Guard()), Turns: map[string]int{role.Name: c.Bounds().Turns}}, err
}

func (c *Chat) equip(s Session) (role hone.Role, err error) {
	role = s.Role(c.Role, c.System)
	set := Toolset{Programs: c.Programs()}
	var own []tool.Tool
	if c.Tools != nil {
		own, err = c.Tools(s, &set)
	}
	if err == nil {
		role.Tools, err = s.Tools(set)
	}
	role.Tools = append(role.Tools, own...)
	return role, err
}

// Round returns a round: one conversation, which starts with what the one before did and said, and what the check reports.
// Where the budget ends it, what was changed still counts.
func (c *Chat) Round(role hone.Role, guard *secret.Guard) hone.Round {
	return func(ctx context.Context, r *hone.Run, found []check.Finding) ([]check.Finding, error) {
		last, err := r.LastSession(role)
		if err != nil {
			return nil, err
		}
		place, err := Look(ctx, r, guard)
		if err != nil {
			return nil, err
		}
		report := c.Report
		if report == nil {
			report = func(_ *hone.Run, last string, found []check.Finding) string {
				return Report(last, "What it reports now:", found)
			}
		}
		_, err = Converse(ctx, r, role, hone.Text(c.Prompt(&c.Settings), place+report(r, last, found)))
		return nil, err
	}
}

// Report tells a model what its last session did and said, and the findings after a lead. last may be empty.
func Report(last, lead string, found []check.Finding) string {
	if last != "" {
		last = "\n" + last + "\n" + FalseClaim(last, found)
	}
	if note, others := ProofNote(found); note != "" {
		lead, found = note+"\n\nWhat it reports:", others
	}
	if len(found) == 0 {
		return last
	}
	return last + "\n" + lead + "\n\n" + strings.Join(ForModel(found), "\n\n") + "\n"
}

// Preview returns the first prompt without what a run adds.
func (c *Chat) Preview(context.Context, View) (Prompt, error) {
	system := c.WithAdvice(c.System)
	text := c.Prompt(&c.Settings)
	return Prompt{System: system, Text: text, What: "the instructions; a run adds the check's report",
		Fits: c.Model.Role(c.Role, system).Fits(int64(len(system) + len(text)))}, nil
}

var (
	sentenceEnd = lazyregexp.New(`[.!?]+(?:\s+|$)|\n+|, and said: `)
	// claim matches a sentence that says that a check passes.
	claim = lazyregexp.New(`(?i)\bexit(?:s|ed)?(?:[ _:=]|with|status|code)*\b0\b|\b(?:checks?|tests?|suite|build)\b.*\bpass(?:es|ed|ing)?\b`)
	// doubt matches what such a sentence has if it says something else, or speaks of some tests only.
	doubt = lazyregexp.New(`(?i)n't\b|\b(?:not|no|never|cannot|fail\w*|should|would|will|may|might|could|if|when|once|until|unless|must|needs?|want\w*|to pass|only|previously|before|\d+ of \d+` +
		`|packages?|modules?|files?|folders?|director(?:y|ies)|these|those|others?|new|unit|both|remaining|\w+_\w+)\b`)
	exited = lazyregexp.New(`^The check command failed: exit status (\d+)`)
)

// FalseClaim answers a model that says that the check passes: it quotes the claim, and says
// what hone saw when it ran the check afterwards. A line, or empty if the model did not say so, or
// if no finding is of the check in this tree.
func FalseClaim(said string, findings []check.Finding) string {
	found := slices.DeleteFunc(check.BlockingOf(findings), func(f check.Finding) bool { return f.Source != check.SourceCommand || f.Broken })
	if len(found) == 0 {
		return ""
	}
	for sentence := range strings.SplitSeq(sentenceEnd.ReplaceAllString(said, "\x00"), "\x00") {
		if !claim.MatchString(sentence) || doubt.MatchString(sentence) {
			continue
		}
		saw := "it reports " + check.Tally(found)
		if m := exited.FindStringSubmatch(found[0].Text); m != nil {
			saw = "it exits with status " + m[1]
		}
		return fmt.Sprintf("You wrote %q. hone ran the check after that: %s.\n", render.Cut(strings.TrimSpace(sentence), 200), saw)
	}
	return ""
}

// The limits of the list of files in a session's first prompt.
const (
	maxFiles     = 200
	maxFilesText = 8 << 10 // bytes
)

// FilesText lists the files of a tree but for those that git ignores and the loop's own, so that a model need not ask for
// them: all of them, or those that are the least deep; and in a line those that judge its work. It is empty if there are none.
// own and judges may be nil.
func FilesText(tree workspace.Manifest, guard *secret.Guard, own, judges func(path string) bool) string {
	files := slices.DeleteFunc(slices.Clone(tree), func(f workspace.Entry) bool { return f.Ignored || own != nil && own(f.Path) })
	if len(files) == 0 {
		return ""
	}
	part := ""
	if judges != nil {
		part = guard.Redact(partOfCheck(files, judges))
	}
	text, listed := namesOf(files, guard)
	if listed == len(files) {
		return "Files:\n" + text + part
	}
	slices.SortStableFunc(files, func(a, b workspace.Entry) int {
		return cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/"))
	})
	text, listed = namesOf(files, guard)
	return fmt.Sprintf("Files (%d of %d; none of the others is less deep):\n%s", listed, len(files), text+part)
}

// likeTest matches the names of tests, which are told as a pattern.
var likeTest = lazyregexp.New(`^(?:(test_).+(\.\w+)|.+([_.-](?:test|spec)\.\w+))$`)

// maxParts is how many names and patterns of files that are part of the check are told.
const maxParts = 12

func partOfCheck(files workspace.Manifest, judges func(path string) bool) string {
	others := map[string]bool{} // directories that have files that are not
	var judging workspace.Manifest
	for _, f := range files {
		if judges(f.Path) {
			judging = append(judging, f)
			continue
		}
		for dir := path.Dir(f.Path); dir != "." && !others[dir]; dir = path.Dir(dir) {
			others[dir] = true
		}
	}
	var parts []string
	for _, f := range judging {
		part := render.Line(f.Path)
		if m := likeTest.FindStringSubmatch(path.Base(f.Path)); m != nil {
			part = m[1] + "*" + m[2] + m[3]
		}
		for dir := path.Dir(f.Path); dir != "." && !others[dir]; dir = path.Dir(dir) {
			part = render.Line(dir) + "/"
		}
		if slices.Contains(parts, part) {
			continue
		}
		if len(parts) == maxParts {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	return "Part of the check, which must pass without edits of these: " + strings.Join(parts, ", ") + "\n"
}

func namesOf(files workspace.Manifest, guard *secret.Guard) (text string, listed int) {
	var dirs []string
	names, size := map[string][]string{}, 0
	for _, f := range files[:min(len(files), maxFiles)] {
		dir, name := path.Split(render.Line(guard.Redact(f.Path)))
		if strings.Contains(name, ", ") {
			name = strconv.Quote(name)
		}
		if _, withheld := guard.WithheldName(f.Path); withheld {
			name += " (withheld)"
		}
		if size += len(name) + len(", "); names[dir] == nil {
			size += len(dir)
		}
		if size > maxFilesText {
			break
		}
		if names[dir] == nil {
			dirs = append(dirs, dir)
		}
		names[dir] = append(names[dir], name)
		listed++
	}
	var b strings.Builder
	for _, dir := range dirs {
		list := strings.Join(names[dir], ", ")
		if dir != "" {
			list = dir + ": " + list
		}
		b.WriteString("  " + list + "\n")
	}
	return b.String(), listed
}

// Look tells a model where it works: the directory and the files of the run's tree but for its own. It is looked at once a round.
func Look(ctx context.Context, r *hone.Run, guard *secret.Guard) (string, error) {
	return hone.Step(ctx, r, "look", nil, func(ctx context.Context) (string, error) {
		tree, err := r.Manifest(ctx)
		return fmt.Sprintf("\nWorking directory: %s\n%s", render.Line(guard.Redact(r.Tree.Dir())), FilesText(tree, guard, r.Own, r.Judges)), err
	})
}

// Advised is the end of a prompt with the user's advice; empty if there is none.
func Advised(advice string) string {
	if advice == "" {
		return ""
	}
	return "\nThe user adds this advice:\n\n" + strings.TrimSpace(advice) + "\n"
}

// Template returns a function that fills one of the templates of a text, by its name; the text's own is "". They are parsed when
// they are first needed, and have line, indented, advised and the functions of more. A template that fails is a fault of the
// program, so the function panics.
func Template(text string, more template.FuncMap) func(name string, data any) string {
	parsed := sync.OnceValue(func() *template.Template {
		return template.Must(template.New("").Funcs(template.FuncMap{"line": render.Line, "indented": Indented, "advised": Advised}).Funcs(more).Parse(text))
	})
	return func(name string, data any) string {
		var b strings.Builder
		if err := parsed().ExecuteTemplate(&b, name, data); err != nil {
			panic(err)
		}
		return b.String()
	}
}

// Explain adds to a [*hone.ContextError] what takes the room of the prompt, and what the user can do (ruling G10). It
// returns any other error as it is, also nil.
func Explain(err error, room func() string, remedy string) error {
	var c *hone.ContextError
	if errors.As(err, &c) && c.Room == "" {
		c.Room, c.Remedy = room(), remedy
	}
	return err
}

// Indented returns a text without the space around it, as a block of code in Markdown.
func Indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}
