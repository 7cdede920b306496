package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hone/loop/implement"
)

// starters holds the files that init writes, a folder a loop. A name with
// "dot-" in front stands for a dot file: embedding leaves those out.
//
//go:embed starters
var starters embed.FS

func (a *app) initCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "init LOOP",
		Short: "write starter files; never overwrites",
		Long: `init writes what a loop starts from. A file that is there already is kept.

Where the folder tells its language, init also writes a .config/hone.toml whose only setting is a
comment: which files say whether the code is right, so that a model would need your approval to change
them. Nothing is protected until you take the comment sign away. Where that file is there already, the
lines that could be added are printed.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("init needs to know for which loop", "hone init reconcile")
		},
	}
	c.AddCommand(a.initReconcileCommand(), a.initImplementCommand(), a.initTaskCommand(), a.initPhaseCommand())
	return c
}

func (a *app) initReconcileCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "reconcile",
		Short: "a specification, a correctness checker and .config/bork.json",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			root, err := reconcileRoot(dir)
			if err != nil {
				return err
			}
			if err := a.start(root, "reconcile"); err != nil {
				return err
			}
			return a.next("say in specs/ what you want, make correctness-check.sh run your own checks, then: hone prompt reconcile && hone reconcile")
		},
	}
	registerDir(c, &dir)
	return c
}

func (a *app) initImplementCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "implement",
		Short: "build.sh for what the folder holds, query.txt and the system prompt",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			root, err := folder(dir)
			if err != nil {
				return err
			}
			return a.initImplement(root)
		},
	}
	registerDir(c, &dir)
	return c
}

func (a *app) initImplement(root string) error {
	kind := buildKind(root)
	script, err := starters.ReadFile("starters/build/" + kind + ".sh")
	if err != nil {
		return err
	}
	if err := a.place(root, implement.BuildName, script); err != nil {
		return err
	}
	if err := a.place(root, implement.SystemName, []byte(implement.System)); err != nil {
		return err
	}
	if err := a.start(root, "implement"); err != nil {
		return err
	}
	if kind == "none" {
		return a.next("make build.sh build and test the project, say in query.txt what you want, then: hone prompt implement && hone implement")
	}
	return a.next("say in query.txt what you want, look at build.sh, then: hone prompt implement && hone implement")
}

// buildKind is how a folder is built, by what lies in it.
func buildKind(root string) string {
	for _, k := range []struct{ file, kind string }{
		{"go.mod", "go"}, {"Cargo.toml", "rust"}, {"package.json", "node"},
		{"pyproject.toml", "python"}, {"setup.py", "python"}, {"requirements.txt", "python"},
		{"Makefile", "make"}, {"makefile", "make"}, {"GNUmakefile", "make"},
	} {
		if info, err := os.Stat(filepath.Join(root, k.file)); err == nil && info.Mode().IsRegular() {
			return k.kind
		}
	}
	return "none"
}

// next says what to do now.
func (a *app) next(what string) error {
	_, err := fmt.Fprintf(a.out, "next: %s\n", what)
	return err
}

// start writes a loop's starter files below root, and offers to protect the
// project's tests.
func (a *app) start(root, loop string) error {
	if err := a.placeAll(root, loop); err != nil {
		return err
	}
	found := spoken(root, languages())
	if len(found) == 0 {
		found = spoken(root, []language{anyLanguage()})
	}
	return a.offerProtect(root, found)
}

// placeAll writes a folder of starter files below root, and says of each
// whether it was written or was there.
func (a *app) placeAll(root, folder string) error {
	return unpack(starters, "starters/"+folder, func(rel string, content []byte) error {
		return a.place(root, rel, content)
	})
}

// unpack visits the embedded files below a folder, by the paths that they are
// to have.
func unpack(from embed.FS, folder string, visit func(rel string, content []byte) error) error {
	return fs.WalkDir(from, folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := from.ReadFile(name)
		if err != nil {
			return err
		}
		return visit(strings.ReplaceAll(strings.TrimPrefix(name, folder+"/"), "dot-", "."), content)
	})
}

// put writes a file that must not be there yet. What begins with #! can be
// run.
func put(root, rel string, content []byte) error {
	at := filepath.Join(root, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(string(content), "#!") {
		mode = 0o755
	}
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// place writes one starter file, unless something is there.
func (a *app) place(root, rel string, content []byte) error {
	said := "written " + rel
	err := put(root, rel, content)
	switch {
	case errors.Is(err, fs.ErrExist):
		said = "kept    " + rel + ", which is there already"
	case err != nil:
		return failed(fmt.Errorf("write %s: %w", rel, err), "hone doctor")
	}
	_, err = fmt.Fprintln(a.out, said)
	return err
}
