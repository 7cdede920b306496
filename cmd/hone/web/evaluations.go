package web

import (
	"fmt"
	"os"
	"path/filepath"
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
			found, _ := filepath.Glob(filepath.Join(escapedGlob(dir), pattern+evalSuffix))
			for _, file := range found {
				info, err := os.Lstat(file)
				rel, err2 := filepath.Rel(dir, file)
				if err != nil || err2 != nil || !info.Mode().IsRegular() || info.Size() > maxEval {
					continue
				}
				title := rel
				if len(s.Dirs) > 1 {
					title = filepath.Join(dir, rel)
				}
				all[fmt.Sprintf("%s%d/%s", evaluations, i, filepath.ToSlash(rel))] = evaluation{file, strings.TrimSuffix(title, evalSuffix), fmt.Sprint(info.Size(), info.ModTime())}
			}
		}
	}
	return all
}

// The pattern matches only the path itself.
func escapedGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // where nothing can be escaped
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
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
	part, err := s.html.View(page.EvaluationOf(e.title, record.Results()))
	return &reading{title: "hone eval: " + e.title, place: e.title, parts: []page.Part{part}}, err
}
