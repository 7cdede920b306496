package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/artifact"
)

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
