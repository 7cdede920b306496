package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hone/loop"
)

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
	for _, k := range kinds() {
		if k.Starters != nil {
			c.AddCommand(a.initLoopCommand(k, k.Starters()))
		}
	}
	return c
}

func (a *app) initLoopCommand(k loop.Kind, starters loop.Starters) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: k.Name, Short: starters.Short, Long: starters.Long, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			root := loop.Folder
			if k.Root != nil {
				root = k.Root
			}
			at, err := root(dir)
			if err != nil {
				return err
			}
			return a.init(at, starters)
		},
	}
	registerDir(c, &dir)
	if starters.Flags != nil {
		starters.Flags(c.Flags())
	}
	return c
}

// init writes a loop's starter files below root, and says of each whether it
// was written or was there. It offers to protect the project's tests.
func (a *app) init(root string, starters loop.Starters) error {
	var files []loop.File
	if starters.Files != nil {
		var err error
		if files, err = starters.Files(root, func(text string) { a.say("note", text) }); err != nil {
			return err
		}
	}
	found := spoken(root, languages())
	if !slices.ContainsFunc(files, func(f loop.File) bool { return anyLanguage().marked(f.Path) }) && len(found) == 0 {
		found = spoken(root, []language{anyLanguage()}) // a Makefile that is not init's own
	}
	next := starters.Next(root)
	for _, f := range files {
		if err := a.place(root, f.Path, f.Content); err != nil {
			return err
		}
	}
	if err := a.offerProtect(root, found); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "next: %s\n", next)
	return err
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
