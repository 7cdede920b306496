// Package report finds the report files that a check writes, such as JUnit's XML.
//
// [Files.Watch] notes which reports there are before the check runs. The function that
// it returns then returns those that the check wrote. It leaves out stale ones: a report
// of an earlier run says nothing about this one. Files are read through the tree, which
// follows no symlink. What a report contains was written by code under test: it can be
// anything, and decides nothing.
package report

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/check"
	"hone/workspace"
	"hone/workspace/treepath"
)

// Files are the report files of a check.
type Files struct {
	Tree     *workspace.Tree
	Patterns []string // globs, relative to the tree's root
}

// The bounds of the reports of one run of a check.
const (
	maxReports = 1000
	maxReport  = 16 << 20 // bytes of one report
	maxBytes   = 64 << 20 // bytes of all reports
	maxVisited = 200_000  // files and directories that are searched
)

// Watch notes which reports there are. The function that it returns returns those that
// were created or written since, sorted by path. A report that cannot be read, or exceeds
// the bounds, has Omitted set.
func (f Files) Watch() (written func() []check.Report) {
	before := f.list()
	return func() (reports []check.Report) {
		now := f.list()
		total := int64(0)
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if was, ok := before[name]; ok && isUnchanged(was, now[name]) {
				continue
			}
			if len(reports) == maxReports {
				return append(reports, check.Report{Path: name, Omitted: fmt.Sprintf("the check wrote more than %d reports", maxReports)})
			}
			total += now[name].Size()
			reports = append(reports, f.read(name, now[name].Size(), total))
		}
		return reports
	}
}

// was and now are of two calls of Lstat.
func isUnchanged(was, now fs.FileInfo) bool {
	return os.SameFile(was, now) && was.Size() == now.Size() && was.ModTime().Equal(now.ModTime())
}

// total are the bytes of all reports up to this one.
func (f Files) read(name string, size, total int64) check.Report {
	r := check.Report{Path: name}
	switch {
	case size > maxReport:
		r.Omitted = fmt.Sprintf("it is larger than %d MiB", maxReport>>20)
	case total > maxBytes:
		r.Omitted = fmt.Sprintf("all reports together are larger than %d MiB", maxBytes>>20)
	default:
		content, _, err := f.Tree.Read(name)
		if err != nil {
			r.Omitted = err.Error()
		}
		r.Content = content
	}
	return r
}

func (f Files) list() map[string]fs.FileInfo {
	found := map[string]fs.FileInfo{}
	root, err := os.OpenRoot(f.Tree.Dir())
	if err != nil {
		return found // the check fails without its directory
	}
	defer root.Close()
	globs := treepath.CompileValid(f.Patterns, false)
	visited := 0
	for _, top := range f.tops(root) {
		_ = fs.WalkDir(root.FS(), top, func(name string, d fs.DirEntry, err error) error {
			switch visited++; {
			case visited > maxVisited:
				return fs.SkipAll
			case err != nil || d.IsDir() && treepath.Hidden(name) || d.IsDir() && path.Base(name) == ".git":
				return fs.SkipDir
			case !d.Type().IsRegular() || !globs.Match(name):
				return nil
			}
			if info, err := root.Lstat(filepath.FromSlash(name)); err == nil {
				found[name] = info
			}
			return nil
		})
	}
	return found
}

// A search for build/**/*.xml then visits nothing else. Directories behind a symlink are ignored.
func (f Files) tops(root *os.Root) []string {
	var tops []string
	for _, p := range f.Patterns {
		top := "."
		for part := range strings.SplitSeq(path.Dir(path.Clean(filepath.ToSlash(p))), "/") {
			if strings.ContainsAny(part, `*?[{\`) {
				break
			}
			top = path.Join(top, part)
			if info, err := root.Lstat(filepath.FromSlash(top)); err != nil || !info.IsDir() {
				top = ""
				break
			}
		}
		if top != "" && !slices.Contains(tops, top) {
			tops = append(tops, top)
		}
	}
	return tops
}
