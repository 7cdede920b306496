package kinds_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hone/cmd/hone/kinds"
)

// TestNoOtherCodeNamesALoop: what the program needs to know of a loop is in its Kind.
func TestNoOtherCodeNamesALoop(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it reads the source")
	}
	var names []string
	for _, k := range kinds.All() {
		names = append(names, k.Name)
	}
	except := []string{"kinds/kinds.go", "demo.go", "rollup.go"}
	files := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		file := strings.TrimPrefix(filepath.ToSlash(name), "../")
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || slices.Contains(except, file) {
			return err
		}
		files++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				if s, _ := strconv.Unquote(text.Value); slices.Contains(names, s) {
					t.Errorf("%s: names the loop %s", fset.Position(text.Pos()), s)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || files < 50 {
		t.Errorf("read %d files: %v", files, err)
	}
}
