// Package implement carries out a query: it sends the query and the code base to a
// model, writes the files of the answer, all or none, and lets the build decide; the
// build's output starts the next round (the seed "code-commit", rulings C1 to C14).
//
// It guarantees that each round's prompt starts with the complete prompt of the round
// before, byte for byte, unless long outputs of earlier rounds were shortened, and that a
// reply with any problem writes nothing. It never asks the user. It does not limit what
// the build does to the tree.
package implement

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/block"
	"hone/check"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/internal/excerpt"
	"hone/internal/render"
	"hone/internal/reply"
	"hone/loop"
	"hone/model"
	"hone/sandbox"
	"hone/workspace"
	"hone/workspace/secret"
)

// The files of a directory that is set up for the loop (ruling C10).
const (
	QueryName  = "query.txt"
	KeyName    = "gemini-key.txt"
	SystemName = "gemini-system-prompt.txt"
	BuildName  = "build.sh"
)

// Inputs are the files, in addition to the logs, that a model must not write (ruling
// C5).
var Inputs = []string{QueryName, RollupName, KeyName, SystemName}

// System describes the four syntaxes to a model. A file of the directory can replace
// it; otherwise the user's check is added.
//
//go:embed prompt.md
var System string

// Loop is one query, which is its Task. Its JSON is recorded; the code base is read in the first round. The other fields are
// set by Build.
type Loop struct {
	loop.Settings
	System   string `json:"system"` // describes the syntaxes
	HasBuild bool   `json:"build"`  // build.sh exists
	// Choose means that a flag chooses the files to send, so that a codeRollup.txt is not sent.
	Choose bool `json:"choose,omitempty"`

	// Coder is the model that answers.
	Coder hone.Role `json:"-"`
	// Guard finds secrets, which hone omits from its own rollup and removes from the logs; nil omits nothing.
	Guard *secret.Guard `json:"-"`
	// Say prints a model's message to the user; nil prints nothing.
	Say func(text string) `json:"-"`
}

func (l *Loop) files() []string { return config.Files.In(l.Values) }

func (l *Loop) notSent() []string { return config.NotSent.In(l.Values) }

// Rules returns the rules by which the engine reviews changes.
func (l *Loop) Rules() workspace.Rules {
	return workspace.Rules{
		Immutable: append([]string{BuildName, OutputName, LogsName + "/**", LogsName}, Inputs...),
		NotSent:   l.notSent(),
		Guard:     l.Guard,
	}
}

// Round is one round of the loop.
func (l *Loop) Round(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	p, err := l.compose(ctx, r, prior)
	if err != nil {
		return nil, err
	}
	p, got, err := l.ask(ctx, r, p)
	if err != nil {
		return nil, err
	}
	said, problems := read(got)
	if err := l.logReply(ctx, r, "response", got); err != nil {
		return nil, err
	}
	if err := l.printSaid(ctx, r, said); err != nil {
		return nil, err
	}
	var ch workspace.Change
	for _, f := range said.Files {
		ch.Edits = append(ch.Edits, workspace.Edit{Path: f.Path, Content: f.Content, Delete: f.Delete})
	}
	if len(problems) == 0 {
		if ch, problems, err = r.Interpret(ctx, ch); err != nil {
			return nil, err
		}
	}
	if len(problems) > 0 {
		return l.unusableFindings(ctx, r, got, problems)
	}
	vs, ok, err := r.ApplyAll(ctx, ch, p.seen.digest)
	if err != nil {
		return nil, err
	}
	if !ok {
		return l.unusableFindings(ctx, r, got, refusals(vs, p.listed))
	}
	e := exchange{Wrote: true, Text: block.Format(block.Reply{Debug: said.Debug, Files: said.Files, Done: said.Done})}
	for _, v := range vs {
		if v.Ruling == workspace.Allow && !v.Before.Exists() {
			e.Created = append(e.Created, fmt.Sprintf("%q", v.Path))
		}
	}
	return nil, record(ctx, r, e)
}

func record(ctx context.Context, r *hone.Run, e exchange) error {
	_, err := hone.Step(ctx, r, "exchange", nil, func(context.Context) (exchange, error) { return e, nil })
	return err
}

// The reasoning is left out. A reply that did not end normally is a problem even if it can be parsed (ruling G3).
func read(got model.Reply) (block.Reply, []string) {
	said, problems := block.Parse(answer(got.Text()))
	if cause := reply.EndProblem(got); cause != "" {
		return said, []string{cause}
	}
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return said, texts
}

// words returns what a reply says to the user: its messages and why nothing needs to change,
// or everything if it has no block.
func words(text string) string {
	if _, ok := readPick(text); ok {
		return ""
	}
	said, _ := block.Parse(text)
	if texts := slices.Concat(said.Thoughts, said.Done); len(texts)+len(said.Files)+len(said.Debug) > 0 {
		return strings.Join(texts, "\n")
	}
	return text
}

// The reasoning is replaced by empty lines, so that the numbers of the lines stay. A tag inside a block is not the end of
// reasoning.
func answer(text string) string {
	after := reply.Answer(text, block.Spans(text))
	return strings.Repeat("\n", strings.Count(text[:len(text)-len(after)], "\n")) + after
}

// refusals returns why a change cannot be made completely (rulings C5 and C13).
// Because the loop never asks the user, it refuses what would need approval.
// If it can ask for files, the model is told how.
func refusals(verdicts []workspace.Verdict, asks bool) []string {
	var problems []string
	for _, v := range verdicts {
		if v.Ruling != workspace.Deny && v.Ruling != workspace.Ask {
			continue
		}
		text := fmt.Sprintf("^^^%s is refused: %s", v.Path, v.Reason)
		if v.Tool {
			text += "; the user can allow it with tools = false in [guard] of " + config.HonePath
		}
		if asks && v.Ruling == workspace.Ask && v.Before.Exists() {
			text += fmt.Sprintf(`; to get its contents, answer with {"files": [%q]} only`, v.Path)
		}
		problems = append(problems, text)
	}
	return problems
}

// The finding takes the place of the build's output in the log and in the next prompt (ruling C7).
func (l *Loop) unusableFindings(ctx context.Context, r *hone.Run, got model.Reply, problems []string) ([]check.Finding, error) {
	if err := record(ctx, r, exchange{Text: excerpt.Middle(strings.TrimLeft(answer(got.Text()), "\n"), maxReply)}); err != nil {
		return nil, err
	}
	text := "The response could not be used: no file was written and the build did not run.\n\n- " + strings.Join(problems, "\n- ") + "\n"
	if err := l.log(ctx, r, "build.txt", text); err != nil {
		return nil, err
	}
	return []check.Finding{{Source: check.SourceReply, Text: text}}, nil
}

// The logs get the provider's response and the text (ruling C9).
func (l *Loop) logReply(ctx context.Context, r *hone.Run, name string, got model.Reply) error {
	raw := cmp.Or(string(response(got.Raw)), "null")
	if err := l.log(ctx, r, name+".json", raw+"\n"); err != nil {
		return err
	}
	return l.log(ctx, r, name+".txt", got.Text())
}

// It prints the messages, which are also added to their file (ruling C8), and why nothing needs to change (ruling C14).
func (l *Loop) printSaid(ctx context.Context, r *hone.Run, said block.Reply) error {
	for _, why := range said.Done {
		if err := loop.Say(ctx, r, l.Say, why); err != nil {
			return err
		}
	}
	for _, thought := range said.Thoughts {
		size, err := hone.Step(ctx, r, "user output size", nil, func(context.Context) (int64, error) {
			info, err := os.Lstat(filepath.Join(r.Tree.Dir(), OutputName))
			if errors.Is(err, fs.ErrNotExist) {
				return 0, nil
			}
			if err != nil {
				return 0, err
			}
			return info.Size(), nil
		})
		if err != nil {
			return err
		}
		err = loop.Do(ctx, r, "user output", nil, func(context.Context) error { // it is added to the file once
			if l.Say != nil {
				l.Say(thought)
			}
			return appendOnce(r.Tree.Dir(), OutputName, l.Guard.Redact(thought)+"\n---\n", size)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Loop) log(ctx context.Context, r *hone.Run, name, content string) error {
	at, ok, err := hone.First[string](r, stepFolder)
	if err == nil && !ok {
		at, err = hone.Step(ctx, r, stepFolder, nil, func(context.Context) (string, error) { return folder(r.Tree.Dir(), r.Journal.Run()) })
	}
	if err == nil {
		err = r.Notice("everything that is sent, received and built is in " + at)
	}
	if err != nil {
		return err
	}
	return loop.Do(ctx, r, "log "+name, nil, func(context.Context) error {
		return artifact.Write(r.Tree.Dir(), at+"/"+logName(r.Round(), name), strings.NewReader(l.Guard.Redact(content)))
	})
}

// Names are query-N.txt, query-N-response.txt and so on.
func logName(round int, name string) string {
	if name == "query.txt" {
		return fmt.Sprintf("query-%d.txt", round)
	}
	return fmt.Sprintf("query-%d-%s", round, name)
}

const stepFolder = "log folder"

// BuildCheck returns the loop's check: build.sh. It logs the complete output in the round's log of a run (ruling C11), unless
// r is nil.
func (l *Loop) BuildCheck(r *hone.Run, runner sandbox.Runner, c check.BuildConfig) check.Func {
	c.Script, c.Redact = BuildName, l.Guard.Redact
	if r != nil {
		c.StoreOutput = func(output io.Reader) error {
			at, started, err := hone.First[string](r, stepFolder)
			if err == nil && !started { // the check before the first round
				_, err = io.Copy(io.Discard, output)
				return err
			}
			if err != nil {
				return err
			}
			return artifact.Write(r.Tree.Dir(), at+"/"+logName(r.Round(), "build.txt"), output)
		}
	}
	return check.Build(runner, c)
}

func (l *Loop) reader(tree *workspace.Tree) render.Reader {
	return render.Reader{Tree: tree, Guard: l.Guard, NotSent: l.notSent()}
}

// The files that the loop writes for the user (the seed's "Logging"). It never reads
// them.
const (
	LogsName   = "logs"
	OutputName = "llm-user-output.txt"
)

// The name is the local time when the run started, which begins its id, with -2, -3 … if that exists (ruling C9). Links are not followed.
func folder(dir, run string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.Mkdir(LogsName, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("create the directory of the logs: %w", err)
	}
	if info, err := root.Lstat(LogsName); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory: move it away", LogsName)
	}
	name := LogsName + "/" + run[:strings.LastIndexByte(run, '-')]
	for n := 1; ; n++ {
		at := name
		if n > 1 {
			at = fmt.Sprintf("%s-%d", name, n)
		}
		err := root.Mkdir(at, 0o755)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return at, err
		}
	}
}

// The file had the size before. What an interrupted process already appended is skipped, so that it can run twice.
func appendOnce(dir, name, text string, before int64) error {
	f, err := artifact.OpenAppend(dir, name)
	if err == nil {
		b := make([]byte, len(text))
		n, _ := f.ReadAt(b, before)
		_, err = f.WriteString(strings.TrimPrefix(text, string(b[:n]))) // all of it if the file contains something else
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// response returns the raw response of a provider as one JSON object, which is what
// code-commit logs. It joins the chunks of a stream of Gemini, with the parts of all, to a
// response as without a stream, and returns everything else unchanged.
func response(raw json.RawMessage) json.RawMessage {
	var chunks []map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&chunks) != nil {
		return raw
	}
	whole, first, content, parts := map[string]any{}, map[string]any{}, map[string]any{}, []any{}
	found := false
	for _, chunk := range chunks {
		maps.Copy(whole, chunk)
		candidates, _ := chunk["candidates"].([]any)
		if len(candidates) == 0 {
			continue
		}
		found = true
		candidate, _ := candidates[0].(map[string]any)
		maps.Copy(first, candidate)
		more, _ := candidate["content"].(map[string]any)
		maps.Copy(content, more)
		list, _ := more["parts"].([]any)
		parts = append(parts, list...)
	}
	if !found {
		return raw
	}
	content["parts"], first["content"], whole["candidates"] = parts, content, []any{first}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(whole) != nil {
		return raw
	}
	return bytes.TrimSpace(b.Bytes())
}
