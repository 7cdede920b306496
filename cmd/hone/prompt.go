package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/screen"
	"hone/internal/render"
	"hone/loop/phase"
	"hone/workspace"
)

func (a *app) promptCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "prompt LOOP",
		Short: "print what would be sent first; send nothing",
		Long:  "prompt prints what a loop would send first, with its size and an estimate of its tokens. It sends nothing and writes nothing.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return usage("prompt needs to know which loop", "hone prompt reconcile")
		},
	}
	c.AddCommand(a.promptReconcileCommand(), a.promptImplementCommand(), a.promptTaskCommand(), a.promptPhaseCommand())
	return c
}

func (a *app) promptReconcileCommand() *cobra.Command {
	var f loopFlags
	c := &cobra.Command{
		Use:   "reconcile [SOURCE_DIR]",
		Short: "what reconcile would send first",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.promptReconcile(c.Context(), f, args)
		},
	}
	registerDir(c, &f.dir)
	c.Flags().StringVarP(&f.model, "model", "m", "", "whose context the size is compared with, as PROVIDER/NAME")
	c.Flags().BoolVar(&f.output.json, "json", false, "the request as one JSON object")
	return c
}

// preview is the request as --json prints it.
type preview struct {
	System string `json:"system"`
	Text   string `json:"text"`
	Bytes  int    `json:"bytes"`
	Tokens int    `json:"tokens_estimate"`
	Files  int    `json:"files"`
	Fits   bool   `json:"fits"`

	what string // in words; empty: the files and the instructions
}

// promptReconcile needs no key: a model that nobody named only means that the
// size is compared with nothing.
func (a *app) promptReconcile(ctx context.Context, f loopFlags, args []string) error {
	root, s, _, err := a.resolveReconcile(f, args)
	unnamed := errors.Is(err, errNoModel)
	if unnamed {
		f.model = "script/none"
		root, s, _, err = a.resolveReconcile(f, args)
	}
	if err != nil {
		return err
	}
	repo, err := repository(root)
	if err != nil {
		return err
	}
	list, err := listerOf(root)
	if err != nil {
		return err
	}
	tree, err := workspace.Open(root, workspace.Options{List: list})
	if err != nil {
		return err
	}
	defer tree.Close()
	v, err := s.loop(a, repo, nil).Preview(ctx, tree)
	if err != nil {
		return tooLong(err)
	}
	whose := s.Model.Name
	if unnamed {
		whose = ""
	}
	return a.preview(preview{System: v.System, Text: v.Text, Files: v.Files}, v.Fits, whose, f.output.json)
}

// preview prints a request, and on stderr its size and whose context it was
// compared with; empty compares with nobody's.
func (a *app) preview(p preview, fits error, whose string, asJSON bool) error {
	p.Bytes, p.Fits = len(p.System)+len(p.Text), fits == nil
	p.Tokens = p.Bytes / 4
	if asJSON {
		return errors.Join(json.NewEncoder(a.out).Encode(p), tooLong(fits))
	}
	fmt.Fprintf(a.out, "%s\n%s", p.System, p.Text)
	if whose != "" {
		whose = " for " + whose
	}
	what := cmp.Or(p.what, screen.Count(p.Files, "file")+" and the instructions")
	fmt.Fprintf(a.err, "hone: %s, %s, about %s tokens%s\n", what,
		render.Bytes(int64(p.Bytes)), render.Tokens(int64(p.Tokens)), whose)
	return tooLong(fits)
}

func (a *app) promptImplementCommand() *cobra.Command {
	var f implementFlags
	c := &cobra.Command{
		Use:   "implement",
		Short: "what implement would send first",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.promptImplement(c.Context(), f)
		},
	}
	registerDir(c, &f.dir)
	f.registerQuery(c)
	c.Flags().StringVarP(&f.model, "model", "m", "", "whose context the size is compared with, as PROVIDER/NAME")
	c.Flags().BoolVar(&f.output.json, "json", false, "the request as one JSON object")
	return c
}

func (a *app) promptImplement(ctx context.Context, f implementFlags) error {
	root, s, _, err := a.resolveImplement(f)
	if err != nil {
		return err
	}
	tree, _, err := manifest(ctx, root)
	if err != nil {
		return err
	}
	defer tree.Close()
	v, err := s.loop(a, nil).Preview(ctx, tree)
	if err != nil {
		return err
	}
	return a.preview(preview{System: v.System, Text: v.Text, Files: v.Files}, v.Fits, s.Model.Name, f.output.json)
}

func (a *app) promptPhaseCommand() *cobra.Command {
	var f phaseFlags
	var role string
	c := &cobra.Command{
		Use:   "phase N",
		Short: "what phase would send a role first",
		Long: `prompt phase prints what phase would send a role first: the verifier to write the suite, or the
builder in round 1. No hook is run: the map ends where map_deps would print the dependencies.`,
		Args: oneNumber,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.promptPhase(f, args[0], role)
		},
	}
	registerDir(c, &f.dir)
	fs := c.Flags()
	fs.StringVar(&role, "role", "verifier", "whose: verifier, which is asked first, or builder")
	fs.StringVarP(&f.model, "model", "m", "", "whose context the size is compared with, as PROVIDER/NAME")
	fs.StringVar(&f.builderModel, "builder-model", "", "the same for the builder")
	fs.StringVar(&f.verifierModel, "verifier-model", "", "the same for the verifier")
	fs.BoolVar(&f.output.json, "json", false, "the request as one JSON object")
	return c
}

// oneNumber wants one phase's number.
func oneNumber(c *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == allPhases {
		return usage("prompt phase needs the number of one phase", helpFor(c))
	}
	return somePhases(c, args)
}

// promptPhase needs no key, as [app.promptReconcile] needs none.
func (a *app) promptPhase(f phaseFlags, arg, role string) error {
	if role != "builder" && role != "verifier" {
		return usage(fmt.Sprintf("--role %s is not builder or verifier", role), "hone help prompt phase")
	}
	root, err := phaseRoot(f.dir)
	if err != nil {
		return err
	}
	f.agents = true
	n, _ := strconv.Atoi(arg)
	s, _, err := a.resolvePhase(root, f, n)
	if err != nil {
		return err
	}
	l := phase.Loop{Phase: n, Guard: a.phaseGuard(s), Builder: s.role("builder", s.Model, s.BuilderSystem), Writer: s.role("verifier", s.Verifier, s.VerifierSystem)}
	v, err := l.Preview(root, role)
	if err != nil {
		return err
	}
	whose := s.Verifier.Name
	if role == "builder" {
		whose = s.Model.Name
	}
	return a.preview(preview{System: v.System, Text: v.Text, what: "to the " + role + ": the instructions, the project and its contracts"}, v.Fits, whose, f.output.json)
}

// tooLong is a prompt that does not fit, as the run itself would say it.
func tooLong(err error) error {
	var c *hone.ContextError
	if errors.As(err, &c) {
		return usage(c.Error(), c.Remedy)
	}
	return err
}
