// Package language knows projects by the files at their root: how a project of a language is
// tested, and which files say whether its code is right. hone init offers both.
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
	Name    string
	Marks   []string // globs of files at the root by which it is known
	Check   string   // a command that says whether the code is right
	Protect []string // globs of the files that say whether the code is right
}

// All returns the languages that hone knows. Of the files that list what a project is made of,
// Protect has those that also say how it is tested, and no others: adding a source file should
// not need approval.
func All() []Language {
	return []Language{
		{"Go", []string{"go.mod", "go.work"}, "go vet ./... && go test ./...", []string{"**/*_test.go", "**/testdata/**", ".golangci.yml", "Makefile"}},
		{"Python", []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pytest.ini", "conftest.py"}, "python3 -m pytest",
			[]string{"**/tests/**", "**/test_*.py", "**/*_test.py", "**/conftest.py", "pytest.ini", "tox.ini", "noxfile.py"}},
		{"Node", []string{"package.json"}, "npm test",
			[]string{"**/*.{test,spec}.*", "**/__tests__/**", "**/__snapshots__/**", "{test,tests,e2e,cypress}/**", "package.json", "{jest,vitest,playwright,eslint}.config.*", "tsconfig*.json"}},
		{"Rust", []string{"Cargo.toml"}, "cargo test", []string{"**/tests/**", "**/*.snap", ".cargo/**", "clippy.toml"}},
		{"Java", []string{"pom.xml", "build.gradle", "build.gradle.kts"}, "mvn test", []string{"**/src/test/**", "config/**", "checkstyle.xml"}},
		{"Ruby", []string{"Gemfile", "*.gemspec"}, "bundle exec rake", []string{"**/spec/**", "**/test/**", ".rspec", ".rubocop.yml", "Rakefile"}},
		{"PHP", []string{"composer.json"}, "composer test", []string{"tests/**", "phpunit.xml*", "phpstan.neon*"}},
		{"Elixir", []string{"mix.exs"}, "mix test", []string{"**/test/**", ".credo.exs", ".formatter.exs"}},
		{".NET", []string{"*.sln", "*.slnx", "*.csproj", "*.fsproj"}, "dotnet test", []string{"**/*Tests/**", "**/*{Test,Tests}.{cs,fs}", "{test,tests}/**", ".editorconfig"}},
		{"C and C++", []string{"CMakeLists.txt", "meson.build", "configure.ac"}, "make test",
			[]string{"{test,tests}/**", "**/test_*.{c,cc,cpp}", "**/*_test.{c,cc,cpp}", ".clang-tidy"}},
	}
}

// makefile is the language of a directory that has a Makefile and nothing else that marks one.
func makefile() Language {
	return Language{"make", []string{"Makefile", "makefile", "GNUmakefile"}, "make test", []string{"{test,tests}/**", "Makefile", "makefile", "GNUmakefile"}}
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

// ProtectLine returns the setting that protects the tests of some languages, each glob once.
func ProtectLine(ls []Language) string {
	var globs []string
	for _, l := range ls {
		for _, glob := range l.Protect {
			if quoted := strconv.Quote(glob); !slices.Contains(globs, quoted) {
				globs = append(globs, quoted)
			}
		}
	}
	return "protect = [" + strings.Join(globs, ", ") + "]"
}

// Config returns a .config/hone.toml in which nothing is switched on. Without a language there
// is nothing to protect, and the check is an example.
func Config(ls []Language) string {
	if len(ls) == 0 {
		return checkOffer("make test")
	}
	var names, checks []string
	for _, l := range ls {
		names, checks = append(names, l.Name), append(checks, l.Check)
	}
	return checkOffer(strings.Join(checks, " && ")) + `
# These files decide whether the code is right (` + strings.Join(names, ", ") + `). Uncomment the next line, and adapt
# the list, to protect them: a model can then change the files that exist at the start of a run only
# with your approval, and hone restores them if a command changes them.
# ` + ProtectLine(ls) + "\n"
}

// checkOffer returns the part of a .config/hone.toml that offers a check.
func checkOffer(command string) string {
	return `# Settings of hone for this project. Command-line flags override them.

[check]
# This command says whether the code is right: it exits 0 if so. Remove the # if it fits; hone fix needs one.
# command = ` + strconv.Quote(command) + "\n"
}
