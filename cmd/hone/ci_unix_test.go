//go:build unix

package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
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
		read := matches(`\$\{?((?:INPUT|RUN|EVENT)_[A-Z_]+)`, script)
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

// TestFollow runs the scripts by which the action follows a pull request, with recorded events. Its command
//
//	event FILE    sets what action.yml takes from the event in FILE
func TestFollow(t *testing.T) {
	runScripts(t, "testdata/follow/*.txtar", map[string]func(*testscript.TestScript, bool, []string){
		"event": func(ts *testscript.TestScript, _ bool, args []string) {
			var event any
			ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &event))
			a, _ := readAction(t)
			for _, step := range a.Runs.Steps {
				for name, value := range step.Env {
					if path := matches(`^\$\{\{ github\.event\.(\S+) \}\}$`, value); len(path) > 0 {
						ts.Setenv(name, eventField(event, path[0]))
					}
				}
			}
		},
	})
}

// eventField returns a field as an expression of a workflow does, such as a.b[0].c: what is missing
// is empty.
func eventField(v any, path string) string {
	for _, key := range matchesInOrder(`([a-z_]+|\d+)`, path) {
		switch w := v.(type) {
		case map[string]any:
			v = w[key]
		case []any:
			if i, err := strconv.Atoi(key); err == nil && i < len(w) {
				v = w[i]
			} else {
				v = nil
			}
		}
	}
	switch w := v.(type) {
	case string:
		return w
	case float64:
		return strconv.FormatFloat(w, 'f', -1, 64)
	}
	return ""
}

// matches returns what a pattern's group matches in a text, sorted, each once.
func matches(pattern, text string) []string {
	found := matchesInOrder(pattern, text)
	slices.Sort(found)
	return slices.Compact(found)
}

func matchesInOrder(pattern, text string) []string {
	found := []string{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}
