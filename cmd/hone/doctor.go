package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/screen"
	"hone/internal/config"
	"hone/internal/git"
	"hone/journal"
	"hone/model"
)

func (a *app) doctorCommand() *cobra.Command {
	var dir, name, baseURL string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "look at what hone needs: git, keys (never shown), the provider, the disk",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.doctor(c.Context(), dir, name, baseURL)
		},
	}
	registerDir(c, &dir)
	c.Flags().StringVarP(&name, "model", "m", "", "also ask this model's provider, as PROVIDER/NAME")
	c.Flags().StringVar(&baseURL, "base-url", "", "the provider's endpoint")
	return c
}

// diagnosis is what one look found. A look that fails says what to do.
type diagnosis struct {
	what, found, hint string
	bad               bool
}

func (a *app) doctor(ctx context.Context, dir, name, baseURL string) error {
	looks := []diagnosis{{what: "hone", found: version()}, a.lookAtGit(ctx), a.lookAtRepository(dir), a.lookAtConfig(dir), a.lookAtDisk(dir)}
	looks = append(looks, a.lookAtKeys()...)
	looks = append(looks, a.lookAtProvider(ctx, dir, name, baseURL))
	bad := 0
	for _, d := range looks {
		mark := "ok "
		if d.bad {
			mark = "BAD"
			bad++
		}
		fmt.Fprintf(a.out, "%s  %-12s %s\n", mark, d.what, d.found)
		if d.hint != "" {
			fmt.Fprintf(a.out, "     %-12s %s\n", "", d.hint)
		}
	}
	if bad > 0 {
		return &hone.Stop{Exit: hone.ExitEnvironment, Why: fmt.Sprintf("%s in the way", screen.Count(bad, "thing")), Hint: "see the lines marked BAD"}
	}
	return nil
}

func (a *app) lookAtGit(ctx context.Context) diagnosis {
	g, err := git.Find()
	if err != nil {
		return diagnosis{"git", err.Error(), "install git", true}
	}
	v, err := g.Version(ctx)
	if err != nil {
		return diagnosis{"git", err.Error(), "", true}
	}
	return diagnosis{what: "git", found: v}
}

func (a *app) lookAtRepository(dir string) diagnosis {
	top, err := git.Root(dir)
	if err != nil {
		return diagnosis{"repository", err.Error(), "reconcile needs one: git init", false}
	}
	return diagnosis{what: "repository", found: top}
}

func (a *app) lookAtConfig(dir string) diagnosis {
	root, err := findRoot(dir)
	if err != nil {
		return diagnosis{"config", err.Error(), "", true}
	}
	if _, err := config.Load(root); err != nil {
		return diagnosis{"config", err.Error(), "correct the file", true}
	}
	if _, err := config.Bork(root); err != nil {
		return diagnosis{"config", err.Error(), "correct the file", true}
	}
	return diagnosis{what: "config", found: "readable"}
}

// lookAtDisk writes where runs are written, which says more than a number of
// free bytes: quotas, read-only mounts and owners are in it too.
func (a *app) lookAtDisk(dir string) diagnosis {
	root, err := findRoot(dir)
	if err != nil {
		return diagnosis{"disk", err.Error(), "", true}
	}
	at := filepath.Join(root, journal.HomeName)
	if _, err := os.Stat(at); errors.Is(err, os.ErrNotExist) {
		at = root
	}
	probe, err := os.CreateTemp(at, ".hone.tmp-doctor-*")
	if err == nil {
		_, err = probe.Write(make([]byte, 1<<20))
		err = errors.Join(err, probe.Sync(), probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return diagnosis{"disk", err.Error(), "make room, or make the folder writable", true}
	}
	free, ok := freeBytes(at)
	if !ok {
		return diagnosis{what: "disk", found: "writable"}
	}
	return diagnosis{what: "disk", found: fmt.Sprintf("writable, %d MB free", free>>20)}
}

func (a *app) lookAtKeys() []diagnosis {
	var looks []diagnosis
	for _, p := range providers() {
		if len(p.keys) == 0 {
			continue
		}
		d := diagnosis{what: p.name, found: "no key", hint: ""}
		if value, variable := p.key(a.env); value != "" {
			d.found = variable + " is set"
		}
		if base := a.env(p.base); base != "" {
			d.found += ", " + p.base + " is " + redactURL(base)
		}
		looks = append(looks, d)
	}
	return looks
}

// lookAtProvider asks the provider of the model that a run would take, at no
// cost.
func (a *app) lookAtProvider(ctx context.Context, dir, name, baseURL string) diagnosis {
	root, err := findRoot(dir)
	if err != nil {
		return diagnosis{"provider", err.Error(), "", true}
	}
	file, err := config.Load(root)
	if err != nil {
		return diagnosis{"provider", "not asked, because the configuration cannot be read", "", false}
	}
	s, err := a.resolveRun(loopFlags{model: name, baseURL: baseURL}, file)
	if err != nil {
		return stopped("provider", err)
	}
	p, err := s.Model.probe(a.env)
	if err != nil {
		return stopped("provider", err)
	}
	if p == nil {
		return diagnosis{what: "provider", found: s.Model.Name + " has none to ask"}
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := p.Probe(ctx); err != nil {
		var fault *model.Error
		d := diagnosis{"provider", s.Model.Name + ": " + err.Error(), "", true}
		if errors.As(err, &fault) {
			d.hint = fault.Hint
		}
		return d
	}
	return diagnosis{what: "provider", found: s.Model.Name + " answers"}
}

// stopped is a diagnosis of what would keep a run from starting.
func stopped(what string, err error) diagnosis {
	var stop *hone.Stop
	if errors.As(err, &stop) {
		return diagnosis{what, stop.Why, stop.Hint, true}
	}
	return diagnosis{what, err.Error(), "", true}
}
