//go:build unix

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

func load(t *testing.T, text string, v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
}

// action is what the tests read of action.yml.
type action struct {
	Inputs, Outputs map[string]any
	Runs            struct {
		Steps []struct {
			ID, Run string
			Env     map[string]string
		}
	}
}

func readAction(t *testing.T) (a action, text string) {
	t.Helper()
	b, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	load(t, string(b), &a)
	return a, string(b)
}

// workflowFits checks that a workflow gives hone's action only inputs that it has.
func workflowFits(t *testing.T, text string) {
	t.Helper()
	var flow struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	load(t, text, &flow)
	a, _ := readAction(t)
	steps := flow.Jobs["fix"].Steps
	step := steps[len(steps)-1]
	if !strings.Contains(step.Uses, "/hone@") {
		t.Fatalf("the last step is not hone: %v", step)
	}
	for input := range step.With {
		if a.Inputs[input] == nil {
			t.Errorf("action.yml has no input %s", input)
		}
	}
}

// TestAction checks that action.yml gives each script the variables that it reads, and uses
// all inputs. The script action.txtar runs the scripts.
func TestAction(t *testing.T) {
	a, text := readAction(t)
	for _, step := range a.Runs.Steps {
		script := step.Run
		if file := regexp.MustCompile(`action/\w+\.sh`).FindString(step.Run); file != "" {
			b, err := os.ReadFile("../../" + file)
			if err != nil {
				t.Fatal(err)
			}
			script = string(b)
		}
		read := matches(`\$\{?((?:INPUT|RUN)_[A-Z_]+)`, script)
		given := []string{}
		for name := range step.Env {
			if name != "GH_TOKEN" {
				given = append(given, name)
			}
		}
		slices.Sort(given)
		if diff := cmp.Diff(read, given); diff != "" {
			t.Errorf("%s: - read, + given\n%s", step.ID, diff)
		}
	}
	declared := []string{}
	for name := range a.Inputs {
		declared = append(declared, name)
	}
	slices.Sort(declared)
	if diff := cmp.Diff(declared, matches(`inputs\.([a-z-]+)`, text)); diff != "" {
		t.Errorf("- declared, + used\n%s", diff)
	}
}

// matches returns what a pattern's group matches in a text, sorted, each once.
func matches(pattern, text string) []string {
	found := []string{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}
