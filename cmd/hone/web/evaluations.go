package web

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/cmd/hone/eval"
	"hone/cmd/hone/page"
)

// evaluations is the prefix of the names of pages of evaluations.
const evaluations = "eval/"

// evalSuffix ends the name of the file in which hone eval records results.
const evalSuffix = ".results.jsonl"

// maxEval is the maximum size in bytes of such a file; a larger one has no page.
const maxEval = 64 << 20

type evaluation struct{ file, title, state string }

// Direct subdirectories are searched too. The keys are the names of the pages.
func (s *Server) evaluations() map[string]evaluation {
	all := map[string]evaluation{}
	for i, dir := range s.Dirs {
		for _, pattern := range []string{"*", "*/*"} {
			found, _ := fs.Glob(os.DirFS(dir), pattern+evalSuffix)
			for _, name := range found {
				file, title := filepath.Join(dir, name), filepath.FromSlash(name)
				info, err := os.Lstat(file)
				if err != nil || !info.Mode().IsRegular() || info.Size() > maxEval {
					continue
				}
				if len(s.Dirs) > 1 {
					title = file
				}
				all[fmt.Sprintf("%s%d/%s", evaluations, i, name)] = evaluation{file, strings.TrimSuffix(title, evalSuffix), fmt.Sprint(info.Size(), info.ModTime())}
			}
		}
	}
	return all
}

func (s *Server) evaluation(name string) (*reading, error) {
	e, ok := s.evaluations()[name]
	if !ok {
		return nil, errNotFound
	}
	record, err := eval.OpenRecord(e.file)
	if err != nil {
		return nil, err
	}
	part, err := s.html.View(page.EvaluationOf(e.title, slices.SortedFunc(maps.Values(record.Results), func(x, y eval.Result) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Key, y.Key))
	})))
	return &reading{title: "hone eval: " + e.title, place: e.title, parts: []page.Part{part}}, err
}
