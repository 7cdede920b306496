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

	"github.com/spf13/pflag"

	"hone/internal/artifact"
	"hone/internal/config"
	"hone/internal/lazyregexp"
	"hone/loop"
	"hone/loop/phase/spec"
)

//go:embed starters
var starters embed.FS

func starterFiles() loop.Starters {
	var named string
	return loop.Starters{
		Short: "specification, project description, abl.config.sh, prompts and a Makefile",
		Long: `init phase writes the files of a project: a specification of phase 1, a description of the project, the
hooks in abl.config.sh, the prompts of builder and verifier, and a Makefile. The specification is an
example, which hone phase refuses until you edit it. init phase keeps files that already exist. If the
root contains code, a .config/hone.toml offers to protect its tests, as "hone help init" describes.`,
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&named, "template", "", "the kind of web service: go, node or python (default: the language of src/, else go)")
			config.SetRule(fs, "go|node|python", "template")
		},
		Files: func(root, _ string, note func(string)) ([]loop.File, error) {
			name := chooseTemplate(root, named, note)
			if runs, phase := runsHone(root); phase && !runs {
				note("make phase in your Makefile does not run hone; run hone phase 1")
			}
			common, err := loop.Files(starters, "starters/phase")
			if err != nil {
				return nil, err
			}
			own, err := loop.Files(starters, "starters/phase-"+name)
			prompts := []loop.File{{Path: "prompts/builder.md", Content: []byte(BuilderRole)}, {Path: "prompts/verifier.md", Content: []byte(VerifierRole)}}
			later := laterLayout(root)
			files := slices.Concat(prompts, common, own)
			return slices.DeleteFunc(files, func(f loop.File) bool { return slices.Contains(later, f.Path) }), err
		},
		Next: func(root, _ string) string {
			run := "make phase PHASE=1"
			if runs, _ := runsHone(root); !runs {
				run = "hone phase 1"
			}
			if len(laterLayout(root)) > 0 {
				return "put the commands of .abl/abl.config.yaml into abl.config.sh, with their logs in tests/results/, then: hone phase 1 --list && " + run
			}
			return "write what you want into project.md and specs/phase1.md, check abl.config.sh, then: hone phase 1 --list && " + run
		},
	}
}

// laterLayout returns the starter files that a project of ABL's later layout has below .abl/. Written, they would be read in
// place of those.
func laterLayout(root string) (has []string) {
	if spec.Dir(root) != "specs" {
		has = append(has, "specs/phase1.md")
	}
	if _, err := os.Stat(filepath.Join(root, ".abl", projectName)); err == nil {
		has = append(has, projectName)
	}
	return has
}

// The language of the code in src/, else of that at the root, chooses the hooks.
func chooseTemplate(root, named string, note func(string)) string {
	if named != "" {
		return named
	}
	for _, dir := range []string{Src, "."} {
		for _, mark := range []struct{ file, template string }{{"go.mod", "go"}, {"package.json", "node"},
			{"pyproject.toml", "python"}, {"requirements.txt", "python"}, {"setup.py", "python"}, {"main.py", "python"}} {
			if info, err := os.Stat(filepath.Join(root, dir, mark.file)); err != nil || !info.Mode().IsRegular() {
				continue
			}
			text := fmt.Sprintf("the template is %s because there is a %s", mark.template, path.Join(dir, mark.file))
			if dir != Src {
				text += "; phase works only on the code in src/, so move it there"
			}
			note(text)
			return mark.template
		}
	}
	note("the template is go because there is no code yet; --template accepts go, node, python")
	return "go"
}

// Both are true if there is no Makefile, because hone's own will be written.
func runsHone(root string) (runs, phase bool) {
	text, err := artifact.Input(filepath.Join(root, "Makefile"))
	if errors.Is(err, fs.ErrNotExist) {
		return true, true
	}
	phase = bytes.Contains(append([]byte("\n"), text...), []byte("\nphase:"))
	return phase && honeWord.Match(text), phase
}

var honeWord = lazyregexp.New(`\bhone\b`)
