package implement

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"hone"
	"hone/block"
	"hone/check"
	"hone/history"
	"hone/internal/excerpt"
	"hone/internal/render"
	"hone/loop"
	"hone/model"
	"hone/workspace"
)

// request has the templates of what the prompts say around query, code base, replies and outputs: the fixed sentences of the
// history are the seed's (and ruling C1).
//
//go:embed request.md
var request string

var fill = loop.Template(request, template.FuncMap{"newline": withNewline})

// prompt is what a round adds to the prompt of the round before. The additions of all
// rounds, in order, are the complete prompt.
type prompt struct {
	Added string `json:"added"`
	// Short is Added with a shortened outcome; empty if it is not shorter.
	Short string `json:"short,omitempty"`
	// Seen are the files that the model has seen, in addition to earlier rounds.
	Seen seenFiles `json:"seen,omitempty"`
	// Warnings are for the user.
	Warnings []string `json:"warnings,omitempty"`
	// Listed means that the first round names all files, so that the model can ask for
	// their contents (ruling C14); Choose, that it must ask before anything else.
	Listed bool `json:"listed,omitempty"`
	Choose bool `json:"choose,omitempty"`
	// Asked means that it shows files that the model asked for; Replied, that it repeats
	// the reply of the round before.
	Asked   bool `json:"asked,omitempty"`
	Replied bool `json:"replied,omitempty"`

	before []string  // the additions before this one, as it sends them
	seen   seenFiles // of all rounds
	listed bool      // in the first round
	asked  int       // how often the model asked for files
}

func (p prompt) parts() []string { return append(p.before[:len(p.before):len(p.before)], p.Added) }

func (p prompt) text() string { return strings.Join(p.parts(), "") }

// Each round's addition is a separate part, so that the request also starts like the one before.
func (p prompt) messages() []model.Message {
	var parts []model.Part
	for _, text := range p.parts() {
		parts = append(parts, model.Part{Text: text, Cache: true})
	}
	return []model.Message{{Role: model.User, Parts: parts}}
}

// It has the query and the code base in the first round, and later the model's answers with their outcomes. A prompt that does
// not fit stops the run before anything is sent.
func (l *Loop) compose(ctx context.Context, r *hone.Run, prior []check.Finding) (prompt, error) {
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
	seen := seenFiles{}
	for _, p := range past {
		maps.Copy(seen, p.Seen)
	}
	p, err := hone.Step(ctx, r, "compose", prior, func(ctx context.Context) (p prompt, err error) {
		if len(past) == 0 {
			files, err := r.Manifest(ctx)
			if err != nil {
				return p, err
			}
			return l.newPrompt(r.Tree, base(files))
		}
		p = laterPrompt(r.Round()-1, said[len(said)-1], prior)
		files, later, err := seen.changed(ctx, r, written)
		if err != nil {
			return p, err
		}
		text, shown := showChanged(l.reader(r.Tree), files)
		maps.Copy(later, shown)
		text = l.Guard.Redact(text)
		p.Seen, p.Added = later, p.Added+text
		if p.Short != "" {
			p.Short += text
		}
		return p, nil
	})
	if err != nil {
		return p, err
	}
	p.before = additions(append(past, p), said)[:len(past)]
	maps.Copy(seen, p.Seen)
	p.seen = seen
	for _, one := range append(past, p) {
		p.listed = p.listed || one.Listed
		if one.Asked {
			p.asked++
		}
	}
	return p, l.check(r, p)
}

// A prompt that does not fit is an error.
func (l *Loop) check(r *hone.Run, p prompt) error {
	if err := loop.Notices(r, p.Warnings...); err != nil {
		return err
	}
	return explain(l.Coder.Fits(int64(len(l.Coder.System)+len(p.text()))), p)
}

// It has the user's rollup or hone's own.
func (l *Loop) newPrompt(tree *workspace.Tree, files workspace.Manifest) (prompt, error) {
	var p prompt
	read := l.reader(tree)
	text, _, err := tree.Read(RollupName)
	switch {
	case err == nil && !l.Choose:
		p.Seen, p.Warnings, err = seenInRollup(tree, string(text), files)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		if err == nil {
			p.Warnings = []string{RollupName + " is not sent, because a flag chooses from the files themselves"}
		}
		err = nil
		p.Choose = l.files() == nil && l.isLarge(read, files)
		p.Listed = p.Choose || l.files() != nil
		if text = nil; p.Choose {
			text = []byte(list(read, files))
			break
		}
		if l.files() != nil {
			named := list(read, files)
			files, _ = pick(files, l.files())
			text, p.Seen = rollup(read, files)
			text = []byte(named + fill("shown", map[string]any{"More": true, "Contents": string(text)}))
			break
		}
		text, p.Seen = rollup(read, files)
	default:
		err = fmt.Errorf("read the code base: %w", err)
	}
	p.Added = strings.TrimRight(l.Task, "\r\n") + "\n\n" + withNewline(l.clean(string(text)))
	return p, err
}

func (l *Loop) clean(text string) string {
	return strings.ToValidUTF8(l.Guard.Redact(text), "\uFFFD")
}

// Preview returns the prompt of the first round.
func (l *Loop) Preview(ctx context.Context, view loop.View) (loop.Prompt, error) {
	l.prepare(view.Guard)
	files, err := view.Tree.Manifest(ctx, nil)
	if err != nil {
		return loop.Prompt{}, err
	}
	files = base(files)
	p, err := l.newPrompt(view.Tree, files)
	v := loop.Prompt{System: l.Coder.System, Text: p.Added, Files: len(p.Seen), Warnings: p.Warnings}
	if p.Choose {
		v.System, v.Text, v.What = pickSystem, p.Added+fill("pick", nil), "the names of "+render.Count(len(files), "file")+", from which the model chooses"
	}
	v.Fits = explain(l.Coder.Fits(int64(len(v.System)+len(v.Text))), p)
	return v, err
}

const (
	// maxReply is how many bytes of an unusable reply the next prompt repeats.
	maxReply = 16 << 10
	// shortOutcome is how many bytes of an earlier round's outcome remain when the
	// outcomes of all of them exceed maxOutcomes.
	shortOutcome = 4 << 10
	maxOutcomes  = 64 << 10
)

// exchange is the part of a reply that later prompts repeat.
type exchange struct {
	Text    string   `json:"text"`
	Wrote   bool     `json:"wrote,omitempty"`   // it was usable
	Created []string `json:"created,omitempty"` // the files that the reply created
}

// It is the fixed sentence, the reply, an unusable one as it was, and what came of it (ruling C1).
func laterPrompt(round int, said exchange, prior []check.Finding) prompt {
	unused := slices.ContainsFunc(prior, func(f check.Finding) bool { return f.Source == check.SourceReply })
	if unused {
		said.Created = nil
	}
	head, result := fill("later", map[string]any{"First": round == 1, "Reply": said.Text, "Created": strings.Join(said.Created, ", "), "Used": !unused}), ""
	for _, f := range prior {
		// Problems of an unusable reply replace the findings of an earlier build, which the engine keeps until the next build and
		// which the history already contains.
		if !unused || f.Source == check.SourceReply || f.Advisory {
			result += withNewline(loop.FindingText(f))
		}
	}
	p := prompt{Added: head + result, Replied: true}
	if len(result) > 2*shortOutcome {
		p.Short = head + excerpt.Middle(result, shortOutcome)
	}
	return p
}

// When the additions before the last exceed a limit they are shortened all at once, so that providers seldom have to read them
// anew.
func additions(rounds []prompt, said []exchange) []string {
	var texts []string
	whole := 0 // bytes that could be saved
	for i, p := range rounds {
		if whole > maxOutcomes {
			for k := range texts {
				texts[k] = cmp.Or(rounds[k].Short, texts[k])
			}
			whole = 0
		}
		if texts = append(texts, p.Added); rounds[i].Short != "" {
			whole += len(p.Added) - len(p.Short)
		}
	}
	if len(rounds) > 0 && rounds[0].Listed {
		onlyNewest(texts, rounds, said)
	}
	return texts
}

// Files that a later reply wrote again are left out of earlier replies (ruling C14).
func onlyNewest(texts []string, rounds []prompt, said []exchange) {
	var at []int // the addition that repeats a reply
	for i, p := range rounds {
		if p.Replied {
			at = append(at, i)
		}
	}
	newer := map[string]bool{}
	for n, i := range slices.Backward(at) {
		if !said[n].Wrote {
			continue
		}
		reply, _ := block.Parse(said[n].Text)
		for _, f := range reply.Files {
			if name := path.Clean(f.Path); newer[name] {
				old := block.Format(block.Reply{Files: []block.File{f}})
				texts[i] = strings.Replace(texts[i], old, fmt.Sprintf("[%s: you wrote it again below]\n", render.Path(f.Path)), 1)
			} else {
				newer[name] = true
			}
		}
	}
}

func withNewline(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// It adds the sizes of the prompt's parts (ruling G10).
func explain(err error, p prompt) error {
	return loop.Explain(err, func() string {
		return fmt.Sprintf("the first prompt takes %d bytes, what was added since %d", len(p.parts()[0]), len(p.text())-len(p.parts()[0]))
	}, "name the files that are sent, or those that are not-sent in [implement]")
}
