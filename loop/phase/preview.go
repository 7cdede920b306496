package phase

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Preview is what a role would be sent first.
type Preview struct {
	System string
	Text   string
	Fits   error // nil: it fits
}

// unmapped stands in a preview where the dependencies will.
const unmapped = "(here stands what the hook map_deps in " + ConfigName + " prints; it is not run for a preview)"

// Preview composes the first prompt of a role, "builder" or else the
// verifier's, of the project in a folder as it is now. It runs no hook, and
// sends and writes nothing. The Loop needs its Phase, Guard, Builder and Writer.
func (l Loop) Preview(dir, role string) (Preview, error) {
	e := toWrite
	if role == "builder" {
		e = toBuild
	}
	tree, err := Map(filepath.Join(dir, Src))
	if errors.Is(err, fs.ErrNotExist) {
		tree, err = Src+"/\n\n0 directories, 0 files\n", nil
	}
	if err != nil {
		return Preview{}, fmt.Errorf("map %s: %w", Src, err)
	}
	c, err := l.prompt(dir, e, 1, l.mapText(tree, unmapped), nil)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{System: l.role(e).System, Text: c.Context + "\n" + c.Instruction + "\n"}
	p.Fits = l.fits(e, dir, c)
	return p, nil
}
