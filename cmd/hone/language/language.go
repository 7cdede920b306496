// Package language knows projects by the files at their root, and how a project of a language
// is tested. hone init offers that.
package language

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"hone/loop"
)

// Language is a kind of project.
type Language struct {
	Name  string
	Marks []string // globs of files at the root by which it is known
	Check string   // a command that says whether the code is right
}

// All returns the languages that hone knows.
func All() []Language {
	return []Language{
		{"Go", []string{"go.mod", "go.work"}, "go vet ./... && go test ./..."},
		{"Python", []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pytest.ini", "conftest.py"}, "python3 -m pytest"},
		{"Node", []string{"package.json"}, "npm test"},
		{"Rust", []string{"Cargo.toml"}, "cargo test"},
		{"Java", []string{"pom.xml", "build.gradle", "build.gradle.kts"}, "mvn test"},
		{"Ruby", []string{"Gemfile", "*.gemspec"}, "bundle exec rake"},
		{"PHP", []string{"composer.json"}, "composer test"},
		{"Elixir", []string{"mix.exs"}, "mix test"},
		{".NET", []string{"*.sln", "*.slnx", "*.csproj", "*.fsproj"}, "dotnet test"},
		{"C and C++", []string{"CMakeLists.txt", "meson.build", "configure.ac"}, "make test"},
	}
}

// makefile is the language of a directory that has a Makefile and nothing else that marks one.
func makefile() Language {
	return Language{"make", []string{"Makefile", "makefile", "GNUmakefile"}, "make test"}
}

// Of returns the languages of a directory; nil if it has none, or cannot be read. If only tests
// show that it is Python, or a Makefile is all it has, that is its language. written are the
// paths of files that are about to be written there, which mark none.
func Of(root string, written []string) []Language {
	found := marked(root, All())
	if len(found) == 0 && !slices.ContainsFunc(written, makefile().marks) {
		found = marked(root, []Language{makefile()})
	}
	if len(found) == 0 {
		found = plainPython(root)
	}
	return found
}

// marked returns the languages that a file in a directory marks.
func marked(root string, known []Language) []Language {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(known), func(l Language) bool {
		return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Type().IsRegular() && l.marks(e.Name()) })
	})
}

// plainPython returns Python for a directory in which only tests show that it is.
func plainPython(root string) []Language {
	command, known := loop.PythonTests(root), All()
	i := slices.IndexFunc(known, func(l Language) bool { return l.Name == "Python" })
	if command == "" {
		return nil
	}
	known[i].Check = command
	return known[i : i+1]
}

// marks reports whether a file's name marks the language.
func (l Language) marks(name string) bool {
	return slices.ContainsFunc(l.Marks, func(mark string) bool {
		ok, _ := path.Match(mark, name)
		return ok
	})
}

// Config returns a .config/hone.toml in which nothing is switched on. Without a language the
// check is an example.
func Config(ls []Language) string {
	var checks []string
	for _, l := range ls {
		checks = append(checks, l.Check)
	}
	if len(checks) == 0 {
		checks = []string{"make test"}
	}
	return `# Settings of hone for this project. Command-line flags override them.

[check]
# This command says whether the code is right: it exits 0 if so. Remove the # if it fits; hone fix needs one.
# command = ` + strconv.Quote(strings.Join(checks, " && ")) + `

# A model that changes a test has passed only if the check passes without that change too. To take
# such changes back at once instead, remove the #.
# judge = "keep"
`
}
