package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

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
			base.Since, base.Now, anew = changesSince(base, items, diff)
		}
		if anew {
			base = prompt{Base: l.fullPrompt(items, diff), Anew: true, Items: items, Diff: diff}
		}
		if len(past) == 0 {
			base.Warnings = l.warnings(r.Tree.Dir(), files, items)
		}
		for _, e := range files {
			if _, below := files.Entry(l.Task + "/" + e.Path); l.Task != "" && below && !l.within(e.Path) {
				base.Outside = append(base.Outside, e.Path)
			}
		}
		base.Since += findings(prior, r.Round(), r.Limits.Rounds)
		return base, nil
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

func (l *Loop) fullPrompt(items []item, diff specDiff) string {
	var b strings.Builder
	b.WriteString("# The specifications\n\n")
	n := 0
	for ; n < len(items) && l.isSpec(items[n].Path); n++ {
		if n == 0 {
			fmt.Fprintf(&b, "They are in %s.\n\n", l.specPlaces())
		}
		items[n].write(&b)
	}
	if n == 0 {
		fmt.Fprintf(&b, "There are none in %s.\n\n", l.specPlaces())
	}
	diff.write(&b)
	b.WriteString("# The files\n\n")
	for _, it := range items[n:] {
		it.write(&b)
	}
	b.WriteString(closing)
	return b.String()
}

// closing is the end of a prompt, which models follow best.
const closing = "# Your answer\n\nAnswer with the JSON object.\n"

// None of its lines resembles the headers.
func (it item) write(b *strings.Builder) {
	head := "--- FILE: " + render.Path(it.Path)
	if it.Added {
		head = "--- FILE (newly added): " + render.Path(it.Path)
	}
	if it.Digest == "" {
		fmt.Fprintf(b, "%s (%s) ---\n\n", head, it.Note)
		return
	}
	mark, end := "", ""
	if bytes.Contains(it.Content, []byte("--- FILE")) || bytes.Contains(it.Content, []byte("--- END FILE")) {
		mark = " #" + it.Digest[:8]
	}
	fmt.Fprintf(b, "%s%s ---\n%s", head, mark, it.Content)
	if n := len(it.Content); n > 0 && it.Content[n-1] != '\n' {
		b.WriteByte('\n')
		end = " (no newline at the end)"
	}
	if bytes.Contains(it.Content, []byte("\r\n")) {
		end += " (lines end in CR LF)"
	}
	fmt.Fprintf(b, "--- END FILE: %s%s%s ---\n\n", render.Path(it.Path), end, mark)
}

// They replace parts of a base. anew is true if they are larger than a quarter of the base, which should then be composed again
// (ruling B10).
func changesSince(base prompt, items []item, diff specDiff) (text string, now []item, anew bool) {
	var b strings.Builder
	old := map[string]item{}
	for _, it := range base.Items {
		old[it.Path] = it
	}
	for _, it := range items {
		if was, ok := old[it.Path]; !ok || was.Digest != it.Digest || was.Note != it.Note || was.Added != it.Added {
			it.write(&b)
		}
		delete(old, it.Path)
	}
	for _, it := range base.Items {
		if _, gone := old[it.Path]; gone {
			fmt.Fprintf(&b, "--- FILE: %s (deleted) ---\n\n", render.Path(it.Path))
		}
	}
	if diff != base.Diff {
		diff.write(&b)
	}
	if b.Len() == 0 {
		return "", nil, false
	}
	if b.Len() > len(base.Base)/4 {
		return "", nil, true
	}
	return "\n# Since then\n\nSince then these files changed; the versions below replace those above.\n\n" + b.String(), items, false
}

func findings(prior []check.Finding, round, rounds int) string {
	if len(prior) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n# The result of your last answer\n\nThis is round %d of %d.", round, max(round, rounds))
	if check.Blocking(prior) {
		b.WriteString(" The loop ends when no findings are left.")
	}
	b.WriteString("\n\n")
	for i, f := range loop.BlockingFirst(prior) {
		kind := "Finding"
		if f.Advisory {
			kind = "Note"
		}
		fmt.Fprintf(&b, "## %s %d, from %s", kind, i+1, f.Source)
		if f.File != "" {
			fmt.Fprintf(&b, ", on %s", render.Path(f.Place()))
		}
		fmt.Fprintf(&b, "\n\n%s\n\n", strings.TrimRight(f.Text, "\n"))
	}
	b.WriteString(closing)
	return b.String()
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
	p := prompt{Base: l.fullPrompt(items, diff), Items: items}
	v := loop.Prompt{System: l.Editor.System, Text: p.Base, Warnings: l.warnings(view.Tree.Dir(), files, items)}
	for _, it := range items {
		if it.Digest != "" {
			v.Files++
		}
	}
	v.Fits = l.explain(l.Editor.Fits(int64(len(v.System)+len(v.Text))), p)
	return v, nil
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
