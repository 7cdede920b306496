// Package implement carries out a query: query and code base go to a model,
// the files that it answers with are written all or not at all, and the build
// has the last word; what it printed begins the next round (the seed
// "code-commit", rulings C1 to C13).
//
// It promises that each round's prompt begins with the whole of the one
// before, byte for byte, and that a reply of which one thing is wrong writes
// nothing. It never asks a person. What the build does to the tree is the
// user's own affair.
package implement

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"hone"
	"hone/block"
	"hone/check"
	"hone/internal/artifact"
	"hone/internal/render"
	"hone/model"
	"hone/sandbox"
	"hone/workspace"
	"hone/workspace/secret"
)

// Rounds is how many the seed gives: builds, and model calls.
const Rounds = 8

// The files of a folder that is set up for the loop (ruling C10).
const (
	QueryName  = "query.txt"
	KeyName    = "gemini-key.txt"
	SystemName = "gemini-system-prompt.txt"
	BuildName  = "build.sh"
)

// Inputs are the files that a model may not write (ruling C5), beside the
// logs.
var Inputs = []string{QueryName, RollupName, KeyName, SystemName}

// System teaches a model the four syntaxes, where the folder has no text of
// its own for that.
//
//go:embed prompt.md
var System string

// Loop is one query, resolved: it asks nobody for settings.
type Loop struct {
	// Coder is the model that is asked; its System teaches the syntaxes.
	Coder hone.Role
	// Query is what is asked for.
	Query string
	// Guard finds what is withheld from a rollup that hone makes; nil
	// withholds nothing.
	Guard *secret.Guard
	// Redact takes secrets out of what is logged; nil takes nothing out.
	Redact func(string) string
	// Say prints a thought that is meant for the user; nil prints nothing.
	Say func(text string)
}

// Rules are what the engine reviews changes by.
func (l Loop) Rules() workspace.Rules {
	return workspace.Rules{
		Immutable: append([]string{BuildName, OutputName, LogsName + "/**", LogsName}, Inputs...),
		Guard:     l.Guard,
	}
}

// Round is one round of the loop.
func (l Loop) Round(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	p, err := l.compose(ctx, r, prior)
	if err != nil {
		return nil, err
	}
	if err := l.log(ctx, r, "query.txt", ended(l.Coder.System)+"\n"+p.text()); err != nil {
		return nil, err
	}
	reply, err := r.Ask(ctx, l.Coder, p.messages())
	if err != nil {
		return nil, err
	}
	said, problems := read(reply)
	if err := l.keep(ctx, r, reply, said); err != nil {
		return nil, err
	}
	ch := change(said)
	if len(problems) == 0 {
		if problems, err = refusals(ctx, r, ch, p.seen(r)); err != nil {
			return nil, err
		}
	}
	if len(problems) > 0 {
		return l.unusable(ctx, r, problems)
	}
	_, err = r.Apply(ctx, ch, p.seen(r))
	return nil, err
}

// read parses a reply. One that did not come to a normal end is no reply,
// whatever it parses to (ruling G3).
func read(reply model.Reply) (block.Reply, []string) {
	said, problems := block.Parse(reply.Text())
	var texts []string
	if !reply.Finish.Normal() {
		texts = append(texts, fmt.Sprintf("the response did not end normally (%s)",
			strings.TrimSpace(string(reply.Finish)+" "+reply.Detail)))
	}
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return said, texts
}

func change(said block.Reply) workspace.Change {
	var ch workspace.Change
	for _, f := range said.Files {
		ch.Edits = append(ch.Edits, workspace.Edit{Path: f.Path, Content: f.Content})
	}
	return ch
}

// refusals are what keeps a change from being made as a whole (rulings C5 and
// C13): the loop never asks, so what would have to be asked is refused.
func refusals(ctx context.Context, r *hone.Run, ch workspace.Change, seen hone.Seen) ([]string, error) {
	verdicts, err := r.Review(ctx, ch, seen)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, v := range verdicts {
		if v.Ruling == workspace.Deny || v.Ruling == workspace.Ask {
			problems = append(problems, fmt.Sprintf("^^^%s is refused: %s", v.Path, v.Reason))
		}
	}
	return problems, nil
}

// sourceReply is where the findings of a reply come from that was not used.
const sourceReply = "reply"

// unusable is the finding that a reply wrote nothing. It stands where the
// build's output would (ruling C7), in the log and in the next prompt.
func (l Loop) unusable(ctx context.Context, r *hone.Run, problems []string) ([]check.Finding, error) {
	text := "The response could not be used: no file was written and the build did not run.\n\n- " + strings.Join(problems, "\n- ") + "\n"
	if err := l.log(ctx, r, "build.txt", text); err != nil {
		return nil, err
	}
	return []check.Finding{{Source: sourceReply, Text: text}}, nil
}

// keep writes what came back: the provider's own bytes, the text, and what is
// meant for the user (rulings C8 and C9).
func (l Loop) keep(ctx context.Context, r *hone.Run, reply model.Reply, said block.Reply) error {
	raw := string(reply.Raw)
	if raw == "" {
		raw = "null"
	}
	if err := l.log(ctx, r, "response.json", raw+"\n"); err != nil {
		return err
	}
	if err := l.log(ctx, r, "response.txt", reply.Text()); err != nil {
		return err
	}
	if _, err := hone.Step(ctx, r, "exchange", nil, func(context.Context) (exchange, error) {
		return exchangeOf(said), nil
	}); err != nil {
		return err
	}
	for _, thought := range said.Thoughts {
		if err := l.tell(ctx, r, thought); err != nil {
			return err
		}
	}
	return nil
}

// tell prints a thought and adds it to the file of all thoughts, once.
func (l Loop) tell(ctx context.Context, r *hone.Run, thought string) error {
	size, err := inTree(ctx, r, "user output size", func(root *os.Root) (measured, error) {
		n, err := sizeOf(root, OutputName)
		return measured{n}, err
	})
	if err != nil {
		return err
	}
	_, err = inTree(ctx, r, "user output", func(root *os.Root) (done, error) {
		if l.Say != nil {
			l.Say(thought)
		}
		return done{}, appendOnce(root, OutputName, l.clean(thought)+"\n---\n", size.Bytes)
	})
	return err
}

// measured is the size that a file had.
type measured struct {
	Bytes int64 `json:"bytes"`
}

// done is the record of a step that has nothing to say.
type done struct{}

// log writes one of the round's logs: query-N.txt and the others beside it.
func (l Loop) log(ctx context.Context, r *hone.Run, name, content string) error {
	at, err := logFolder(ctx, r)
	if err != nil {
		return err
	}
	_, err = inTree(ctx, r, "log "+name, func(root *os.Root) (done, error) {
		return done{}, artifact.Write(root, fmt.Sprintf("%s/%s", at, logName(r.Round(), name)), strings.NewReader(l.clean(content)))
	})
	return err
}

// logName is query-N.txt, and query-N-response.txt and so on beside it.
func logName(round int, name string) string {
	if name == "query.txt" {
		return fmt.Sprintf("query-%d.txt", round)
	}
	return fmt.Sprintf("query-%d-%s", round, name)
}

// made is the folder of the run's logs.
type made struct {
	Folder string `json:"folder"`
}

// logFolder is the run's folder below logs/, made once.
func logFolder(ctx context.Context, r *hone.Run) (string, error) {
	if m, ok, err := hone.First[made](r, "log folder"); ok || err != nil {
		return m.Folder, err
	}
	m, err := inTree(ctx, r, "log folder", func(root *os.Root) (made, error) {
		at, err := folder(root, time.Now())
		return made{at}, err
	})
	return m.Folder, err
}

// inTree is a step that writes below the tree's root.
func inTree[T any](ctx context.Context, r *hone.Run, name string, do func(*os.Root) (T, error)) (T, error) {
	return hone.Step(ctx, r, name, nil, func(context.Context) (T, error) {
		root, err := os.OpenRoot(r.Tree.Dir())
		if err != nil {
			return *new(T), err
		}
		defer root.Close()
		return do(root)
	})
}

func (l Loop) clean(text string) string {
	if l.Redact == nil {
		return text
	}
	return l.Redact(text)
}

// Build is the loop's check: build.sh, whose whole output is logged for the
// round that it judges (ruling C11).
func (l Loop) Build(r *hone.Run, runner sandbox.Runner, c check.BuildConfig) check.Func {
	c.StoreOutput = func(output io.Reader) error {
		m, begun, err := hone.First[made](r, "log folder")
		if err == nil && !begun { // before the first round, to see it fail
			_, err = io.Copy(io.Discard, output)
			return err
		}
		if err != nil {
			return err
		}
		return Write(r.Tree.Dir(), m.Folder+"/"+logName(r.Round(), "build.txt"), output)
	}
	return l.BuildUnlogged(runner, c)
}

// BuildUnlogged is Build without a log: for a build that judges no round.
func (l Loop) BuildUnlogged(runner sandbox.Runner, c check.BuildConfig) check.Func {
	c.Script = BuildName
	c.Redact = l.Redact
	return check.Build(runner, c)
}

// reader reads the tree for a rollup.
func (l Loop) reader(tree *workspace.Tree) render.Reader {
	return render.Reader{Tree: tree, Guard: l.Guard}
}
