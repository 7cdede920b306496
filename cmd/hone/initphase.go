package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hone/loop/phase"
)

// phaseTemplate is a kind of project that init phase has hooks for.
type phaseTemplate struct {
	name  string
	marks []string // files by which a project of the kind is known
}

// phaseTemplates are those that there are; the first is the one for a folder
// that tells nothing.
func phaseTemplates() []phaseTemplate {
	return []phaseTemplate{
		{"go", []string{"go.mod"}},
		{"node", []string{"package.json"}},
		{"python", []string{"pyproject.toml", "requirements.txt", "setup.py", "main.py"}},
	}
}

func (a *app) initPhaseCommand() *cobra.Command {
	var dir, template string
	c := &cobra.Command{
		Use:   "phase",
		Short: "specification, project description, abl.config.sh, prompts and a Makefile",
		Long: `init phase writes what phase works with: a specification of phase 1, a description of the project, the
hooks in abl.config.sh, what builder and verifier are told of themselves, and a Makefile. All of it
can be run as it is. A file that is there already is kept. Where the root holds code, a .config/hone.toml
offers to protect its tests, as "hone help init" says.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			root, err := folder(dir)
			if err != nil {
				return err
			}
			return a.initPhase(root, template)
		},
	}
	registerDir(c, &dir)
	c.Flags().StringVar(&template, "template", "", "the kind of web service: go, node or python (default: what src/ holds, else go)")
	return c
}

func (a *app) initPhase(root, template string) error {
	template, err := a.chooseTemplate(root, template)
	if err != nil {
		return err
	}
	run := "make phase PHASE=1"
	if !drivesPhases(root) {
		run = "hone phase 1"
	}
	for _, role := range []struct{ name, text string }{{"builder", phase.BuilderRole}, {"verifier", phase.VerifierRole}} {
		if err := a.place(root, "prompts/"+role.name+".md", []byte(role.text)); err != nil {
			return err
		}
	}
	for _, starter := range []string{"phase", "phase-" + template} {
		if err := a.placeAll(root, starter); err != nil {
			return err
		}
	}
	// The Makefile is init's own and tells nothing of the project.
	if err := a.offerProtect(root, spoken(root, languages())); err != nil {
		return err
	}
	return a.next("say in project.md and specs/phase1.md what you want, look at abl.config.sh, then: hone phase 1 --list && " + run)
}

// chooseTemplate is the template that was named, or that the code is of.
func (a *app) chooseTemplate(root, named string) (string, error) {
	var names []string
	for _, t := range phaseTemplates() {
		names = append(names, t.name)
	}
	switch {
	case slices.Contains(names, named):
		return named, nil
	case named != "":
		return "", usage(fmt.Sprintf("--template %s is not %s", named, strings.Join(names, ", ")), "hone help init phase")
	}
	for _, dir := range []string{phase.Src, "."} {
		for _, t := range phaseTemplates() {
			if mark := marked(filepath.Join(root, dir), t); mark != "" {
				a.say("note", chosen(t.name, path.Join(dir, mark), dir))
				return t.name, nil
			}
		}
	}
	a.say("note", fmt.Sprintf("the template is %s, as there is no code yet; --template takes %s", names[0], strings.Join(names, ", ")))
	return names[0], nil
}

// chosen says why a template was taken.
func chosen(template, file, dir string) string {
	text := fmt.Sprintf("the template is %s, because of %s", template, file)
	if dir != phase.Src {
		text += "; phase works on the code in src/ alone, so move it there"
	}
	return text
}

// marked is the file by which a folder is of a template's kind; empty where it
// is not.
func marked(dir string, t phaseTemplate) string {
	for _, name := range t.marks {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// drivesPhases reports whether the Makefile will have a target phase: the
// starter's, or the person's own.
func drivesPhases(root string) bool {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return bytes.Contains(append([]byte("\n"), text...), []byte("\nphase:"))
}
