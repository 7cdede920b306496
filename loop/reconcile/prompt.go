package reconcile

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"text/template"

	"hone"
	"hone/check"
	"hone/internal/render"
	"hone/loop"
	"hone/model"
	"hone/workspace"
)

// prompt is a round's prompt. Later rounds start from its record.
type prompt struct {
	// Base is the start of every prompt, byte for byte, until it is composed again.
	Base string `json:"base"`
	// Since follows Base: the changes since then, and the findings.
	Since string `json:"since,omitempty"`
	// Anew is true if Base was composed in this round.
	Anew bool `json:"anew,omitempty"`
	// Items are the files in Base, Now the files in this round. Now is nil if both are
	// the same.
	Items []item `json:"items"`
	Now   []item `json:"now,omitempty"`
	// Diff is the specs' difference in Base.
	Diff specDiff `json:"diff"`
	// Warnings are for the user; only in the first round.
	Warnings []string `json:"warnings,omitempty"`
	// Outside are the files outside SOURCE_DIR whose path, below SOURCE_DIR, is a file too.
	Outside []string `json:"outside,omitempty"`
}

func (p prompt) messages() []model.Message {
	parts := []model.Part{{Text: p.Base, Cache: true}}
	if p.Since != "" {
		parts = append(parts, model.Part{Text: p.Since})
	}
	return []model.Message{{Role: model.User, Parts: parts}}
}

func (p prompt) knownFiles() []item {
	if p.Now != nil {
		return p.Now
	}
	return p.Items
}

func (p prompt) digestOf(path string) (string, bool) {
	for _, it := range p.knownFiles() {
		if it.Path == path && it.Digest != "" {
			return it.Digest, true
		}
	}
	return "", false
}

func (p prompt) files() []string {
	var paths []string
	for _, it := range p.knownFiles() {
		if !it.Link {
			paths = append(paths, it.Path)
		}
	}
	return paths
}

// The path means a file below SOURCE_DIR if it exists only there (ruling B15).
func (l *Loop) place(p prompt, written string) string {
	below := path.Join(l.Task, written)
	if l.Task == "" || l.within(written) || slices.Contains(p.Outside, path.Clean(written)) || !slices.Contains(p.files(), below) {
		return written
	}
	return below
}

// A prompt that does not fit stops the run before anything is sent.
func (l *Loop) compose(ctx context.Context, r *hone.Run, prior []check.Finding) (prompt, error) {
	past, err := hone.Earlier[prompt](r, "compose")
	if err != nil {
		return prompt{}, err
	}
	p, err := hone.Step(ctx, r, "compose", prior, func(ctx context.Context) (prompt, error) {
		files, err := r.Manifest(ctx)
		if err != nil {
			return prompt{}, err
		}
		items, diff, err := l.inspect(ctx, r.Tree, files)
		if err != nil {
			return prompt{}, err
		}
		var base prompt
		anew := true
		for _, p := range past {
			if p.Anew {
				base, anew = p, false
			}
		}
		if !anew {
			base.Anew, base.Warnings, base.Outside = false, nil, nil
			base.Since, base.Now, anew, err = changesSince(base, items, diff)
		}
		if anew {
			base = prompt{Anew: true, Items: items, Diff: diff}
			base.Base, err = l.fullPrompt(items, diff)
		}
		if len(past) == 0 {
			base.Warnings = l.warnings(r.Tree.Dir(), files, items)
		}
		for _, e := range files {
			if _, below := files.Entry(l.Task + "/" + e.Path); l.Task != "" && below && !l.within(e.Path) {
				base.Outside = append(base.Outside, e.Path)
			}
		}
		if len(prior) > 0 && err == nil {
			var result string
			result, err = compose("result", map[string]any{"Round": r.Round(), "Rounds": max(r.Round(), r.Limits.Rounds), "Blocking": check.Blocking(prior), "Findings": loop.BlockingFirst(prior)})
			base.Since += result
		}
		return base, err
	})
	if err != nil {
		return p, err
	}
	if err := loop.Notices(r, append(slices.Clone(p.Warnings), l.contentNotices(p)...)...); err != nil {
		return p, err
	}
	return p, l.explain(l.Editor.Fits(int64(len(l.Editor.System)+len(p.Base)+len(p.Since))), p)
}

func (l *Loop) inspect(ctx context.Context, tree *workspace.Tree, files workspace.Manifest) ([]item, specDiff, error) {
	var unread []string
	for _, e := range files {
		if l.isSpec(e.Path) && e.IsUnread() {
			unread = append(unread, e.Path)
		}
	}
	items, err := l.inventory(tree, files)
	if err != nil {
		return nil, specDiff{}, err
	}
	main, err := l.Repo.DiffMain(ctx, unread, l.specDirs()...)
	return items, l.diff(main, items, unread), err
}

//go:embed request.md
var requestText string

// requests are the templates of a prompt's parts.
var requests = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"path": render.Path, "number": func(i int) int { return i + 1 },
		"trim": func(text string) string { return strings.TrimRight(text, "\n") }}).Parse(requestText))
})

func compose(name string, data any) (string, error) {
	var b strings.Builder
	err := requests().ExecuteTemplate(&b, name, data)
	return b.String(), err
}

func (l *Loop) fullPrompt(items []item, diff specDiff) (string, error) {
	n := 0
	for n < len(items) && l.isSpec(items[n].Path) {
		n++
	}
	var places []string
	for _, dir := range l.specDirs() {
		places = append(places, "`"+render.Path(l.Guard.Redact(dir))+"/`")
	}
	return compose("full", map[string]any{"Places": strings.Join(places, " and "), "Specs": items[:n], "Diff": diff, "Files": items[n:]})
}

// Mark makes the headers of a file differ from the lines in it.
func (it item) Mark() string {
	if bytes.Contains(it.Content, []byte("--- FILE")) || bytes.Contains(it.Content, []byte("--- END FILE")) {
		return " #" + it.Digest[:8]
	}
	return ""
}

// Open reports whether the last line has no end.
func (it item) Open() bool { return len(it.Content) > 0 && !bytes.HasSuffix(it.Content, []byte("\n")) }

// CRLF reports whether lines end in CR LF.
func (it item) CRLF() bool { return bytes.Contains(it.Content, []byte("\r\n")) }

// They replace parts of a base. anew is true if they are larger than a quarter of the base, which should then be composed again
// (ruling B10).
func changesSince(base prompt, items []item, diff specDiff) (text string, now []item, anew bool, err error) {
	var changed, deleted []item
	old := map[string]item{}
	for _, it := range base.Items {
		old[it.Path] = it
	}
	for _, it := range items {
		if was, ok := old[it.Path]; !ok || was.Digest != it.Digest || was.Note != it.Note || was.Added != it.Added {
			changed = append(changed, it)
		}
		delete(old, it.Path)
	}
	for _, it := range base.Items {
		if _, gone := old[it.Path]; gone {
			deleted = append(deleted, it)
		}
	}
	data := map[string]any{"Changed": changed, "Deleted": deleted}
	if diff != base.Diff {
		data["Diff"] = diff
	}
	text, err = compose("since", data)
	switch {
	case text == "":
		return "", nil, false, err
	case len(text) > len(base.Base)/4:
		return "", nil, true, err
	}
	return "\n# Since then\n\nSince then these files changed; the versions below replace those above.\n\n" + text, items, false, err
}

// Preview returns the prompt of the first round.
func (l *Loop) Preview(ctx context.Context, view loop.View) (loop.Prompt, error) {
	l.prepare(view.Repo, view.Guard)
	files, err := view.Tree.Manifest(ctx, nil)
	if err != nil {
		return loop.Prompt{}, err
	}
	items, diff, err := l.inspect(ctx, view.Tree, files)
	if err != nil {
		return loop.Prompt{}, err
	}
	p := prompt{Items: items}
	p.Base, err = l.fullPrompt(items, diff)
	v := loop.Prompt{System: l.Editor.System, Text: p.Base, Warnings: l.warnings(view.Tree.Dir(), files, items)}
	for _, it := range items {
		if it.Digest != "" {
			v.Files++
		}
	}
	v.Fits = l.explain(l.Editor.Fits(int64(len(v.System)+len(v.Text))), p)
	return v, err
}

const remedy = `exclude files with "not-sent" in .config/bork.json or with .gitignore, name a SOURCE_DIR`

// It has the number of files in a prompt that does not fit, and the largest of them and of the directories (ruling G10).
func (p prompt) sizeReport() string {
	sent, sizes := 0, map[string]int64{}
	for _, it := range p.knownFiles() {
		if it.Digest == "" {
			continue
		}
		sent++
		sizes[it.Path] += it.Size
		if top, _, ok := strings.Cut(it.Path, "/"); ok {
			sizes[top+"/"] += it.Size
		}
	}
	text := fmt.Sprintf("%d files are sent in full; the largest files and directories:", sent)
	largest := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b)) })
	for _, path := range largest[:min(10, len(largest))] {
		text += fmt.Sprintf("\n  %10d bytes  %s", sizes[path], render.Path(path))
	}
	return text
}
