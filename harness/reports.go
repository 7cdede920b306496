package harness

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"hone/check"
	"hone/workspace"
	"hone/workspace/treepath"
)

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
