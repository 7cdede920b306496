package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"hone"
	"hone/check"
	"hone/check/reader"
	"hone/internal/config"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace"
	"hone/workspace/secret"
	"hone/workspace/treepath"
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

// The bounds of the reports of one run of a check.
const (
	maxReports = 1000
	maxReport  = 16 << 20 // bytes of one report
	maxBytes   = 64 << 20 // bytes of all reports
)

// watchReports notes which reports there are: the files of a tree that a glob matches. The function
// that it returns returns those that were created or written since, sorted by path. A report
// that cannot be read, or exceeds the bounds, has Omitted set. Stale ones are left out: a report of an earlier run says
// nothing about this one. What a report contains was written by code under test: it can be anything, and decides nothing.
func watchReports(tree *workspace.Tree, pattern string) (written func() []check.Report) {
	before := listReports(tree.Dir(), pattern)
	return func() (reports []check.Report) {
		now, total := listReports(tree.Dir(), pattern), int64(0)
		for _, name := range slices.Sorted(maps.Keys(now)) {
			info := now[name]
			if was, ok := before[name]; ok && os.SameFile(was, info) && was.Size() == info.Size() && was.ModTime().Equal(info.ModTime()) {
				continue
			}
			r := check.Report{Path: name}
			total += info.Size()
			switch {
			case len(reports) == maxReports:
				r.Omitted = fmt.Sprintf("the check wrote more than %d reports", maxReports)
				return append(reports, r)
			case info.Size() > maxReport:
				r.Omitted = fmt.Sprintf("it is larger than %d MiB", maxReport>>20)
			case total > maxBytes:
				r.Omitted = fmt.Sprintf("all reports together are larger than %d MiB", maxBytes>>20)
			default:
				content, _, err := tree.Read(name)
				if err != nil {
					r.Omitted = err.Error()
				}
				r.Content = content
			}
			reports = append(reports, r)
		}
		return reports
	}
}

// It visits only what is below the directories that the pattern names, and follows no symlink.
func listReports(dir, pattern string) map[string]fs.FileInfo {
	found := map[string]fs.FileInfo{}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return found // the check fails without its directory
	}
	defer root.Close()
	below := strings.HasSuffix(pattern, "/") || !strings.ContainsAny(pattern, `*?[{\`)
	if pattern = path.Clean(filepath.ToSlash(pattern)); below {
		pattern = "{" + pattern + "," + pattern + "/**}"
	}
	_ = doublestar.GlobWalk(root.FS(), pattern, func(name string, d fs.DirEntry) error {
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() && !treepath.Hidden(name) && !slices.Contains(strings.Split(name, "/"), ".git") {
			found[name] = info
		}
		return nil
	}, doublestar.WithNoFollow())
	return found
}

// OneCheck is a check that runs once and without a run: nothing is recorded or locked.
// Root, Command and Guard are required.
type OneCheck struct {
	Root    string // absolute path of the directory that is checked
	Command string
	Values  config.Values // of the settings
	Timeout time.Duration // 0 means that of [check.Program]
	Env     []string      // names of variables that the command gets although they contain keys
	Walls   loop.WallSettings
	Guard   *secret.Guard
	Live    io.Writer // receives the output as it is printed; may be nil
	// Walled is called before the command runs, with what the user should know of the
	// walls; nil ignores it.
	Walled func(g sandbox.Grade, notes []string)
}

// CheckOnce runs a check behind the walls of a loop, and returns all findings, also those
// that a model would not be sent. hints say what the command seems to have missed behind
// the walls; nil if it passed.
func (h Host) CheckOnce(ctx context.Context, o OneCheck) (found []check.Finding, hints []hone.Notice, err error) {
	walls := &Walls{Settings: o.Walls, Plan: loop.WallPlan{Env: o.Env}, Root: o.Root, ID: "check", Guard: o.Guard}
	if o.Walls.Absent {
		walls.Settings.Wall = sandbox.NoWall
	}
	if o.Walls.None() {
		walls.Settings.Policy.Env = sandbox.CleanEnv(h.environ(), exceptNames(KeyVariables(), slices.Concat(o.Walls.Env, o.Env)))
	}
	tree, err := workspace.Open(o.Root, workspace.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer tree.Close()
	if err := h.Enclose(ctx, walls); err != nil {
		return nil, nil, NoWalls(ctx, err)
	}
	defer func() { err = errors.Join(err, walls.Close()) }()
	if o.Walled != nil {
		o.Walled(walls.Grade(), walls.Notes())
	}
	walls.Advise = func(n hone.Notice) error {
		hints = append(hints, n)
		return nil
	}
	found, err = check.Command(walls, CheckConfig(check.CommandConfig{
		Command: o.Command, Program: check.Program{Timeout: o.Timeout, Live: o.Live}}, o.Values, tree, o.Guard))(ctx)
	if ctx.Err() != nil {
		err = &hone.Stop{Kind: hone.KindInterrupted, Why: "interrupted"}
	}
	return found, hints, err
}
