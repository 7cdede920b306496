package harness

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"hone/check"
	"hone/check/reader"
	"hone/internal/config"
	"hone/loop"
	"hone/workspace"
	"hone/workspace/secret"
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
// and reports are read as the settings say, without secrets. Findings about a crash have the
// source around it, unless the guard withholds the file.
func CheckConfig(c check.CommandConfig, v config.Values, tree *workspace.Tree, guard *secret.Guard) check.CommandConfig {
	c.Dir, c.FailOnFindings, c.Redact = tree.Dir(), config.FailOn.In(v) == "findings", guard.Redact
	c.Reader, c.ReportReader = reader.Auto(), reader.Auto()
	if named, err := reader.Named(config.CheckFormat.In(v)); err == nil {
		c.Reader = named
	}
	if pattern := config.CheckReport.In(v); pattern != "" {
		c.Reports = func() func() []check.Report { return watchReports(tree, pattern) }
	}
	c.Place = func(found []check.Finding) {
		inFilesOf(tree.Dir(), func(has func(string) bool) { reader.Place(found, tree.Dir(), has) })
		reader.Source(found, func(file string) (string, bool) {
			content, _, err := tree.Read(file)
			if _, withheld := guard.Withheld(file, content); err != nil || withheld || !utf8.Valid(content) {
				return "", false
			}
			return guard.Redact(string(content)), true
		})
	}
	return c
}

// inFilesOf calls do with a function that reports whether there is a file below a directory.
func inFilesOf(dir string, do func(has func(file string) bool)) {
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer root.Close()
	}
	do(func(file string) bool {
		if err != nil || strings.ContainsAny(file, "\x00\n") || !filepath.IsLocal(filepath.FromSlash(file)) {
			return false
		}
		info, err := root.Lstat(filepath.FromSlash(file))
		return err == nil && info.Mode().IsRegular()
	})
}

// ReadFindings returns what a check found elsewhere, such as on a CI system, read like the
// output of a check with these settings. text is its log or its report, without secrets.
func ReadFindings(text string, v config.Values, tree *workspace.Tree) []check.Finding {
	named, err := reader.Named(config.CheckFormat.In(v))
	if err != nil {
		named = reader.Auto()
	}
	var found []check.Finding
	for _, part := range reader.Log(text) {
		exit := 0
		if part.Failed {
			exit = 1
		}
		one := named(part.Text, exit)
		if !check.Blocking(one) {
			one = reader.Auto()(part.Text, exit)
		}
		found = append(found, one...)
	}
	inFilesOf(tree.Dir(), func(has func(string) bool) {
		reader.Place(found, cmp.Or(foreignDir(found, has), tree.Dir()), has)
	})
	return check.Bound(found)
}

// foreignDir returns the directory, on another machine, to which most absolute paths of findings are relative; empty if none is.
func foreignDir(found []check.Finding, has func(file string) bool) (most string) {
	times := map[string]int{}
	for _, f := range found {
		file := filepath.ToSlash(f.File)
		_, rest, ok := strings.Cut(file, "/")
		if before := strings.TrimSuffix(file, rest); !ok || before != "/" && !strings.HasSuffix(before, ":/") {
			continue
		}
		for ; ok; _, rest, ok = strings.Cut(rest, "/") {
			if !has(rest) {
				continue
			}
			dir := strings.TrimSuffix(file, "/"+rest)
			if times[dir]++; times[dir] > times[most] {
				most = dir
			}
			break
		}
	}
	return most
}
