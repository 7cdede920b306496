package phase

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"hone/loop"
)

// unmapped takes the place of the dependencies in a preview.
const unmapped = "(in a run, the output of the hook map_deps in " + HooksName + "; a preview does not run it)"

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
		tree, err = Src+emptyMap, nil
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
