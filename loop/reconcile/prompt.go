package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"hone"
	"hone/check"
	"hone/internal/git"
	"hone/internal/render"
	"hone/loop"
	"hone/model"
	"hone/workspace"
	"hone/workspace/secret"
)

// prompt is what a round's composing comes to; its record is what later
// rounds build on.
type prompt struct {
	// Base begins every prompt until it is composed anew, byte for byte.
	Base string `json:"base"`
	// Since is what follows it: what changed, and what was found.
	Since string `json:"since,omitempty"`
	// Anew says that Base was composed in this round.
	Anew bool `json:"anew,omitempty"`
	// Items are the files as the base shows them, Now as they are in this
	// round. Now is nil where both are the same.
	Items []item `json:"items"`
	Now   []item `json:"now,omitempty"`
	// Diff is the specs' difference as the base shows it.
	Diff specDiff `json:"diff"`
}

func (p prompt) messages() []model.Message {
	parts := []model.Part{{Text: p.Base, Cache: true}}
	if p.Since != "" {
		parts = append(parts, model.Part{Text: p.Since})
	}
	return []model.Message{{Role: model.User, Parts: parts}}
}

// current are the files as this round's prompt leaves them known.
func (p prompt) current() []item {
	if p.Now != nil {
		return p.Now
	}
	return p.Items
}

// seen tells which contents the model was shown.
func (p prompt) seen(path string) (string, bool) {
	for _, it := range p.current() {
		if it.Path == path && it.Digest != "" {
			return it.Digest, true
		}
	}
	return "", false
}

// files are the paths that hold a file. Below a link is another matter, which
// the review refuses.
func (p prompt) files() []string {
	var paths []string
	for _, it := range p.current() {
		if !it.Link {
			paths = append(paths, it.Path)
		}
	}
	return paths
}

// compose makes the round's prompt, as a step: it looks at the tree and asks
// git. The prompt that does not fit stops the run before anything is sent.
func (l Loop) compose(ctx context.Context, r *hone.Run, prior []check.Finding) (prompt, error) {
	past, err := hone.Earlier[prompt](r, "compose")
	if err != nil {
		return prompt{}, err
	}
	p, err := hone.Step(ctx, r, "compose", prior, func(ctx context.Context) (prompt, error) {
		files, err := r.Manifest(ctx)
		if err != nil {
			return prompt{}, err
		}
		items, diff, err := l.look(ctx, r.Tree, files)
		if err != nil {
			return prompt{}, err
		}
		base, ok := lastBase(past)
		if ok {
			base.Since, base.Now, ok = since(base, items, diff)
		}
		if !ok {
			base = prompt{Base: whole(items, diff), Anew: true, Items: items, Diff: diff}
		}
		base.Since += findings(prior, r.Round(), r.Limits.Rounds)
		return base, nil
	})
	if err != nil {
		return p, err
	}
	if err := l.notices(r, p); err != nil {
		return p, err
	}
	return p, l.explain(l.Editor.Fits(int64(len(l.Editor.System)+len(p.Base)+len(p.Since))), p)
}

// lastBase is the newest prompt that was composed anew.
func lastBase(past []prompt) (prompt, bool) {
	for _, p := range slices.Backward(past) {
		if p.Anew {
			p.Anew = false
			return p, true
		}
	}
	return prompt{}, false
}

// look reads what a prompt is made of. Git is asked for the difference while
// the files are read: a run's start waits for both.
func (l Loop) look(ctx context.Context, tree *workspace.Tree, files workspace.Manifest) ([]item, specDiff, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var main git.MainDiff
	var gitErr error
	var wait sync.WaitGroup
	wait.Go(func() { main, gitErr = l.Repo.DiffMain(ctx, "specs") })
	items, err := l.inventory(tree, files)
	if err != nil {
		cancel()
	}
	wait.Wait()
	if err = cmp.Or(err, gitErr); err != nil {
		return nil, specDiff{}, err
	}
	return items, l.diff(main, items), nil
}

// whole is a prompt that shows everything: specifications, their difference,
// files.
func whole(items []item, diff specDiff) string {
	var b strings.Builder
	b.WriteString("# The specifications\n\n")
	n := 0
	for ; n < len(items) && isSpec(items[n].Path); n++ {
		items[n].write(&b)
	}
	if n == 0 {
		b.WriteString("There are none.\n\n")
	}
	diff.write(&b)
	b.WriteString("# The files\n\n")
	for _, it := range items[n:] {
		it.write(&b)
	}
	b.WriteString(closing)
	return b.String()
}

// closing ends a prompt: what stands last is what is done.
const closing = "# Your answer\n\nAnswer with the JSON object.\n"

// write shows one file between headers that no line of it resembles.
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

// since says what replaces parts of the base. It is not ok where that passes
// a quarter of it: then the prompt is better composed anew (ruling B10).
func since(base prompt, items []item, diff specDiff) (text string, now []item, ok bool) {
	var b strings.Builder
	old := map[string]item{}
	for _, it := range base.Items {
		old[it.Path] = it
	}
	for _, it := range items {
		if was, ok := old[it.Path]; !ok || !was.same(it) {
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
		return "", nil, true
	}
	if b.Len() > len(base.Base)/4 {
		return "", nil, false
	}
	return "\n# Since then\n\nSince then these files changed; the versions below replace those above.\n\n" + b.String(), items, true
}

// findings words what the last round left, for the model.
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
	for i, f := range blockingFirst(prior) {
		kind := "Finding"
		if f.Advisory {
			kind = "Note"
		}
		fmt.Fprintf(&b, "## %s %d, from %s", kind, i+1, f.Source)
		if f.File != "" {
			fmt.Fprintf(&b, ", on %s", render.Path(f.File))
		}
		fmt.Fprintf(&b, "\n\n%s\n\n", strings.TrimRight(f.Text, "\n"))
	}
	b.WriteString(closing)
	return b.String()
}

func blockingFirst(prior []check.Finding) []check.Finding {
	sorted := slices.Clone(prior)
	slices.SortStableFunc(sorted, func(a, b check.Finding) int {
		switch {
		case a.Advisory == b.Advisory:
			return 0
		case a.Advisory:
			return 1
		}
		return -1
	})
	return sorted
}

// Preview composes the first prompt without sending or recording anything.
func (l Loop) Preview(ctx context.Context, tree *workspace.Tree) (loop.Prompt, error) {
	files, err := tree.Manifest(ctx, nil)
	if err != nil {
		return loop.Prompt{}, err
	}
	items, diff, err := l.look(ctx, tree, files)
	if err != nil {
		return loop.Prompt{}, err
	}
	p := prompt{Base: whole(items, diff), Items: items}
	v := loop.Prompt{System: l.Editor.System, Text: p.Base}
	for _, it := range items {
		if it.Digest != "" {
			v.Files++
		}
	}
	v.Fits = l.explain(l.Editor.Fits(int64(len(v.System)+len(v.Text))), p)
	return v, nil
}

// notices tells a person, once a run, what the model is not shown.
func (l Loop) notices(r *hone.Run, p prompt) error {
	if p.Diff.Ref == "" {
		if err := r.Notice("there is no branch main, locally or at origin: the prompt does not show how specs/ changed"); err != nil {
			return err
		}
	}
	for _, it := range p.current() {
		if !strings.HasPrefix(it.Note, render.Withheld) {
			continue
		}
		text := render.Path(it.Path) + ": " + it.Note
		if !strings.HasSuffix(it.Note, secret.OwnKeyReason) { // no setting lets that out
			text += " (to send it: [guard] send in .config/hone.toml)"
		}
		if err := r.Notice(text); err != nil {
			return err
		}
	}
	return nil
}
