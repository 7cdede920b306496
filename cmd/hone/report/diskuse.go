package report

import (
	"errors"
	"fmt"
	"path/filepath"

	"hone/internal/render"
	"hone/journal"
)

// Use says how much disk space the runs of a directory need.
type Use struct {
	Runs int    `json:"runs"`
	Size int64  `json:"size"` // bytes; 0 means unknown
	Home string `json:"home"`
}

// UseOf returns how much disk space the runs of a home need.
func UseOf(home *journal.Home) (Use, error) {
	ids, err := home.Runs()
	size, sizeErr := home.TotalSize()
	return Use{len(ids), size, home.Dir()}, errors.Join(err, sizeErr)
}

func (u Use) String() string {
	if u.Size == 0 {
		return fmt.Sprintf("%s in %s", render.Count(u.Runs, "run"), HomeText(u.Home))
	}
	return fmt.Sprintf("%s · %s in %s", render.Count(u.Runs, "run"), render.Bytes(u.Size), HomeText(u.Home))
}

// HomeText returns the name of a home in the workspace, and the path of any other.
func HomeText(home string) string {
	if filepath.Base(home) == journal.HomeName {
		return journal.HomeName
	}
	return render.Line(home)
}
