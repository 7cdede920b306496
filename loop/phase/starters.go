package phase

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"hone/loop"
)

//go:embed starters
var starters embed.FS

func starterFiles() loop.Starters {
	var named string
	return loop.Starters{
		Short: "specification, project description, abl.config.sh, prompts and a Makefile",
		Long: `init phase writes what phase works with: a specification of phase 1, a description of the project, the
hooks in abl.config.sh, what builder and verifier are told of themselves, and a Makefile. All of it
can be run as it is. A file that is there already is kept. Where the root holds code, a .config/hone.toml
offers to protect its tests, as "hone help init" says.`,
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&named, "template", "", "the kind of web service: go, node or python (default: what src/ holds, else go)")
		},
		Files: func(root string, note func(string)) ([]loop.File, error) {
			name, err := chooseTemplate(root, named, note)
			if err != nil {
				return nil, err
			}
			common, err := loop.Files(starters, "starters/phase")
			if err != nil {
				return nil, err
			}
			own, err := loop.Files(starters, "starters/phase-"+name)
			prompts := []loop.File{{Path: "prompts/builder.md", Content: []byte(BuilderRole)}, {Path: "prompts/verifier.md", Content: []byte(VerifierRole)}}
			return slices.Concat(prompts, common, own), err
		},
		Next: func(root string) string {
			run := "make phase PHASE=1"
			if !drivesPhases(root) {
				run = "hone phase 1"
			}
			return "say in project.md and specs/phase1.md what you want, look at abl.config.sh, then: hone phase 1 --list && " + run
		},
	}
}

// template is a kind of project that init phase has hooks for.
type template struct {
	name  string
	marks []string // files by which a project of the kind is known
}

// templates are those that there are; the first is the one for a folder
// that tells nothing.
func templates() []template {
	return []template{
		{"go", []string{"go.mod"}},
		{"node", []string{"package.json"}},
		{"python", []string{"pyproject.toml", "requirements.txt", "setup.py", "main.py"}},
	}
}

// chooseTemplate is the template that was named, or that the code is of.
func chooseTemplate(root, named string, note func(string)) (string, error) {
	var names []string
	for _, t := range templates() {
		names = append(names, t.name)
	}
	switch {
	case slices.Contains(names, named):
		return named, nil
	case named != "":
		return "", loop.Usage(fmt.Sprintf("--template %s is not %s", named, strings.Join(names, ", ")), "hone help init phase")
	}
	for _, dir := range []string{Src, "."} {
		for _, t := range templates() {
			if mark := marked(filepath.Join(root, dir), t); mark != "" {
				note(chosen(t.name, path.Join(dir, mark), dir))
				return t.name, nil
			}
		}
	}
	note(fmt.Sprintf("the template is %s, as there is no code yet; --template takes %s", names[0], strings.Join(names, ", ")))
	return names[0], nil
}

// chosen says why a template was taken.
func chosen(template, file, dir string) string {
	text := fmt.Sprintf("the template is %s, because of %s", template, file)
	if dir != Src {
		text += "; phase works on the code in src/ alone, so move it there"
	}
	return text
}

// marked is the file by which a folder is of a template's kind; empty where it
// is not.
func marked(dir string, t template) string {
	for _, name := range t.marks {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// drivesPhases reports whether the Makefile will have a target phase: the
// starter's, or the user's own.
func drivesPhases(root string) bool {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return bytes.Contains(append([]byte("\n"), text...), []byte("\nphase:"))
}
