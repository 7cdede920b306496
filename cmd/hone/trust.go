package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/harness/runs"
	"hone/harness/trust"
	"hone/internal/config"
	"hone/internal/git"
	"hone/internal/render"
	"hone/loop"
)

// trustFlags are the flags of trust.
type trustFlags struct {
	dir               string // of the runs
	list, revoke, yes bool
}

func (a *app) trustCommand() *cobra.Command {
	var f trustFlags
	c := &cobra.Command{
		Use:   "trust [DIR | RUN]",
		Short: "show what a directory or a run would run and open, and trust it",
		Long: `trust shows which programs of a directory would run and what its settings allow, and asks whether you trust
them. Loops ask the same questions when they start, so that you rarely need this command.

There are two questions. The first is about the directory's own programs: build.sh, a correctness checker, the
hooks in abl.config.sh, and a check that .config/hone.toml names. hone asks it once, and yes also covers
these programs when they change. The second is about settings that send files, give access or cost money:
addresses, models, prices, walls, and the paths and variables of commands. hone asks again if such a setting
is added or changed. Other settings, such as limits, need no trust, nor do the commands that you type.

Without a terminal hone does not ask: a directory that is not trusted is an error. HONE_TRUST=1 or --trust
accepts its programs, including a correctness checker, which runs without walls. HONE_TRUST=DIGEST accepts its
programs, and exactly the settings whose digest trust prints: a changed setting is an error again. For several
directories, separate the digests by commas.

hone show shows a run that another user or machine recorded, but hone does not resume or undo it. trust RUN
shows what resuming it would run and open, and asks whether you accept it.`,
		Example: `  hone trust
  hone trust --list
  hone trust --revoke ~/src/project
  hone trust last`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if f.list {
				return a.listTrust()
			}
			if len(args) == 0 {
				args = []string{f.dir}
			}
			if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
				return a.trustNamed(c.Context(), args[0], f)
			}
			switch {
			case f.yes:
				return failure.Usage("--trust accepts a run, and "+args[0]+" is a directory", "hone trust "+args[0])
			case f.revoke:
				return a.revokeTrust(args[0])
			}
			return a.trustFolder(c.Context(), args[0])
		},
	}
	registerDir(c, &f.dir)
	c.Flags().BoolVar(&f.list, "list", false, "list the directories that you trust")
	c.Flags().BoolVar(&f.revoke, "revoke", false, "no longer trust the directory, or the run")
	c.Flags().BoolVar(&f.yes, "trust", false, "accept the run without asking")
	c.MarkFlagsMutuallyExclusive("list", "revoke")
	return c
}

// trustNamed is trust for a name that is not a directory: a run, or a folder that no
// longer exists and whose record is to be removed.
func (a *app) trustNamed(ctx context.Context, name string, f trustFlags) error {
	if !f.revoke {
		return a.trustRun(ctx, f.dir, name, f.yes)
	}
	if folder, err := filepath.Abs(name); err == nil {
		if ok, err := trust.Revoke(folder); ok || err != nil {
			return err
		}
	}
	if err := runs.Revoke(f.dir, name); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "run %s is no longer accepted\n", name)
	return err
}

// trustFolder shows what a folder needs trust for. On a terminal it asks for what is
// not trusted yet.
func (a *app) trustFolder(ctx context.Context, dir string) error {
	root, err := loop.AbsDir(dir)
	if err != nil {
		return err
	}
	if _, err := git.Root(root); errors.As(err, new(*git.ForeignError)) {
		return err // loops refuse it, whatever is trusted
	}
	n, err := a.allNeeds(root)
	if err != nil {
		return err
	}
	if len(n.Programs) == 0 && len(n.Settings) == 0 {
		_, err := fmt.Fprintf(a.out, "%s needs no trust: hone would run no program of its own, and no setting opens anything\n", root)
		return err
	}
	if !a.present() {
		a.printNeeds(n)
	}
	if err := a.host().Trusted(ctx, n); err != nil {
		return a.notTrusted(err, n)
	}
	_, err = fmt.Fprintf(a.out, "%s is trusted\n", root)
	return err
}

// notTrusted returns the error of hone trust, whose advice must not be hone trust.
func (a *app) notTrusted(err error, n harness.Needs) error {
	hint := "to trust it, answer yes"
	if !a.present() {
		hint = "type hone trust on a terminal, or accept all of these programs with HONE_TRUST=1"
		if digest := n.Digest(); digest != "" {
			hint = "type hone trust on a terminal, or accept the programs and these settings with HONE_TRUST=" + digest
		}
	}
	return failure.Usage(err.Error(), hint)
}

// needs returns what a folder needs trust for, if these loops run in it. The settings
// are those of all loops, so that their digest does not depend on the loop.
func (a *app) needs(root string, file config.File, run ...loop.Kind) (n harness.Needs, err error) {
	n.Folder = root
	if n.Programs, err = harness.OwnPrograms(root, file, run...); err != nil {
		return n, err
	}
	n.Settings, err = harness.OwnSettings(root, file, kinds.All()...)
	return n, err
}

// startNeeds is needs for a start of loops, or of the check alone. A check that the user
// typed takes the place of the file's, which is not run then.
func (a *app) startNeeds(root string, file config.File, typed string, run ...loop.Kind) (harness.Needs, error) {
	if typed != "" {
		file.Check.Command = ""
	}
	return a.needs(root, file, run...)
}

// allNeeds returns what a folder needs trust for, if all loops run in it.
func (a *app) allNeeds(root string) (harness.Needs, error) {
	file, err := a.loadConfig(root, "", nil)
	if err != nil {
		return harness.Needs{}, err
	}
	return a.needs(root, file, kinds.All()...)
}

// printNeeds prints what a folder needs trust for.
func (a *app) printNeeds(n harness.Needs) {
	for _, p := range n.Programs {
		fmt.Fprintf(a.out, "program  %s\n", render.Line(p))
	}
	for _, s := range n.Settings {
		fmt.Fprintf(a.out, "setting  %s\n", settingText(s))
	}
	if digest := n.Digest(); digest != "" {
		fmt.Fprintf(a.out, "digest   %s\n", digest)
	}
}

// settingText returns a setting with its place, and what it opens.
func settingText(s config.Setting) string {
	text := fmt.Sprintf("%s:%d: %s = %s", s.File, s.Line, s.Key, s.Value)
	if s.Opens != "" {
		text += ": " + s.Opens
	}
	return render.Line(text)
}

// askTrust asks a question of trust.
func (a *app) askTrust(ctx context.Context, q harness.TrustQuestion) bool {
	var b strings.Builder
	what := "this directory's programs"
	fmt.Fprintf(&b, "\n%s\n", render.Line(q.Folder))
	switch {
	case len(q.Programs) > 0:
		fmt.Fprintln(&b, "hone would run these programs of the directory:")
		for _, p := range q.Programs {
			fmt.Fprintf(&b, "  %s\n", render.Line(p))
		}
		fmt.Fprintln(&b, "Yes also covers these programs when they change, until hone trust --revoke.")
	default:
		what = "these settings"
		fmt.Fprintln(&b, map[bool]string{true: "These settings are new or have changed since you trusted the directory's settings:", false: "The configuration of the directory allows more than hone does by default:"}[q.Changed])
		for _, s := range q.Settings {
			fmt.Fprintf(&b, "  %s\n", render.Line(fmt.Sprintf("%s = %s (%s:%d)", s.Key, s.Value, s.File, s.Line)))
			if s.Opens != "" {
				fmt.Fprintf(&b, "      %s\n", s.Opens)
			}
		}
		fmt.Fprintln(&b, "hone asks again when one of them changes.")
	}
	fmt.Fprint(a.err, b.String())
	return a.confirm(ctx, "Do you trust "+what+"?")
}

// confirm asks a question on the terminal. Only yes is a yes.
func (a *app) confirm(ctx context.Context, question string) bool {
	fmt.Fprint(a.err, question+" [y/N] ")
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.err)
	case line := <-a.answerLine():
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true
		}
	}
	return false
}

// listTrust prints the trusted folders.
func (a *app) listTrust() error {
	all, err := trust.List()
	if len(all) == 0 && err == nil {
		a.sayPlain("no directories are trusted")
	}
	for _, r := range all {
		var what []string
		if r.Programs {
			what = append(what, "programs")
		}
		if n := len(r.Settings); n > 0 {
			what = append(what, render.Count(n, "setting"))
		}
		fmt.Fprintf(a.out, "%s  %s\n", r.Folder, strings.Join(what, ", "))
	}
	if err != nil {
		return failure.Of(err, "")
	}
	return nil
}

// revokeTrust removes the record of a folder.
func (a *app) revokeTrust(dir string) error {
	folder, err := loop.AbsDir(dir)
	if err != nil {
		return err
	}
	ok, err := trust.Revoke(folder)
	switch {
	case err != nil:
		return failure.Of(err, "")
	case !ok:
		return failure.Usage(folder+" is not trusted", "hone trust --list")
	}
	_, err = fmt.Fprintf(a.out, "%s is no longer trusted\n", folder)
	return err
}

// trustStarters records trust in a folder that had no files that need trust before
// hone wrote some.
func (a *app) trustStarters(root string) error {
	n, err := a.allNeeds(root)
	if err != nil {
		return err
	}
	if err := harness.TrustOwn(n); err != nil {
		a.say("note", err.Error()+"; hone will ask whether you trust the directory")
	}
	return nil
}

// hasTrustFiles reports whether a folder has files that could need trust.
func (a *app) hasTrustFiles(root string) bool {
	for _, name := range []string{config.HonePath, config.BorkPath} {
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name))); err == nil {
			return true
		}
	}
	n, err := a.needs(root, config.File{}, kinds.All()...)
	return err != nil || len(n.Programs) > 0 || len(n.Settings) > 0
}
