package site

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hone/cmd/hone/eval"
	"hone/cmd/hone/page"
	"hone/cmd/hone/web"
)

// evalSuffix ends the name of the file in which hone eval records results.
const evalSuffix = ".results.jsonl"

// maxEval is the maximum size in bytes of such a file; a larger one has no page.
const maxEval = 64 << 20

// evaluations returns the result files in the directories of a server and in their direct
// subdirectories, by the names of their pages.
func (s *Source) evaluations() map[string]string {
	files := map[string]string{}
	for i, dir := range s.dirs {
		for _, pattern := range []string{"*", "*/*"} {
			found, _ := filepath.Glob(filepath.Join(escapedGlob(dir), pattern+evalSuffix))
			for _, file := range found {
				info, err := os.Lstat(file)
				rel, err2 := filepath.Rel(dir, file)
				if err == nil && err2 == nil && info.Mode().IsRegular() && info.Size() <= maxEval {
					files[fmt.Sprintf("%s%d/%s", web.Evaluations, i, filepath.ToSlash(rel))] = file
				}
			}
		}
	}
	return files
}

// escapedGlob returns a path as a pattern that matches only itself.
func escapedGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // where nothing can be escaped
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// evalState returns a text that changes with a result file.
func evalState(file string) string {
	info, err := os.Lstat(file)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime())
}

// evalLink returns the link to the page of a result file.
func (s *Source) evalLink(name string) page.Link {
	number, rel, _ := strings.Cut(strings.TrimPrefix(name, web.Evaluations), "/")
	if i, err := strconv.Atoi(number); err == nil && len(s.dirs) > 1 {
		rel = filepath.Join(s.dirs[i], rel)
	}
	return page.Link{Text: strings.TrimSuffix(rel, evalSuffix), Address: "/" + name}
}

// evaluation returns the page of a result file.
func (s *Source) evaluation(name string) (web.View, error) {
	file, ok := s.evaluations()[name]
	if !ok {
		return web.View{}, web.ErrNotFound
	}
	record, err := eval.OpenRecord(file)
	if err != nil {
		return web.View{}, err
	}
	title := s.evalLink(name).Text
	part, err := s.html.Evaluation(page.EvaluationOf(title, record.Results()))
	return web.View{Title: "hone eval: " + title, Place: title, Parts: []page.Part{part}}, err
}
