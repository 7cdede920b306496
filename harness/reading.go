package harness

import (
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

// ValidFormat returns an error if there is no format of the name that the settings have.
func ValidFormat(v config.Values, file config.File) error {
	name := config.CheckFormat.In(v)
	_, err := reader.Named(name)
	if err == nil {
		return nil
	}
	at := "the format of the check's output"
	if name == config.CheckFormat.In(file.Shared()) {
		at = "format in the [check] section of " + config.HonePath
	}
	return loop.Usage(at+": "+err.Error(), reader.AutoName+" recognizes most outputs, and is the default")
}

// CheckConfig returns the configuration of a check that runs in a tree, and whose output
// and reports are read as the settings say.
func CheckConfig(c check.CommandConfig, v config.Values, tree *workspace.Tree) check.CommandConfig {
	c.Dir, c.FailOnFindings = tree.Dir(), config.FailOn.In(v) == "findings"
	c.Reader, c.ReportReader = reader.Auto(), reader.Auto()
	if named, err := reader.Named(config.CheckFormat.In(v)); err == nil {
		c.Reader = named
	}
	if pattern := config.CheckReport.In(v); pattern != "" {
		c.Reports = report.Files{Tree: tree, Patterns: []string{pattern}}.Watch
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
