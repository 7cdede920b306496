package judge

import (
	"bytes"
	"encoding/json"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"hone/internal/lazyregexp"
)

// Merge returns what a file that judges the work holds if what judges in it is as the run
// found it, and all else as it is now: now itself if nothing that judges has changed. Nil
// means that there is no file. Most files judge as a whole; of others only a part does,
// such as the scripts in package.json and the inline tests of a Rust source.
func Merge(cleaned string, now, found []byte) []byte {
	part, ok := partOf(cleaned)
	if !ok || now == nil {
		if bytes.Equal(now, found) && (now == nil) == (found == nil) {
			return now
		}
		return found
	}
	merged, ok := part(now, found)
	switch {
	case ok:
		return merged
	case bytes.Equal(now, found):
		return now
	}
	return found
}

// part merges what judges in found into now; it returns now itself if nothing differs. ok
// is false if one of them cannot be read.
type part func(now, found []byte) (merged []byte, ok bool)

// ok is false if all of the file judges.
func partOf(cleaned string) (p part, ok bool) {
	name := strings.ToLower(path.Base(cleaned))
	switch {
	case name == "package.json":
		return keyed(json.Unmarshal, indented, "scripts", "workspaces", "overrides", "resolutions", "pnpm", "babel", "jest", "mocha", "ava", "tap", "nyc", "c8", "vitest", "eslintConfig", "eslintIgnore", "prettier", "xo", "standard", "stylelint", "cypress"), true
	case name == "composer.json":
		return keyed(json.Unmarshal, indented, "scripts", "autoload-dev"), true
	case name == "deno.json":
		return keyed(json.Unmarshal, indented, "test", "lint", "fmt", "tasks", "exclude", "workspace"), true
	case name == "pyproject.toml":
		return keyed(toml.Unmarshal, toml.Marshal, "tool.pytest", "tool.coverage", "tool.tox", "tool.nox", "tool.hatch", "tool.poe", "tool.pdm.scripts", "tool.pixi.tasks", "tool.pixi.feature", "tool.rye.scripts", "tool.taskipy", "tool.doit",
			"tool.ruff", "tool.mypy", "tool.pylint", "tool.pyright", "tool.basedpyright", "tool.black", "tool.isort", "tool.bandit", "tool.flake8"), true
	case name == "pipfile":
		return keyed(toml.Unmarshal, toml.Marshal, "scripts"), true
	case name == "pixi.toml":
		return keyed(toml.Unmarshal, toml.Marshal, "tasks", "feature", "activation"), true
	case name == "project.json": // Nx
		return keyed(json.Unmarshal, indented, "targets"), true
	case name == "cargo.toml":
		return keyed(toml.Unmarshal, toml.Marshal, "test", "bench", "lints", "lib.test", "lib.doctest", "lib.harness", "package.autotests", "package.autobenches", "profile.test", "patch", "replace",
			"workspace.lints", "workspace.members", "workspace.default-members", "workspace.exclude"), true
	case name == "setup.cfg":
		return sections, true
	case cleaned == "go.mod":
		return lines(replacingLine), true
	case name == "go.mod": // the tests below one are no longer those of the module above
		return lines(moduleLine), true
	case slices.Contains(buildFiles, name), slices.Contains(buildFiles, path.Ext(name)), strings.HasPrefix(name, "vite.config."):
		return lines(judgingLine), true
	case strings.HasSuffix(name, ".rs"):
		return rustTests, !isRustTest(strings.ToLower(cleaned))
	}
	return nil, false
}

func indented(v any) ([]byte, error) { return json.MarshalIndent(v, "", "  ") }

// A dot is between the names of tables.
func keyed(read func([]byte, any) error, write func(any) ([]byte, error), keys ...string) part {
	return func(now, found []byte) ([]byte, bool) {
		var is, was map[string]any
		if read(now, &is) != nil || found != nil && read(found, &was) != nil {
			return nil, false
		}
		same := true
		for _, key := range keys {
			names := strings.Split(key, ".")
			old, had := at(was, names)
			if current, has := at(is, names); has == had && reflect.DeepEqual(current, old) {
				continue
			}
			same = false
			if is == nil {
				is = map[string]any{}
			}
			set(is, names, old, had)
		}
		switch {
		case same:
			return now, true
		case reflect.DeepEqual(is, was):
			return found, true
		}
		merged, err := write(is)
		return merged, err == nil
	}
}

func at(m map[string]any, names []string) (v any, ok bool) {
	if v, ok = m[names[0]]; !ok || len(names) == 1 {
		return v, ok
	}
	below, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	return at(below, names[1:])
}

func set(m map[string]any, names []string, v any, has bool) {
	switch {
	case len(names) == 1 && has:
		m[names[0]] = v
		return
	case len(names) == 1:
		delete(m, names[0])
		return
	}
	below, ok := m[names[0]].(map[string]any)
	if !ok {
		below = map[string]any{}
		m[names[0]] = below
	}
	set(below, names[1:], v, has)
}

var packagingSection = lazyregexp.New(`^\[(metadata|options(\..*)?|bdist.*|sdist|build.*|egg_info|install.*|upload.*|files|global|extract_messages|init_catalog|compile_catalog|update_catalog|versioneer)\]`)

// sections are those sections of a setup.cfg that do not describe the package.
func sections(now, found []byte) ([]byte, bool) {
	keepNow, judgesNow := split(now)
	_, judged := split(found)
	if judgesNow == judged {
		return now, true
	}
	return []byte(keepNow + judged), true
}

func split(cfg []byte) (packaging, others string) {
	into := &packaging
	for line := range strings.Lines(string(cfg)) {
		switch {
		case packagingSection.MatchString(line):
			into = &packaging
		case strings.HasPrefix(strings.TrimSpace(line), "["): // indented, it may be a section as well
			into = &others
		}
		*into += line
	}
	return packaging, others
}

// buildFiles are files, by name or extension, that list the parts of a program and say which tests run.
var buildFiles = []string{"cmakelists.txt", ".cmake", "meson.build", "pom.xml", "build.gradle", "build.gradle.kts", "build.sbt", "mix.exs", "rebar.config",
	"package.swift", "build.zig", ".cabal", ".csproj", ".fsproj", ".vbproj", ".sln", ".slnx", "makefile.pl", "build.pl"}

// commentMark begins or ends a comment or text of several lines, in which no line counts.
const commentMark = `#\[=*\[|\]=*\]|<!--|-->|/\*|\*/|\{-|-\}|"""|'''`

var (
	judgingLine   = lazyregexp.New(`(?i)test|junit|surefire|failsafe|skip|exclude|enabled|onlyif|\bif\b|\breturn\b|fail|<modules?>|<packaging>|\baliases\b|<profiles?>|\b(?:function|macro|foreach|while|block)\b|` + commentMark)
	replacingLine = lazyregexp.New(`=>`) // what a test imports may be replaced as well
	moduleLine    = lazyregexp.New(`=>|^module\b`)
)

// lines are the lines of a build file that say which tests run. They have no order of
// their own, so that the whole file is as it was found if one of them differs.
func lines(judging *lazyregexp.Regexp) part {
	return func(now, found []byte) ([]byte, bool) {
		if matching(judging, now) == matching(judging, found) {
			return now, true
		}
		return found, true
	}
}

func matching(judging *lazyregexp.Regexp, build []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(build)) {
		if judging.MatchString(line) {
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	return b.String()
}

func isRustTest(cleaned string) bool {
	return strings.HasSuffix("/"+cleaned, "/tests.rs") || strings.HasSuffix("/"+cleaned, "/test.rs") ||
		strings.Contains("/"+cleaned, "/tests/") || strings.Contains("/"+cleaned, "/benches/")
}

// The items take the place of those that are there now, in order; what is left follows at the end.
func rustTests(now, found []byte) ([]byte, bool) {
	is, was := rustItems(now), rustItems(found)
	merged, end := []byte{}, 0
	for i, item := range is {
		merged = append(merged, now[end:item.start]...)
		if i < len(was) {
			merged = append(merged, was[i].of(found)...)
		}
		end = item.end
	}
	merged = append(merged, now[end:]...)
	for _, item := range was[min(len(is), len(was)):] {
		merged = append(append(merged, '\n'), item.of(found)...)
	}
	return merged, true
}

type span struct{ start, end int }

func (s span) of(b []byte) []byte { return b[s.start:s.end] }

// rustToken is what hides braces in Rust, or is one: a comment, a string, a character (not
// a lifetime), an attribute, and the marks of a body.
var rustToken = lazyregexp.New(`//[^\n]*|(?s:/\*.*?\*/)|r#+"(?s:.*?)"#+|"(?s:\\.|[^"\\])*"|'(?:\\[^\n]+?|[^'\\\n])'|#!?\[|[\[\](){};]`)

var testAttribute = lazyregexp.New(`\b(test|rstest|test_case|proptest|bench)\b`)

// An attribute makes such items, functions and modules, tests; each has all its attributes.
func rustItems(src []byte) (items []span) {
	tokens := rustToken.FindAllStringIndex(string(src), -1)
	for i := 0; i < len(tokens); i++ {
		start := tokens[i][0]
		if !bytes.HasPrefix(src[start:], []byte("#[")) {
			continue
		}
		isTest := false
		for i < len(tokens) && (src[tokens[i][0]] == '#' || src[tokens[i][0]] == '/') {
			end := closing(src, tokens, i)
			isTest = isTest || src[tokens[i][0]] == '#' && testAttribute.Match(src[tokens[i][0]:tokens[end][1]])
			if i = end + 1; i < len(tokens) && len(bytes.TrimSpace(src[tokens[end][1]:tokens[i][0]])) > 0 {
				break
			}
		}
		if !isTest {
			i--
			continue
		}
		for ; i < len(tokens); i++ { // to the body, or to the item's end without one
			if mark := src[tokens[i][0]]; mark == '(' || mark == '[' {
				i = closing(src, tokens, i)
			} else if mark == '{' || mark == ';' {
				i = closing(src, tokens, i)
				break
			}
		}
		items = append(items, span{start, tokens[min(i, len(tokens)-1)][1]})
	}
	return items
}

// The last token counts if none closes the bracket.
func closing(src []byte, tokens [][]int, open int) int {
	if !strings.ContainsRune("#([{", rune(src[tokens[open][0]])) {
		return open
	}
	depth := 0
	for i := open; i < len(tokens); i++ {
		switch src[tokens[i][1]-1] {
		case '[', '(', '{':
			if tokens[i][1]-tokens[i][0] <= 3 && src[tokens[i][0]] != '"' && src[tokens[i][0]] != '\'' && src[tokens[i][0]] != '/' {
				depth++
			}
		case ']', ')', '}':
			if tokens[i][1]-tokens[i][0] == 1 {
				if depth--; depth == 0 {
					return i
				}
			}
		}
	}
	return len(tokens) - 1
}
