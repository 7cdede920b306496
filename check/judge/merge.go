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

// Whole reports whether all of a file judges, if it does.
func Whole(cleaned string) bool {
	_, part := partOf(cleaned)
	return !part
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
	case cleaned == "go.mod":
		return lines(replacingLine), true
	case name == "go.mod": // the tests below one are no longer those of the module above
		return lines(moduleLine), true
	case slices.Contains(buildFiles, name), slices.Contains(buildFiles, path.Ext(name)), strings.HasPrefix(name, "vite.config."):
		return lines(judgingLine), true
	case strings.HasSuffix(name, ".rs"):
		return rustTests, !rustTestFile.MatchString(cleaned)
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

var (
	rustTestFile  = lazyregexp.New(`(?i)(?:^|/)(?:tests?\.rs$|tests/|benches/)`) // all of it judges
	rustAttribute = lazyregexp.New(`^\s*#!?\[.*\]\s*(?://.*)?$`)                 // alone on its line
	testAttribute = lazyregexp.New(`^\s*#\[.*\b(?:test|rstest|test_case|proptest|bench)\b.*\]`)
)

// An attribute makes such items, functions and modules, tests; each has all its attributes. They are found as rustfmt writes
// them: an item ends on its own line, or with a brace as deep as it begins.
func rustItems(src []byte) (items []span) {
	lines := strings.SplitAfter(string(src), "\n")
	start, isTest, open := 0, false, "" // open is the line that ends the item
	at := 0
	for n, line := range lines {
		end := at + len(strings.TrimRight(line, "\r\n"))
		text := strings.TrimSpace(line)
		attribute := rustAttribute.MatchString(line)
		first := n == 0 || !rustAttribute.MatchString(lines[n-1]) && !strings.HasPrefix(strings.TrimSpace(lines[n-1]), "//")
		switch {
		case open != "" && strings.TrimRight(line, " \t\r\n") == open:
			items, open, isTest = append(items, span{start, end}), "", false
		case open != "":
		case attribute || strings.HasPrefix(text, "//") || testAttribute.MatchString(line):
			if first && !isTest {
				start = at
			}
			isTest = isTest || testAttribute.MatchString(line)
			if attribute || strings.HasPrefix(text, "//") {
				break
			}
			fallthrough
		case isTest && (strings.HasSuffix(text, ";") || strings.HasSuffix(text, "}")):
			items, isTest = append(items, span{start, end}), false
		case isTest:
			open = line[:len(line)-len(strings.TrimLeft(line, " \t"))] + "}"
		}
		at += len(line)
	}
	if isTest {
		items = append(items, span{start, len(src)})
	}
	return items
}
