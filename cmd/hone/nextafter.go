package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hone/journal"
)

// nextAfter is what to type after a run has ended: the engine's hint, by the
// run's id where another run is the last, and the truth where what the run
// started removed its journal.
func nextAfter(home *journal.Home, run, hint string) string {
	if _, err := os.Lstat(filepath.Join(home.Dir(), "runs", run+".jsonl")); errors.Is(err, fs.ErrNotExist) {
		return "start a new run: the record of this one was removed while it went on, and nothing can go on with it"
	}
	hint = cmp.Or(hint, "hone show last --diff")
	if last, err := home.Find("last"); err == nil && last != run {
		hint = strings.NewReplacer("hone resume last", "hone resume "+run, "hone show last", "hone show "+run).Replace(hint)
	}
	return hint
}
