package implement

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"hone"
	"hone/block"
	"hone/check"
	"hone/history"
	"hone/loop"
	"hone/model"
	"hone/workspace"
)

// The fixed sentences of the history (from the seed, and ruling C1).
const (
	firstLead = "The above query was provided, and you provided the following data in your response"
	laterLead = "You then provided the following data in your subsequent response"
	buildLead = "When the file replacements were made, the build provided the following output:"
)

// prompt is what a round adds to the prompt of the round before. The additions of all
// rounds, in order, are the complete prompt.
type prompt struct {
	Added string `json:"added"`
	// Shown are the files that count as seen by the model (ruling C13): those of the
	// rollup; only in the first round.
	Shown []string `json:"shown,omitempty"`

	before  []string // the additions of earlier rounds
	visible []string // the files that count as seen in this round
}

func (p prompt) parts() []string { return append(p.before[:len(p.before):len(p.before)], p.Added) }

func (p prompt) text() string { return strings.Join(p.parts(), "") }

// messages returns each round's addition as a separate part, so that the request also
// starts like the one before.
func (p prompt) messages() []model.Message {
	var parts []model.Part
	for _, text := range p.parts() {
		parts = append(parts, model.Part{Text: text, Cache: true})
	}
	return []model.Message{{Role: model.User, Parts: parts}}
}

// seen returns the files that the model has seen, with their current digests, because
// a build may change them.
func (p prompt) seen(r *hone.Run) hone.Seen {
	return func(path string) (string, bool) {
		if !slices.Contains(p.visible, path) {
			return "", false
		}
		_, image, err := r.Tree.Read(path)
		return image.Digest, err == nil
	}
}

// compose returns the round's prompt: query and code base in the first round, and
// later the model's answers with their outcomes. A prompt that does not fit stops the
// run before anything is sent.
func (l Loop) compose(ctx context.Context, r *hone.Run, prior []check.Finding) (prompt, error) {
	past, err := hone.Earlier[prompt](r, "compose")
	if err != nil {
		return prompt{}, err
	}
	said, err := hone.Earlier[exchange](r, "exchange")
	if err != nil {
		return prompt{}, err
	}
	written, err := hone.Earlier[history.Applied](r, "apply")
	if err != nil {
		return prompt{}, err
	}
	p, err := hone.Step(ctx, r, "compose", prior, func(ctx context.Context) (prompt, error) {
		if len(past) == 0 {
			return l.first(ctx, r)
		}
		return prompt{Added: roundHistory(len(past), said[len(said)-1], prior)}, nil
	})
	if err != nil {
		return p, err
	}
	for _, before := range past {
		p.before = append(p.before, before.Added)
		p.visible = append(p.visible, before.Shown...)
	}
	p.visible = append(p.visible, p.Shown...)
	for _, e := range written {
		for _, v := range e.Verdicts {
			p.visible = append(p.visible, v.Path)
		}
	}
	return p, explain(l.Coder.Fits(int64(len(l.Coder.System)+len(p.text()))), p)
}

// first returns the first round's prompt.
func (l Loop) first(ctx context.Context, r *hone.Run) (prompt, error) {
	files, err := r.Manifest(ctx)
	if err != nil {
		return prompt{}, err
	}
	return l.opening(r.Tree, files)
}

// opening returns the first round's prompt, with the user's rollup or hone's own.
func (l Loop) opening(tree *workspace.Tree, files workspace.Manifest) (prompt, error) {
	var shown []string
	text, _, err := tree.Read(RollupName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text, shown = rollup(l.reader(tree), files)
	case err != nil:
		return prompt{}, fmt.Errorf("read the code base: %w", err)
	default:
		shown = filesInRollup(string(text), files)
	}
	base := strings.ToValidUTF8(l.clean(string(text)), "\uFFFD")
	return prompt{Added: strings.TrimRight(l.Query, "\r\n") + "\n\n" + withNewline(base), Shown: shown}, nil
}

// filesInRollup returns the files that count as seen with the user's own rollup: those
// of its headers, or every tracked file if it has no headers (ruling C13).
func filesInRollup(rollup string, files workspace.Manifest) []string {
	shown := shownIn(rollup)
	if len(shown) > 0 {
		return shown
	}
	for _, e := range files {
		if !e.Untracked {
			shown = append(shown, e.Path)
		}
	}
	return shown
}

// Preview composes the first prompt without sending or recording anything.
func (l Loop) Preview(ctx context.Context, tree *workspace.Tree) (loop.Prompt, error) {
	files, err := tree.Manifest(ctx, nil)
	if err != nil {
		return loop.Prompt{}, err
	}
	p, err := l.opening(tree, files)
	fits := l.Coder.Fits(int64(len(l.Coder.System) + len(p.Added)))
	return loop.Prompt{System: l.Coder.System, Text: p.Added, Files: len(p.Shown), Fits: explain(fits, p)}, err
}

// exchange is the part of a reply that later prompts repeat.
type exchange struct {
	Text string `json:"text"`
}

// exchangeOf returns the readable parts of a reply, even if it is unusable (ruling
// C7).
func exchangeOf(said block.Reply) exchange {
	return exchange{Text: block.Format(block.Reply{Debug: said.Debug, Files: said.Files, Done: said.Done})}
}

// roundHistory returns a round's addition to the prompt (ruling C1): the fixed
// sentence, debugging thoughts, file blocks, and their outcome.
func roundHistory(round int, said exchange, prior []check.Finding) string {
	var b strings.Builder
	b.WriteString("\n")
	if round == 1 {
		b.WriteString(firstLead + "\n\n")
	} else {
		b.WriteString(laterLead + "\n\n")
	}
	b.WriteString(withNewline(said.Text) + "\n" + buildLead + "\n\n")
	for _, f := range outcome(prior) {
		if f.File != "" {
			fmt.Fprintf(&b, "%s: ", f.File)
		}
		b.WriteString(withNewline(f.Text))
	}
	return b.String()
}

// outcome returns the findings about the last reply. Problems of an unusable reply
// replace the findings of an earlier build, which the engine keeps until the next
// build and which the history already contains.
func outcome(prior []check.Finding) []check.Finding {
	unusable := slices.ContainsFunc(prior, func(f check.Finding) bool { return f.Source == sourceReply })
	return slices.DeleteFunc(slices.Clone(prior), func(f check.Finding) bool {
		return unusable && f.Source != sourceReply && !f.Advisory
	})
}

// withNewline returns a text that ends with a line feed.
func withNewline(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// explain adds the sizes of the prompt's parts to a context error (ruling G10).
func explain(err error, p prompt) error {
	var c *hone.ContextError
	if !errors.As(err, &c) || c.Room != "" {
		return err
	}
	parts := p.parts()
	c.Room = fmt.Sprintf("the query and the code base take %d bytes, the history of %d rounds %d",
		len(parts[0]), len(parts)-1, len(p.text())-len(parts[0]))
	c.Remedy = "make codeRollup.txt smaller, with fewer files or more in .gitignore, or choose a model with a larger context"
	return err
}
