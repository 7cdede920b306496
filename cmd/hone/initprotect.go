package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hone/cmd/hone/failure"
	"hone/internal/config"
	"hone/loop"
)

// language is a kind of project that init knows the tests of.
type language struct {
	name    string
	marks   []string // globs of files at the root by which it is known
	check   string   // a command that says whether the code is right
	protect []string // globs of what says whether the code is right
}

// languages are those that there are. Of the files that list what a project is
// made of, those are named that also say how it is tested, and no others:
// adding a source file should not need approval.
func languages() []language {
	return []language{
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

// anyLanguage is for a folder that has a Makefile and tells no more.
func anyLanguage() language {
	return language{"make", []string{"Makefile", "makefile", "GNUmakefile"}, "make test", []string{"{test,tests}/**", "Makefile", "makefile", "GNUmakefile"}}
}

// spoken are the languages of a folder. A folder that cannot be read has none.
func spoken(root string, known []language) []language {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(known), func(l language) bool {
		return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Type().IsRegular() && l.marked(e.Name()) })
	})
}

// plainPython is Python in a folder whose only sign of it is tests.
func plainPython(root string) []language {
	command, known := loop.PythonTests(root), languages()
	i := slices.IndexFunc(known, func(l language) bool { return l.name == "Python" })
	if command == "" {
		return nil
	}
	known[i].check = command
	return known[i : i+1]
}

// marked reports whether a file's name says that the language is spoken.
func (l language) marked(name string) bool {
	return slices.ContainsFunc(l.marks, func(mark string) bool {
		ok, _ := path.Match(mark, name)
		return ok
	})
}

// protectLine is the setting for some languages, each glob once.
func protectLine(ls []language) string {
	var globs []string
	for _, l := range ls {
		for _, glob := range l.protect {
			if quoted := strconv.Quote(glob); !slices.Contains(globs, quoted) {
				globs = append(globs, quoted)
			}
		}
	}
	return "protect = [" + strings.Join(globs, ", ") + "]"
}

// honeStarter is a .config/hone.toml in which nothing is switched on. Without a
// language there is nothing to protect, and the check is an example.
func honeStarter(ls []language) string {
	if len(ls) == 0 {
		return checkStarter("make test")
	}
	var names, checks []string
	for _, l := range ls {
		names, checks = append(names, l.name), append(checks, l.check)
	}
	return checkStarter(strings.Join(checks, " && ")) + `
# These files decide whether the code is right (` + strings.Join(names, ", ") + `). Uncomment the next line, and adapt
# the list, to protect them: a model can then change the files that exist at the start of a run only
# with your approval, and hone restores them if a command changes them.
# ` + protectLine(ls) + "\n"
}

// checkStarter is the part of a .config/hone.toml that offers a check.
func checkStarter(command string) string {
	return `# Settings of hone for this project. Command-line flags override them.

[check]
# This command says whether the code is right: it exits 0 if so. Remove the # if it fits; hone fix needs one.
# command = ` + strconv.Quote(command) + "\n"
}

// offerConfig writes a .config/hone.toml that offers a check, and to protect
// what the languages are tested by, or says what could be added to the one that
// is there. The starter files may include one of the loop's own. Without a
// language it does nothing unless the loop needs a check.
func (a *app) offerConfig(root string, ls []language, starter, needsCheck bool) error {
	if len(ls) == 0 && (starter || !needsCheck) {
		return nil
	}
	report := "wrote   " + config.HonePath + ", with the check commented out"
	if len(ls) > 0 {
		report = "wrote   " + config.HonePath + ", with the check and the protected files commented out"
	}
	err := fs.ErrExist
	if !starter {
		err = put(root, config.HonePath, []byte(honeStarter(ls)))
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		report = a.addition(root, ls, starter)
	case err != nil:
		return failure.Of(fmt.Errorf("write %s: %w", config.HonePath, err), "hone doctor")
	}
	if report != "" {
		_, err = fmt.Fprintln(a.out, report)
		return err
	}
	return nil
}

// addition says what could be added to the .config/hone.toml that exists. If it
// is a starter file it was already named.
func (a *app) addition(root string, ls []language, starter bool) string {
	line := protectLine(ls)
	lines := ":\n\n    [check]\n    " + line + "\n"
	known := len(ls) == 0 || a.knowsProtect(root, line)
	switch kept := "kept    " + config.HonePath + ", which already exists"; {
	case starter && known:
		return ""
	case starter:
		return "to protect the tests, you could add to " + config.HonePath + lines
	case known:
		return kept
	default:
		return kept + "; you could add" + lines
	}
}

// knowsProtect reports whether a project's file says what is protected, or
// has the line, be it as a comment.
func (a *app) knowsProtect(root, line string) bool {
	if file, err := a.loadConfig(root, "", nil); err != nil || file.Check.Protect != nil {
		return err == nil
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(config.HonePath)))
	return err == nil && strings.Contains(string(text), line)
}
