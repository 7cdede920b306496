package implement

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"hone"
	"hone/block"
	"hone/internal/config"
	"hone/internal/render"
	"hone/internal/reply"
	"hone/model"
	"hone/workspace"
	"hone/workspace/treepath"
)

// maxPicks is how often the model can choose files in a run (ruling C14).
const maxPicks = 8

//go:embed choose.md
var pickSystem string

func (l *Loop) picker() hone.Role {
	picker := l.Coder
	picker.System = pickSystem
	return picker
}

// It reads no more than it must.
func (l *Loop) isLarge(read render.Reader, files workspace.Manifest) bool {
	above := config.SelectAbove.In(l.Values) // 0 sends all
	left := 4 * above
	for _, e := range files {
		text, _ := rollup(read, workspace.Manifest{e})
		if left -= int64(len(text)); left < 0 {
			return above > 0
		}
	}
	return false
}

func list(read render.Reader, files workspace.Manifest) string {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b workspace.Entry) int { return strings.Compare(path.Dir(a.Path), path.Dir(b.Path)) })
	var b strings.Builder
	dir := ""
	for _, e := range files {
		if d := path.Dir(e.Path); d != dir {
			dir = d
			fmt.Fprintf(&b, "%s/\n", render.Path(dir))
		}
		fmt.Fprintf(&b, "  %s %d", render.Path(path.Base(e.Path)), e.Size)
		if why := read.OmitReason(e); why != "" {
			fmt.Fprintf(&b, " (%s)", why)
		}
		b.WriteByte('\n')
	}
	return fill("list", b.String())
}

// names are paths, directories or patterns; unknown are those that match none.
func pick(files workspace.Manifest, names []string) (picked workspace.Manifest, unknown []string) {
	chosen := make([]bool, len(files))
	for _, name := range names {
		found := false
		exact := []string{treepath.Quote(path.Clean(name))}
		pattern := treepath.CompileValid([]string{name}, false)
		for i, e := range files {
			if pattern.Match(e.Path) || treepath.Match(exact, e.Path) {
				chosen[i], found = true, true
			}
		}
		if !found {
			unknown = append(unknown, name)
		}
	}
	for i, e := range files {
		if chosen[i] {
			picked = append(picked, e)
		}
	}
	return picked, unknown
}

// ok is false if the reply does not ask for any in the required form, or has blocks as well.
func readPick(text string) (names []string, ok bool) {
	said, _ := block.Parse(answer(text))
	if len(said.Files)+len(said.Done)+len(block.Spans(text)) > 0 {
		return nil, false
	}
	object, err := reply.Object(text, func(key string) bool { return key == "files" })
	var pick struct {
		Files *[]string `json:"files"`
	}
	if err != nil || json.Unmarshal(object, &pick) != nil || pick.Files == nil {
		return nil, false
	}
	return append([]string{}, *pick.Files...), true
}

// It sends the prompt until the reply is something else than a request for files. The returned prompt has these files. If the
// model must choose before anything else, and the choice cannot be read, all files are added.
func (l *Loop) ask(ctx context.Context, r *hone.Run, p prompt) (prompt, model.Reply, error) {
	for n := 1; ; n++ {
		role, sent, name := l.Coder, p, "query"
		if p.Choose {
			role, name = l.picker(), "select"
			sent.before, sent.Added = p.parts(), fill("pick", nil)
		}
		query := withNewline(role.System) + "\n" + sent.text() // all that is sent, in order (ruling C9)
		if err := l.log(ctx, r, name+".txt", query); err != nil {
			return p, model.Reply{}, err
		}
		got, err := r.Ask(ctx, role, sent.messages())
		if err != nil {
			return p, got, err
		}
		names, ok := readPick(got.Text())
		ok = ok && reply.EndProblem(got) == ""
		switch {
		case p.Choose && !ok:
			names = nil
		case p.Choose:
		case !ok || !p.listed || p.asked >= maxPicks:
			return p, got, nil
		default:
			if name = "select"; n > 1 {
				name = fmt.Sprintf("select-%d", n)
			}
			if err := l.log(ctx, r, name+".txt", query); err != nil {
				return p, got, err
			}
		}
		if err := l.logReply(ctx, r, name+"-response", got); err != nil {
			return p, got, err
		}
		next, err := l.show(ctx, r, p, names)
		if room := (*hone.ContextError)(nil); p.Choose && errors.As(err, &room) { // all or too many of the files, in the first prompt
			err = &hone.Stop{Kind: hone.KindPrompt, Why: room.Error(), Next: room.Next()}
		}
		if p = next; err != nil {
			return p, got, err
		}
	}
}

// The model asked for the named files. With nil, or if the first choice names no file at all, all files are added.
func (l *Loop) show(ctx context.Context, r *hone.Run, p prompt, names []string) (prompt, error) {
	next, err := hone.Step(ctx, r, "compose", names, func(ctx context.Context) (prompt, error) {
		files, err := r.Manifest(ctx)
		if err != nil {
			return prompt{}, err
		}
		files = base(files)
		picked, unknown := pick(files, names)
		next := prompt{Asked: true}
		switch {
		case names == nil, p.Choose && len(picked) == 0 && len(names) > 0:
			picked, unknown = files, nil
			next.Warnings = []string{"the model's choice of files cannot be read, so all are sent"}
		case len(picked) > 0:
			var paths []string
			for _, e := range picked {
				paths = append(paths, e.Path)
			}
			next.Warnings = []string{fmt.Sprintf("the model asked for %d of %d files: %s", len(picked), len(files), render.Names(paths))}
		}
		var again []string
		picked = slices.DeleteFunc(slices.Clone(picked), func(e workspace.Entry) bool {
			has := e.Digest != "" && p.seen[e.Path] == e.Digest
			if has {
				again = append(again, e.Path)
			}
			return has
		})
		text, digests := rollup(l.reader(r.Tree), picked)
		next.Seen = digests
		next.Added = l.clean(fill("shown", map[string]any{"Again": strings.Join(again, ", "), "Unknown": strings.Join(unknown, ", "),
			"Last": p.asked+1 >= maxPicks, "More": p.Choose, "Contents": string(text)}))
		return next, nil
	})
	if err != nil {
		return p, err
	}
	next.before, next.seen, next.listed, next.asked = p.parts(), p.seen, p.listed, p.asked+1
	maps.Copy(next.seen, next.Seen)
	return next, l.check(r, next)
}
