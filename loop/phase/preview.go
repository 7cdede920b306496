package phase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/pflag"

	"hone/internal/config"
	"hone/loop"
	"hone/loop/phase/devserver"
)

// unmapped takes the place of the dependencies in a preview.
const unmapped = "(in a run, the output of the hook map_deps in " + devserver.Config + "; a preview does not run it)"

// Preview composes the first prompt of a role for the project in a directory: of the
// builder if role is "builder", else of the verifier. It runs no hook, and sends and
// writes nothing. The Loop needs its Phase, Guard, Builder and Writer.
func (l Loop) Preview(dir, role string) (loop.Prompt, error) {
	e := toWrite
	if role == "builder" {
		e = toBuild
	}
	tree, err := Map(filepath.Join(dir, Src))
	if errors.Is(err, fs.ErrNotExist) {
		tree, err = Src+"/\n\n0 directories, 0 files\n", nil
	}
	if err != nil {
		return loop.Prompt{}, fmt.Errorf("map %s: %w", Src, err)
	}
	m := l.mapText(tree, unmapped)
	if e != toBuild {
		m = ""
	}
	c, err := l.prompt(dir, e, 1, m, "", nil)
	if err != nil {
		return loop.Prompt{}, err
	}
	p := loop.Prompt{System: l.role(e).System, Text: c.Context + "\n" + c.Instruction + "\n"}
	p.Fits = l.fits(e, dir, c)
	return p, nil
}

// PreviewFlags adds the role.
func (v *invocation) PreviewFlags(fs *pflag.FlagSet) {
	fs.StringVar(&v.role, "role", "verifier", "the role: verifier, which gets the first prompt of a run, or builder")
	config.SetChoices(fs, "role", "builder", "verifier")
}

// Preview returns the first prompt of a role.
func (v *invocation) Preview(_ context.Context, view loop.View) (loop.Prompt, error) {
	p, err := v.loop(view.Guard).Preview(view.Tree.Dir(), v.role)
	p.What = "to the " + v.role + ": the instructions, the project and its contracts"
	p.Model = v.Verifier.Name
	if v.role == "builder" {
		p.Model = v.Model.Name
	}
	return p, err
}
