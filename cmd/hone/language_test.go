package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The check of a project is the one that its own files have.
func TestSuggestion(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"go vet ./... && go test ./...": {"go.mod": "module x"},
		"mvn test":                      {"pom.xml": ""},
		"./mvnw test":                   {"pom.xml": "", "mvnw": ""},
		"gradle test":                   {"build.gradle": ""},
		"./gradlew test":                {"build.gradle.kts": "", "gradlew": ""},
		"bundle exec rake":              {"Gemfile": ""},
		"bundle exec rspec":             {"Gemfile": "", ".rspec": ""},
		"composer test":                 {"composer.json": `{"scripts":{"test":["phpunit"]}}`},
		"npm test":                      {"package.json": `{"scripts":{"test":"mocha"}}`},
		"npm run lint":                  {"package.json": `{"scripts":{"lint":"eslint ."}}`},
		"":                              {"package.json": `{}`},
		"make check":                    {"Makefile": "all:\n\ncheck: all\n"},
	} {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, got := suggestedCheck(dir); got != want {
			t.Errorf("%v suggests %q, want %q", files, got, want)
		}
	}
}
