//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// recipe is a fenced block of docs/ci.md with the title of its section.
type recipe struct{ title, language, text string }

func recipes(t *testing.T) (all []recipe) {
	t.Helper()
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^(?:#+ ([^\n]+)|( *)```(\\w+)\n(.*?)\n *```)$")
	title := ""
	for _, m := range block.FindAllStringSubmatch(string(page), -1) {
		if m[1] != "" {
			title = m[1]
			continue
		}
		all = append(all, recipe{title, m[3], strings.ReplaceAll("\n"+m[4], "\n"+m[2], "\n")[1:]})
	}
	return all
}

// TestRecipes runs every command of docs/ci.md in a project whose check fails first.
func TestRecipes(t *testing.T) {
	skipShort(t)
	tests := map[string]func(*testing.T, *ciProject, string){
		"hone in CI, on a schedule, and in hooks sh": func(t *testing.T, p *ciProject, text string) {
			if out := p.sh(t, 0, text); !strings.Contains(out, "the tests pass") {
				t.Error(out)
			}
		},
		"GitHub Actions yaml": func(t *testing.T, _ *ciProject, text string) { workflowFits(t, text) },
		"GitHub Actions sh": func(t *testing.T, p *ciProject, text string) {
			p.sh(t, 0, "hone fix --check 'make test' && tar -czf ../home.tar.gz -C .hone . && rm -rf .hone && mv ../home.tar.gz .")
			if out := p.sh(t, 0, text); !strings.Contains(out, "\n+good\n") {
				t.Error(out)
			}
		},
		"GitLab CI yaml": func(t *testing.T, p *ciProject, text string) {
			var jobs map[string]struct {
				Script []string
				After  []string `yaml:"after_script"`
			}
			load(t, text, &jobs)
			p.sh(t, 0, strings.Join(append(jobs["hone"].Script, jobs["hone"].After...), "\n")+"\ngrep '^+good$' hone.patch; tail -n 1 hone.jsonl | grep '\"exit\":0'")
		},
		"cron sh": func(t *testing.T, p *ciProject, text string) {
			p.sh(t, 0, "mkdir -p ~/.config ~/nightly && echo export GEMINI_API_KEY=x >~/.config/hone-key && git clone -q ../origin.git ~/nightly/project")
			p.sh(t, 0, text)
			p.sh(t, 0, "git -C ../origin.git show hone:a.txt | grep good")
		},
		"A git hook sh": func(t *testing.T, p *ciProject, text string) {
			p.write(t, ".git/hooks/pre-push", text)
			p.sh(t, 1, "git push -q origin main")
			p.sh(t, 0, "git commit -q -a -m fixed && git push -q origin main && git -C ../origin.git show main:a.txt | grep good")
		},
		"pre-commit yaml": func(t *testing.T, p *ciProject, text string) {
			var file struct {
				Repos []struct {
					Hooks []struct{ Entry string }
				}
			}
			load(t, text, &file)
			p.sh(t, 0, file.Repos[0].Hooks[0].Entry+"\ngrep good a.txt")
		},
	}
	for _, r := range recipes(t) {
		name := r.title + " " + r.language
		t.Run(name, func(t *testing.T) {
			test, ok := tests[name]
			if !ok {
				t.Fatal("no test runs this block")
			}
			delete(tests, name)
			t.Parallel()
			test(t, newCIProject(t), r.text)
		})
	}
	for name := range tests {
		t.Errorf("docs/ci.md has no block %q", name)
	}
}

func load(t *testing.T, text string, v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
}

// ciProject is a clone of a repository whose check, make test, fails until a.txt is
// good. The default model is a script that makes it so.
type ciProject struct {
	dir string
	env []string
}

func newCIProject(t *testing.T) *ciProject {
	t.Helper()
	top := t.TempDir()
	p := &ciProject{dir: filepath.Join(top, "project")}
	p.env = append(os.Environ(), "HOME="+filepath.Join(top, "home"), "XDG_STATE_HOME="+filepath.Join(top, "state"),
		"HONE_MODEL=script/"+filepath.Join(top, "replies"), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t")
	p.write(t, "../home/.keep", "")
	p.write(t, "Makefile", "test:\n\t@grep good a.txt\n")
	p.write(t, "a.txt", "bad\n")
	p.write(t, "../replies", `=== reply ===
=== call read ===
{"path": "a.txt"}
=== call write ===
{"path": "a.txt", "content": "good\n"}
=== reply ===
It says good now.
`)
	p.sh(t, 0, "git init -q -b main && git add -A && git commit -q -m first && git init -q --bare -b main ../origin.git &&"+
		" git remote add origin ../origin.git && git push -q origin main")
	return p
}

func (p *ciProject) write(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(p.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// sh runs a script, which must exit with a status, and returns its output.
func (p *ciProject) sh(t *testing.T, status int, script string) string {
	t.Helper()
	c := exec.Command("sh", "-e", "-c", script)
	c.Dir, c.Env = p.dir, p.env
	out, _ := c.CombinedOutput()
	if got := c.ProcessState.ExitCode(); got != status {
		t.Fatalf("exit status %d of\n%s\n%s", got, script, out)
	}
	return string(out)
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
