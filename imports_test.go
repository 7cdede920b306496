package hone_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// room is a folder, or all folders that match a pattern, and what its files may import
// of the module. A folder belongs to the first room whose pattern it matches.
type room struct {
	folder string // "." is the root package, which is the engine
	floor  int
	may    []string // patterns of folders
	test   bool     // only tests and other test rooms import it
}

// standard is the room that every room may import, like the standard library.
const standard = "internal/lazyregexp"

// house is the table of who may import whom: a room imports only the rooms that its row
// names, none of them on a higher floor.
func house() []room {
	const (
		providers = "model/*"
		root      = "."
	)
	return []room{
		{folder: standard, floor: 0},
		{folder: "model", floor: 0},
		{folder: "workspace/treepath", floor: 0},
		{folder: "workspace/secret", floor: 0, may: []string{"workspace/treepath"}},
		{folder: "workspace/internal/nofollow", floor: 0, may: []string{"internal/transient", "workspace/treepath"}},
		{folder: "internal/disktest", floor: 0, test: true},
		{folder: "internal/crashtest/waittest", floor: 0, test: true},
		{folder: "workspace/internal/treetest", floor: 0, test: true},
		{folder: "workspace", floor: 0, may: []string{"internal/gitdir", "internal/transient", "workspace/treepath", "workspace/secret", "workspace/internal/nofollow"}},
		{folder: "workspace/clone", floor: 0, may: []string{"workspace", "workspace/treepath", "workspace/internal/nofollow"}},
		{folder: "sandbox", floor: 0},
		{folder: "sandbox/internal/process", floor: 1, may: []string{"sandbox"}},
		{folder: "journal/objects", floor: 0, may: []string{"internal/transient"}},
		{folder: "journal", floor: 0, may: []string{"journal/objects"}},
		{folder: "journal/bundle", floor: 0, may: []string{"journal"}},
		{folder: "internal/git", floor: 0, may: []string{"internal/transient", "sandbox"}},
		{folder: "internal/gitdir", floor: 0},
		{folder: "internal/artifact", floor: 0},
		{folder: "internal/excerpt", floor: 0},
		{folder: "internal/tap", floor: 0},
		{folder: "internal/near", floor: 0},
		{folder: "internal/transient", floor: 0},
		{folder: "internal/crashtest/faulttest", floor: 0, test: true},

		{folder: "check", floor: 1, may: []string{"sandbox", "internal/excerpt", "internal/transient"}},
		{folder: "check/reader", floor: 1, may: []string{"check", "internal/excerpt", "internal/near", "internal/tap"}},
		{folder: "sandbox/workshop", floor: 1, may: []string{"internal/gitdir", "sandbox"}},
		{folder: "sandbox/putback", floor: 1, may: []string{"internal/transient", "sandbox"}},
		{folder: "sandbox/internal/kernel", floor: 1, may: []string{"sandbox"}},
		{folder: "sandbox/internal/runtest", floor: 1, may: []string{"internal/crashtest/waittest", "sandbox"}, test: true},
		{folder: "sandbox/wall", floor: 2, may: []string{"sandbox", "sandbox/putback", "sandbox/internal/kernel", "sandbox/internal/process"}},
		{folder: "sandbox/wall/early", floor: 3, may: []string{"sandbox/wall"}},
		{folder: "sandbox/prove/table/stage", floor: 3, may: []string{"sandbox", "sandbox/internal/process", "sandbox/workshop", "sandbox/wall"}, test: true},
		{folder: "sandbox/prove", floor: 3, may: []string{"sandbox", "sandbox/internal/process", "sandbox/workshop", "sandbox/wall"}},
		{folder: "internal/reply", floor: 1, may: []string{"model"}},
		{folder: "block", floor: 1, may: []string{"workspace/treepath", "internal/reply"}},
		{folder: "tool/allow", floor: 0},
		{folder: "tool", floor: 1, may: []string{"model", "workspace", "workspace/treepath", "workspace/secret", "sandbox", "tool/allow", "internal/excerpt", "internal/render", "internal/reply"}},
		{folder: "internal/render", floor: 1, may: []string{"workspace", "workspace/treepath", "workspace/secret"}},
		{folder: "model/texttools", floor: 1, may: []string{"model", "internal/reply"}},
		{folder: "model/agent", floor: 1, may: []string{"model", "sandbox"}},
		{folder: "model/modeltest", floor: 1, may: []string{"model"}, test: true},
		{folder: "model/script", floor: 1, may: []string{"model", "internal/artifact"}}, // a script is a file that the user names
		{folder: "model/paid", floor: 2, may: []string{"model", "history", "journal"}},
		{folder: providers, floor: 1, may: []string{"model"}},

		{folder: "history", floor: 2, may: []string{"journal", "workspace", "workspace/treepath", "check", "model"}},

		{folder: "check/judge", floor: 1, may: []string{"workspace", "workspace/treepath"}},
		{folder: root, floor: 3, may: []string{"check/judge", "model", "model/paid", "tool", "workspace", "workspace/treepath", "workspace/clone", "check", "journal", "journal/objects", "history", "internal/reply", "internal/render", "internal/transient"}},

		{folder: "internal/config", floor: 0, may: []string{"internal/near"}},
		{folder: "internal/child", floor: 3, may: []string{"history", "journal", "sandbox", "sandbox/wall"}},
		{folder: "internal/listing", floor: 3, may: []string{"internal/transient", "internal/git", "journal", "workspace", "workspace/treepath", "workspace/secret"}},
		{folder: "internal/crashtest", floor: 4, may: []string{root, "check", "history", "internal/crashtest/waittest", "journal", "model", "workspace"}, test: true},
		// Loops import internal/config for the types of the keys in their own tables, and
		// reconcile for bork's file. None reads .config/hone.toml.
		{folder: "loop", floor: 4, may: []string{"internal/transient", "internal/excerpt", "check/judge", "model", "workspace", "workspace/secret", "sandbox", "internal/git", "internal/artifact", "check", "tool", "internal/render", root, "history", "tool/allow", "internal/config"}},
		{folder: "loop/phase/spec", floor: 2, may: []string{"internal/render", "internal/artifact"}},
		{folder: "loop/phase", floor: 5, may: []string{"model", "workspace", "workspace/secret", "sandbox", "internal/git", "internal/artifact", "internal/excerpt", "check", "tool", "internal/render", root, "history", "loop", "loop/phase/*", "internal/config", "internal/tap"}},
		{folder: "loop/task", floor: 5, may: []string{"internal/config", "model", "workspace", "workspace/treepath", "workspace/secret", "journal", "internal/artifact", "internal/reply", "check", "tool", "internal/render", root, "history", "loop", "tool/allow"}},
		{folder: "loop/improve", floor: 5, may: []string{"tool", "sandbox", "check", "check/judge", "internal/render", root, "history", "loop", "internal/config"}},
		{folder: "loop/*", floor: 5, may: []string{"model", "workspace", "workspace/treepath", "workspace/secret", "sandbox", "internal/git", "internal/artifact", "internal/excerpt", "internal/reply", "check", "block", "internal/render", root, "history", "loop", "internal/config"}},

		{folder: "harness/internal/state", floor: 0, may: []string{"sandbox"}},
		{folder: "harness/internal/walldir", floor: 5, may: []string{"internal/transient", "internal/git", "internal/gitdir", root, "loop", "sandbox", "sandbox/putback", "workspace/clone", "harness/internal/state"}},
		{folder: "harness/internal/denied", floor: 5, may: []string{"sandbox", "sandbox/workshop", "internal/config", "internal/listing", "internal/render", "workspace/secret"}},
		{folder: "harness/runs", floor: 5, may: []string{root, "internal/transient", "internal/config", "workspace", "sandbox", "sandbox/wall", "journal", "history", "loop", "internal/git", "internal/listing", "harness/internal/state", "harness/internal/walldir", "journal/bundle", "journal/objects"}},
		{folder: "harness", floor: 6, may: []string{"internal/excerpt", "internal/transient", "model", "workspace", "workspace/treepath", "workspace/secret", "sandbox", "journal", "internal/git", "internal/gitdir", "check", "tool", "internal/render", root, "history", "loop", providers, "sandbox/workshop", "sandbox/wall", "sandbox/prove", "internal/config", "internal/listing", "internal/near", "harness/internal/denied", "harness/internal/walldir", "harness/internal/state", "harness/runs", "check/reader"}},

		{folder: "group", floor: 6, may: []string{"history", "journal", "workspace", "workspace/clone", "sandbox/wall", "harness/runs", "internal/child", "internal/render"}},

		{folder: "cmd/hone/failure", floor: 5, may: []string{root, "internal/transient", "journal", "sandbox", "internal/git"}},
		{folder: "cmd/hone/kinds", floor: 7, may: []string{root, "loop", "loop/*", "harness", "harness/runs", "history", "internal/config", "story", "cmd/hone/attempts", "cmd/hone/failure"}},
		{folder: "story", floor: 4, may: []string{"history", "journal", "check", "model", "tool", "workspace", "internal/render"}},
		{folder: "otlp", floor: 5, may: []string{"story", "history", "check", "model", "tool"}},
		{folder: "cmd/hone/report", floor: 8, may: []string{"internal/git", "workspace", "workspace/treepath", root, "story", "history", "journal", "loop", "harness/runs", "internal/render", "cmd/hone/attempts", "cmd/hone/failure", "cmd/hone/kinds", "cmd/hone/screen"}},
		{folder: "cmd/hone/page", floor: 9, may: []string{root, "story", "history", "journal", "check", "model", "loop", "workspace", "internal/excerpt", "internal/render", "cmd/hone/attempts", "cmd/hone/eval", "cmd/hone/failure", "cmd/hone/kinds", "cmd/hone/report"}},
		{folder: "cmd/hone/eval", floor: 6, may: []string{"internal/artifact", "internal/transient", "cmd/hone/failure", root, "group", "history", "journal", "model", "tool", "check", "workspace", "workspace/clone", "sandbox/wall", "loop", "harness/runs", "internal/child", "internal/config", "internal/git", "internal/render"}},
		{folder: "cmd/hone/screen", floor: 6, may: []string{root, "story", "history", "check", "internal/render", "cmd/hone/failure"}},
		{folder: "cmd/hone", floor: 12, may: []string{"internal/excerpt", "model", "sandbox/prove", "internal/child", "story", "otlp", "group", "workspace", "workspace/clone", "workspace/secret", "sandbox", "journal", "internal/git", "internal/artifact", "internal/render", "internal/transient", root, "history", "journal/objects", "loop", "loop/*", "harness", "harness/runs", "internal/config", "internal/listing", "internal/near", "cmd/hone/page", "cmd/hone/screen", "check/reader", "cmd/hone/attempts", "journal/bundle", "sandbox/wall/early", "cmd/hone/eval", "cmd/hone/web", "check", "cmd/hone/failure", "cmd/hone/kinds", "cmd/hone/report"}},
		{folder: "cmd/hone/attempts", floor: 6, may: []string{root, "story", "cmd/hone/failure", "internal/gitdir", "internal/config", "group", "history", "journal", "check", "workspace", "workspace/clone", "sandbox", "loop", "harness", "harness/runs", "internal/git", "internal/render"}},
		{folder: "cmd/hone/web", floor: 10, may: []string{root, "story", "history", "internal/child", "journal", "harness/runs", "sandbox/wall", "internal/render", "cmd/hone/attempts", "cmd/hone/eval", "cmd/hone/failure", "cmd/hone/page", "cmd/hone/report"}},
	}
}

func fits(pattern, folder string) bool {
	return must(path.Match(pattern, folder))
}

// roomOf is the folder's row; ok is false where it has none.
func roomOf(folder string) (room, bool) {
	rooms := house()
	i := slices.IndexFunc(rooms, func(r room) bool { return fits(r.folder, folder) })
	if i < 0 {
		return room{}, false
	}
	return rooms[i], true
}

// fault says what is wrong with one arrow; empty where nothing is.
func fault(from, to string) string {
	a, ok := roomOf(from)
	if !ok {
		return "the table has no room " + from
	}
	b, ok := roomOf(to)
	switch {
	case !ok:
		return "the table has no room " + to
	case to == standard && from != standard:
		return "" // stands in for package regexp
	case b.test && !a.test:
		return from + " imports " + to + ", which is for tests"
	case !slices.ContainsFunc(a.may, func(p string) bool { return fits(p, to) }):
		return from + " may not import " + to
	case b.floor > a.floor:
		return from + " imports " + to + " from above"
	}
	return ""
}

// sources parses the module's files that are not tests, by folder. It skips the test with
// -short, because a race in what hone does is not found by reading its source.
func sources(t *testing.T, fset *token.FileSet) map[string][]*ast.File {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: it reads the source")
	}
	folders := map[string][]*ast.File{}
	must(0, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isModule(name)):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(name))
		folders[folder] = append(folders[folder], must(parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)))
		return nil
	}))
	return folders
}

// isModule reports whether a folder is a module of its own.
func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// folderOf is the folder of an import path of this module.
func folderOf(path string) (string, bool) {
	if path == "hone" {
		return ".", true
	}
	return strings.CutPrefix(path, "hone/")
}

func TestArrowsRunDown(t *testing.T) {
	fset := token.NewFileSet()
	used := map[string][]string{} // what a row's folders import
	for folder, files := range sources(t, fset) {
		from, ok := roomOf(folder)
		if !ok {
			t.Errorf("the table has no room for %s", folder)
		}
		for _, f := range files {
			for _, im := range f.Imports {
				to, ok := folderOf(must(strconv.Unquote(im.Path.Value)))
				if !ok {
					continue
				}
				used[from.folder] = append(used[from.folder], to)
				if why := fault(folder, to); why != "" {
					t.Errorf("%s: %s", fset.Position(im.Pos()), why)
				}
			}
		}
	}
	for _, r := range house() {
		for _, pattern := range r.may {
			if !slices.ContainsFunc(used[r.folder], func(to string) bool { return fits(pattern, to) }) {
				t.Errorf("%s imports no %s: remove it from the table", r.folder, pattern)
			}
		}
	}
}

// TestLargeRoomsHaveReasons: CONTRIBUTING.md gives a reason for each package that has 2 500 lines
// or 20 files, and for no other.
func TestLargeRoomsHaveReasons(t *testing.T) {
	fset := token.NewFileSet()
	var large []string
	for folder, files := range sources(t, fset) {
		lines := 0
		for _, f := range files {
			lines += fset.File(f.FileStart).LineCount() - 1 // it counts the empty one at the end, too
		}
		if lines >= 2500 || len(files) >= 20 {
			large = append(large, strings.TrimPrefix(importPath(folder), "hone/"))
		}
	}
	_, table, _ := strings.Cut(string(must(os.ReadFile("CONTRIBUTING.md"))), "| package | reason |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var reasons []string
	for row := range strings.Lines(table) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			reasons = append(reasons, name[1])
		}
	}
	slices.Sort(large)
	slices.Sort(reasons)
	if diff := cmp.Diff(large, reasons); diff != "" {
		t.Errorf("packages of 2 500 lines or 20 files (-), and rows in CONTRIBUTING.md (+):\n%s", diff)
	}
}

// TestTableForbids holds what the table is there for.
func TestTableForbids(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{".", "model", true},
		{".", "model/gemini", false},
		{".", "loop/task", false},
		{".", "sandbox", false},
		{".", "history", true},
		{"history", ".", false},
		{"history", "tool", false},
		{"model", "journal", false},
		{"model/gemini", "model", true},
		{"model/gemini", "model/modeltest", false},
		{"model/gemini", "model/openai", false},
		{"model/agent", "sandbox", true},
		{"model/script", "sandbox", false},
		{"loop/task", ".", true},
		{"loop/task", "tool", true},
		{"loop/task", "loop/phase", false},
		{"loop/task", "loop/phase/spec", false},
		{"loop/phase", "loop/phase/spec", true},
		{"loop/phase/spec", ".", false},
		{"loop/task", "model/gemini", false},
		{"loop/task", "loop", true},
		{"loop/task", "harness", false},
		{"loop", "loop/task", false},
		{"harness", "loop", true},
		{"harness", "loop/task", false},
		{"harness", "model/gemini", true},
		{"internal/config", "loop/task", false},
		{"cmd/hone", "harness", true},
		{"cmd/hone", "model/gemini", false},
		{"cmd/hone", "internal/crashtest", false},
		{"cmd/hone/screen", "loop/task", false},
		{"cmd/hone", "sandbox/prove", true},
		{"loop/task", "sandbox/prove", false},
		{"sandbox/prove", "workspace", false},
		{"workspace", "workspace/secret", true},
		{"workspace/secret", "workspace", false},
		{"tool", "workspace/internal/nofollow", false},
		{"sandbox", "sandbox/wall", false},
		{"sandbox/wall", "sandbox/putback", true},
		{"sandbox/workshop", "sandbox/putback", false},
		{"loop/phase", "sandbox/wall", false},
		{"tool", "sandbox/wall", false},
		{"check", "hall", false},
		{"hall", "check", false},
	} {
		if why := fault(tt.from, tt.to); (why == "") != tt.ok {
			t.Errorf("%s → %s: %q", tt.from, tt.to, why)
		}
	}
}

// helpers are the files of what this program is when it was started to build
// walls or to try them: processes of their own, whose main is in a library.
func helpers() []string {
	return []string{"sandbox/wall/helper_linux.go", "sandbox/wall/supervisor_linux.go", "sandbox/prove/prove_linux.go", "sandbox/prove/table/stage/helper_linux.go",
		"sandbox/workshop/gotoolchain.go", "sandbox/internal/process/tree_unix.go"}
}

// early is the one folder with a func init, because a helper is to start before the
// packages that it does not need are initialized.
const early = "sandbox/wall/early"

// TestOnlyTheCommandExits, and nothing but early runs before main by itself.
func TestOnlyTheCommandExits(t *testing.T) {
	fset := token.NewFileSet()
	for folder, files := range sources(t, fset) {
		for _, f := range files {
			for _, pos := range inits(f) {
				if folder == early {
					continue
				}
				t.Errorf("%s: a func init", fset.Position(pos))
			}
			for _, pos := range exits(f) {
				if folder != "cmd/hone" && !slices.Contains(helpers(), filepath.ToSlash(fset.Position(pos).Filename)) {
					t.Errorf("%s: ends the process, which only cmd/hone does", fset.Position(pos))
				}
			}
		}
	}
}

// wordsCommandLines reports whether a file may hold command lines: those of the
// program, and of each loop's own command.
func wordsCommandLines(folder, file string) bool {
	switch {
	case folder == "loop", strings.HasPrefix(folder, "cmd/"), folder == "harness/internal/denied", // its notes are plain texts
		folder == "internal/config": // its table has the help of flags and keys
		return true
	case strings.HasPrefix(folder, "loop/"):
		return slices.Contains([]string{"kind.go", "starters.go"}, file)
	}
	return false
}

// TestOnlyTheCommandWordsCommandLines: what to type next is data ([hone.Next]),
// which the program words. An engine or a harness in another program has no flags.
func TestOnlyTheCommandWordsCommandLines(t *testing.T) {
	line := regexp.MustCompile(`\bhone (resume|show|undo|runs|replay|doctor|help|init|prompt|rollup|demo|sandbox|trust|gc|take|export|import|watch|web|eval|reconcile|implement|task|phase|fix|improve)\b`)
	fset := token.NewFileSet()
	folders := sources(t, fset)
	flags := flagNames(folders)
	if len(flags) < 100 {
		t.Fatalf("the commands have only the flags %q", flags)
	}
	for folder, files := range folders {
		for _, f := range files {
			if wordsCommandLines(folder, path.Base(filepath.ToSlash(fset.Position(f.Pos()).Filename))) {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				text, ok := n.(*ast.BasicLit)
				switch {
				case !ok || text.Kind != token.STRING:
				case line.MatchString(text.Value):
					t.Errorf("%s: words a command line: %s", fset.Position(text.Pos()), text.Value)
				case slices.ContainsFunc(flagsIn(text.Value), func(name string) bool { return slices.Contains(flags, name) }):
					t.Errorf("%s: names a flag of a command: %s", fset.Position(text.Pos()), text.Value)
				}
				return true
			})
		}
	}
}

// flagNames returns the names of the flags that the program and its loops define.
func flagNames(folders map[string][]*ast.File) []string {
	define := regexp.MustCompile(`^(Bool|Duration|Float64|Int|Int64|String|StringArray|StringSlice)?VarPF?$|^(Bool|Duration|Float64|Int|Int64|String|StringArray|StringSlice)Var$`)
	var names []string
	for folder, files := range folders {
		if !strings.HasPrefix(folder, "cmd/") && folder != "loop" && !strings.HasPrefix(folder, "loop/") && folder != "internal/config" {
			continue
		}
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				if column, ok := n.(*ast.KeyValueExpr); ok { // of a row of the table of settings
					name, literal := column.Value.(*ast.BasicLit)
					if key, ok := column.Key.(*ast.Ident); ok && key.Name == "Flag" && literal {
						flag, _, _ := strings.Cut(must(strconv.Unquote(name.Value)), ",")
						names = append(names, flag)
					}
				}
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 3 {
					return true
				}
				fn, ok := call.Fun.(*ast.SelectorExpr)
				if name, literal := call.Args[1].(*ast.BasicLit); ok && literal && define.MatchString(fn.Sel.Name) {
					names = append(names, must(strconv.Unquote(name.Value)))
				}
				return true
			})
		}
	}
	return names
}

var (
	flagOf = regexp.MustCompile(`--([a-z][a-z-]*)`)
	other  = regexp.MustCompile(`\bgit [^;,]*`) // a command line of another program
)

// flagsIn returns the names of the flags in a text. A string that is nothing but a
// flag is an argument of a program that is run.
func flagsIn(text string) (names []string) {
	if !strings.Contains(text, " ") {
		return nil
	}
	for _, m := range flagOf.FindAllStringSubmatch(other.ReplaceAllString(text, ""), -1) {
		names = append(names, m[1])
	}
	return names
}

// inits are a file's func inits.
func inits(f *ast.File) (at []token.Pos) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			at = append(at, fn.Pos())
		}
	}
	return at
}

// exits are the places where a file names a function that ends the process.
func exits(f *ast.File) (at []token.Pos) {
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := imported(f, sel.X) + "." + sel.Sel.Name
		if name == "os.Exit" || name == "syscall.Exit" || strings.HasPrefix(name, "log.Fatal") {
			at = append(at, sel.Pos())
		}
		return true
	})
	return at
}

// imported is the path of the package that an expression names, if it does.
func imported(f *ast.File, x ast.Expr) string {
	id, ok := x.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, im := range f.Imports {
		p := must(strconv.Unquote(im.Path.Value))
		if name := path.Base(p); im.Name != nil && im.Name.Name == id.Name || im.Name == nil && name == id.Name {
			return p
		}
	}
	return ""
}

// TestOneDoorToTheTree: only the engine and history change a tree.
func TestOneDoorToTheTree(t *testing.T) {
	h := &inspector{fset: token.NewFileSet(), packages: map[string]*types.Package{}, uses: map[string][]string{}}
	h.folders = sources(t, h.fset)
	for folder := range h.folders {
		must(h.Import(importPath(folder)))
	}
	if len(h.uses["."]) < 2 || len(h.uses["history"]) < 2 {
		t.Errorf("the engine changes the tree at %v, and history at %v; if that is right, this test sees nothing", h.uses["."], h.uses["history"])
	}
	for _, fault := range h.faults {
		t.Error(fault)
	}
}

func importPath(folder string) string {
	if folder == "." {
		return "hone"
	}
	return "hone/" + folder
}

// inspector checks the types of the module's packages and notes who names
// what changes a tree. Packages from elsewhere are empty to it, and what does not
// resolve for that is passed over.
type inspector struct {
	fset     *token.FileSet
	folders  map[string][]*ast.File
	packages map[string]*types.Package
	uses     map[string][]string // places that name a door, by folder
	faults   []string            // those that may not
}

// doors returns the functions that change a tree, with the folders that may
// name them, to call them or to pass them on.
func doors() map[string][]string {
	return map[string][]string{
		"(*hone/workspace.Tree).Apply": {".", "history"},
		"(*hone/workspace.Tree).Root":  {"workspace/clone"},
	}
}

// Import makes it a types.Importer.
func (h *inspector) Import(name string) (*types.Package, error) {
	if p := h.packages[name]; p != nil {
		return p, nil
	}
	folder, ours := folderOf(name)
	if !ours {
		p := types.NewPackage(name, path.Base(name))
		p.MarkComplete()
		h.packages[name] = p
		return p, nil
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: h, Error: func(error) {}, FakeImportC: true}
	p, _ := conf.Check(name, h.fset, h.built(folder), info)
	h.packages[name] = p
	for id, obj := range info.Uses {
		h.note(folder, id, obj)
	}
	return p, nil
}

// note records an identifier that names a door.
func (h *inspector) note(folder string, id *ast.Ident, obj types.Object) {
	f, ok := obj.(*types.Func)
	if !ok {
		return
	}
	folders, ok := doors()[f.FullName()]
	if !ok {
		return
	}
	place := h.fset.Position(id.Pos()).String()
	h.uses[folder] = append(h.uses[folder], place)
	if !slices.Contains(folders, folder) {
		h.faults = append(h.faults, fmt.Sprintf("%s: %s may not name %s", place, folder, f.FullName()))
	}
}

// built are the files of a folder that are built on this system.
func (h *inspector) built(folder string) []*ast.File {
	var files []*ast.File
	for _, f := range h.folders[folder] {
		name := h.fset.Position(f.Pos()).Filename
		if must(build.Default.MatchFile(filepath.Dir(name), filepath.Base(name))) {
			files = append(files, f)
		}
	}
	return files
}

// TestTheDoorIsSeen: a package that calls a door, or passes it on, is reported.
func TestTheDoorIsSeen(t *testing.T) {
	const src = `package sly
import "hone/workspace"
type T struct{ inner struct{ *workspace.Tree } }
func open() (*workspace.Tree, error) { return nil, nil }
func (t *T) a() any { return t.inner.Apply }
func b() { tree, _ := open(); tree.Apply(nil, nil, nil); tree.Root() }
`
	h := &inspector{fset: token.NewFileSet(), packages: map[string]*types.Package{}, uses: map[string][]string{}}
	h.folders = sources(t, h.fset)
	f := must(parser.ParseFile(h.fset, "doc.go", src, 0)) // any name that is built
	h.folders["loop/sly"] = []*ast.File{f}
	must(h.Import("hone/loop/sly"))
	if len(h.uses["loop/sly"]) != 3 || len(h.faults) != 3 {
		t.Errorf("found %v and reported %v, want three places", h.uses["loop/sly"], h.faults)
	}
}
