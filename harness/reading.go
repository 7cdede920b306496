package harness

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"hone/check"
	"hone/check/reader"
	"hone/check/report"
	"hone/internal/config"
	"hone/loop"
	"hone/workspace"
)

// ResolveReading resolves how findings are found in what a check prints and writes: flag,
// file, default.
func ResolveReading(f loop.Flags, file config.Check) (loop.Reading, error) {
	r := loop.Reading{Format: cmp.Or(f.Format, file.Format, reader.AutoName), Report: file.Report, FailOnFindings: file.FailOn == "findings"}
	if _, err := reader.Named(r.Format); err != nil {
		at := "the format of the check's output"
		if f.Format == "" {
			at = "format in the [check] section of " + config.HonePath
		}
		return r, loop.Usage(at+": "+err.Error(), reader.AutoName+" recognizes most outputs, and is the default")
	}
	if r.Format == reader.AutoName {
		r.Format = "" // what it recognizes is this version's matter, also of an older run
	}
	return r, nil
}

// CheckConfig returns the configuration of a check that runs in a tree, and whose output
// and reports are read as r says.
func CheckConfig(c check.CommandConfig, r loop.Reading, tree *workspace.Tree) check.CommandConfig {
	c.Dir, c.FailOnFindings = tree.Dir(), r.FailOnFindings
	c.Reader, c.ReportReader = reader.Auto(), reader.Auto()
	if named, err := reader.Named(r.Format); err == nil {
		c.Reader = named
	}
	if r.Report != "" {
		c.Reports = report.Files{Tree: tree, Patterns: []string{r.Report}}.Watch
	}
	c.Place = func(found []check.Finding) { place(found, tree.Dir()) }
	return c
}

// place makes the files of findings relative to a directory.
func place(found []check.Finding, dir string) {
	root, err := os.OpenRoot(dir)
	has := func(file string) bool {
		if err != nil || strings.ContainsAny(file, "\x00\n") || !filepath.IsLocal(filepath.FromSlash(file)) {
			return false
		}
		info, err := root.Lstat(filepath.FromSlash(file))
		return err == nil && info.Mode().IsRegular()
	}
	if err == nil {
		defer root.Close()
	}
	reader.Place(found, dir, has)
}
