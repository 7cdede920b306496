package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hone/internal/artifact"
	"hone/loop"
)

// language is a kind of project.
type language struct {
	Marks []string // globs of files at the root by which it is known
	Check string   // a command that says whether the code is right; empty if the project has none
	Mark  string   // the file that was found

	// own returns the check of the project in a directory; nil means Check.
	own func(root string, usual string) string
}

func languages() []language {
	return []language{
		{Marks: []string{"go.mod", "go.work"}, Check: "go vet ./... && go test ./..."},
		{Marks: []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pytest.ini", "conftest.py"}, Check: "python3 -m pytest", own: pythonCheck},
		{Marks: []string{"package.json"}, Check: "npm test", own: nodeCheck},
		{Marks: []string{"Cargo.toml"}, Check: "cargo test"},
		{Marks: []string{"pom.xml"}, Check: "mvn test", own: instead("mvnw", "./mvnw test")},
		{Marks: []string{"build.gradle", "build.gradle.kts"}, Check: "gradle test", own: instead("gradlew", "./gradlew test")},
		{Marks: []string{"Gemfile", "*.gemspec"}, Check: "bundle exec rake", own: instead(".rspec", "bundle exec rspec")},
		{Marks: []string{"composer.json"}, Check: "composer test"},
		{Marks: []string{"mix.exs"}, Check: "mix test"},
		{Marks: []string{"*.sln", "*.slnx", "*.csproj", "*.fsproj"}, Check: "dotnet test"},
		{Marks: []string{"CMakeLists.txt"}, Check: "cmake -B build && cmake --build build && ctest --test-dir build"},
		{Marks: []string{"meson.build", "configure.ac"}, Check: "make test"},
	}
}

// makefile is the language of a directory that has a Makefile and nothing else that marks one.
func makefile() language {
	return language{Marks: []string{"Makefile", "makefile", "GNUmakefile"}, Check: "make", own: makeCheck}
}

// languagesOf returns the languages of a directory; nil if it has none, or cannot be read. If only tests
// show that it is Python, or a Makefile is all it has, that is its language. written are the
// paths of files that are about to be written there, which mark none.
func languagesOf(root string, written []string) []language {
	found := marked(root, languages())
	if len(found) == 0 && !slices.ContainsFunc(written, makefile().marks) {
		found = marked(root, []language{makefile()})
	}
	if len(found) > 0 {
		return found
	}
	if tests := pythonTests(root); tests != "" {
		found = []language{{Check: tests, Mark: "the tests"}}
	}
	return found
}

// checksOf returns the command that checks all languages; empty if there is none.
func checksOf(ls []language) string {
	var checks []string
	for _, l := range ls {
		if l.Check != "" {
			checks = append(checks, l.Check)
		}
	}
	return strings.Join(checks, " && ")
}

// adviseCheck returns a hint in which the check of the project in a directory takes the place of
// the example. If the hint is the command line itself, the files that it is from precede the line.
func adviseCheck(root, hint string) string {
	example := strconv.Quote(loop.ExampleCheck)
	if !strings.Contains(hint, example) {
		return hint
	}
	from, own := suggestedCheck(root)
	if own == "" {
		return hint
	}
	own = quotedCheck(own)
	if before, _, _ := strings.Cut(hint, example); !strings.HasPrefix(before, "hone ") || len(strings.Fields(before)) != len(strings.Fields("hone fix --check")) {
		return strings.ReplaceAll(hint, example, own)
	}
	return from + ": " + strings.ReplaceAll(hint, example, own)
}

// suggestedCheck returns the check of the project in a directory, and which files suggest it, such as
// "go.mod suggests"; empty if hone knows none.
func suggestedCheck(root string) (from, check string) {
	found := slices.DeleteFunc(languagesOf(root, nil), func(l language) bool { return l.Check == "" })
	if len(found) == 0 {
		return "", ""
	}
	var marks []string
	for _, l := range found {
		marks = append(marks, l.Mark)
	}
	verb := " suggest"
	if len(marks) == 1 && !strings.HasSuffix(marks[0], "tests") {
		verb = " suggests"
	}
	return strings.Join(marks, " and ") + verb, checksOf(found)
}

func quotedCheck(command string) string {
	if strings.ContainsAny(command, "\"$`\\!") {
		return "'" + command + "'" // no check that hone knows has a single quote
	}
	return `"` + command + `"`
}

func marked(root string, known []language) (found []language) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	for _, l := range known {
		i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Type().IsRegular() && l.marks(e.Name()) })
		if i < 0 {
			continue
		}
		if l.Mark = entries[i].Name(); l.own != nil {
			l.Check = l.own(root, l.Check)
		}
		found = append(found, l)
	}
	return found
}

// A project with the file has this check.
func instead(file, check string) func(root, usual string) string {
	return func(root, usual string) string {
		if _, err := os.Lstat(filepath.Join(root, file)); err == nil {
			return check
		}
		return usual
	}
}

// It is unittest if all tests are for it and nothing configures pytest.
func pythonCheck(root, usual string) string {
	for _, name := range []string{"pytest.ini", "conftest.py"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			return usual
		}
	}
	text, _ := artifact.Input(filepath.Join(root, "pyproject.toml"))
	if bytes.Contains(text, []byte("pytest")) {
		return usual
	}
	return cmp.Or(pythonTests(root), usual)
}

// It is what package.json runs as a test, or else the script that most nearly is one.
func nodeCheck(root, usual string) string {
	var project struct{ Scripts map[string]string }
	text, err := artifact.Input(filepath.Join(root, "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &project)
	}
	if err != nil {
		return usual
	}
	if test := project.Scripts["test"]; test != "" && !strings.Contains(test, "no test specified") {
		return usual
	}
	for _, name := range []string{"check", "typecheck", "lint", "build"} {
		if project.Scripts[name] != "" {
			return "npm run " + name
		}
	}
	return ""
}

func makeCheck(root, usual string) string {
	for _, name := range makefile().Marks {
		text, _ := artifact.Input(filepath.Join(root, name))
		for _, target := range []string{"test", "check", "tests"} {
			if bytes.HasPrefix(text, []byte(target+":")) || bytes.Contains(text, []byte("\n"+target+":")) {
				return usual + " " + target
			}
		}
	}
	return usual
}

func (l language) marks(name string) bool {
	return slices.ContainsFunc(l.Marks, func(mark string) bool {
		ok, _ := path.Match(mark, name)
		return ok
	})
}

// starterConfig returns a .config/hone.toml in which nothing is switched on. Without a language the
// check is an example.
func starterConfig(ls []language) string {
	return `# Settings of hone for this project. Command-line flags override them.

[check]
# This command says whether the code is right: it exits 0 if so. Remove the # if it fits; hone fix needs one.
# command = ` + strconv.Quote(cmp.Or(checksOf(ls), loop.ExampleCheck)) + `

# A model that changes a test has passed only if the check passes without that change too. To take
# such changes back at once instead, remove the #.
# judge = "keep"
`
}

// pythonTests returns a command that runs the Python tests at the top of a
// directory and in its tests/: with unittest if every file has a TestCase and
// there is no tests/conftest.py, else with pytest. It is empty without tests.
func pythonTests(root string) string {
	var commands, files []string
	for _, sub := range []string{"", "tests"} {
		for _, pattern := range []string{"test_*.py", "*_test.py"} {
			if found := regular(root, sub, pattern); found != nil {
				commands, files = append(commands, unittest(root, sub, pattern)), append(files, found...)
			}
		}
	}
	plain := func(file string) bool {
		text, err := artifact.Input(file)
		return err != nil || !bytes.Contains(text, []byte("TestCase"))
	}
	if files != nil && (slices.ContainsFunc(files, plain) || regular(root, "tests", "conftest.py") != nil) {
		return "python3 -m pytest"
	}
	slices.Sort(commands)
	return strings.Join(slices.Compact(commands), " && ")
}

func regular(root, sub, pattern string) (found []string) {
	entries, err := os.ReadDir(filepath.Join(root, sub))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if ok, _ := filepath.Match(pattern, e.Name()); ok && e.Type().IsRegular() {
			found = append(found, filepath.Join(root, sub, e.Name()))
		}
	}
	return found
}

// From the top unittest also looks into tests/, but only if that is a package.
func unittest(root, sub, pattern string) string {
	command := "python3 -m unittest"
	if regular(root, sub, "__init__.py") != nil {
		sub = ""
	}
	if sub != "" || pattern != "test_*.py" {
		command += " discover"
	}
	if sub != "" {
		command += " -s " + sub
	}
	if pattern != "test_*.py" {
		command += ` -p "` + pattern + `"`
	}
	return command
}
