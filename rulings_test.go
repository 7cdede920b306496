package hone_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const rulingsFile = "docs/rulings.md"

// Every ruling that a comment, a script or a document cites is defined in
// docs/rulings.md, once.
func TestRulingsAreDefined(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it reads the source")
	}
	definition := regexp.MustCompile(`(?m)^\*\*([GBCSAI][0-9]+)\. `)
	defined := map[string]bool{}
	for _, m := range definition.FindAllStringSubmatch(string(must(os.ReadFile(rulingsFile))), -1) {
		if defined[m[1]] {
			t.Errorf("%s defines %s twice", rulingsFile, m[1])
		}
		defined[m[1]] = true
	}
	cited := 0
	must(0, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		for place, rulings := range citations(name) {
			for _, ruling := range rulings {
				cited++
				if !defined[ruling] {
					t.Errorf("%s cites %s, which %s does not define", place, ruling, rulingsFile)
				}
			}
		}
		return nil
	}))
	if cited < 200 {
		t.Errorf("only %d citations were found", cited)
	}
}

// citations returns the rulings that a file cites, by place: in the comments of
// Go files and scripts, and anywhere in documents.
func citations(name string) map[string][]string {
	mark, known := map[string]string{".go": "//", ".txtar": "#", ".md": ""}[filepath.Ext(name)]
	if !known {
		return nil
	}
	ruling := regexp.MustCompile(`\b[GBCSAI][1-9][0-9]*\b`)
	found := map[string][]string{}
	line := 0
	for text := range strings.Lines(string(must(os.ReadFile(name)))) {
		line++
		if _, comment, ok := strings.Cut(text, mark); ok {
			if cited := ruling.FindAllString(comment, -1); cited != nil {
				found[fmt.Sprintf("%s:%d", name, line)] = cited
			}
		}
	}
	return found
}
