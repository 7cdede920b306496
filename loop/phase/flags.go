package phase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hone/internal/config"
	"hone/internal/git"
	"hone/loop"
	"hone/loop/phase/spec"
)

// allPhases stands for every phase that has a specification.
const allPhases = "all"

func phaseArgs(args []string) error {
	if len(args) == 0 {
		return loop.Usage("phase needs the number of a phase, or all", "hone phase 1, hone phase 1 2, or hone phase all")
	}
	for _, arg := range args {
		if n, err := strconv.Atoi(arg); arg != allPhases && (err != nil || n < 1) {
			return loop.Usage(fmt.Sprintf("%q is not the number of a phase", arg), "hone phase 1, hone phase 1 2, or hone phase all")
		}
	}
	if slices.Contains(args, allPhases) && len(args) > 1 {
		return loop.Usage("phase takes numbers, or all", "hone phase all")
	}
	return nil
}

// Split returns one run for each phase that the command line names, in their order.
// "all" leaves out the phases that have passed. With --list it prints the
// specifications as hone reads them, and returns no run.
func (l *Loop) Split(ctx context.Context, in *loop.Input) (runs [][]string, err error) {
	if err := project(in.Root); err != nil {
		return nil, err
	}
	all := in.Args[0] == allPhases
	numbers := numbersOf(in.Args)
	if config.List.Given(in.Flags) {
		return nil, wrongSpecs(list(in, numbers[len(numbers)-1]))
	}
	if all {
		numbers, err = notPassed(ctx, in)
	}
	for _, n := range numbers {
		if _, missing := spec.Read(in.Root, n); err == nil {
			err = missing
		}
		runs = append(runs, []string{strconv.Itoa(n)})
	}
	if err != nil {
		return nil, wrongSpecs(err)
	}
	return runs, nil
}

func wrongSpecs(err error) error {
	wrong, ok := errors.AsType[*spec.Error](err)
	switch {
	case !ok:
		return err
	case wrong.Missing:
		return loop.Usage(wrong.Why, "write it, or name one that exists: hone phase all --list")
	}
	return loop.Usage(wrong.Why, "hone init phase writes an example")
}

// "all" is 0.
func numbersOf(args []string) []int {
	var numbers []int
	for _, arg := range args {
		n, _ := strconv.Atoi(arg)
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

func notPassed(ctx context.Context, in *loop.Input) (numbers []int, err error) {
	specs, err := spec.Read(in.Root, 0)
	if err != nil {
		return nil, err
	}
	g, err := git.Find(in.Root)
	if err != nil {
		return nil, err
	}
	var passed []string
	for _, s := range specs {
		ok, err := HasPassed(ctx, g, in.Root, s.Number)
		if err != nil {
			return nil, err
		}
		if ok {
			passed = append(passed, strconv.Itoa(s.Number))
		} else {
			numbers = append(numbers, s.Number)
		}
	}
	if len(passed) > 0 {
		in.Note(fmt.Sprintf("already passed by these specifications: phase %s; hone phase N runs one again", strings.Join(passed, ", ")))
	}
	if len(numbers) == 0 {
		_, err = fmt.Fprintln(in.Out, "next: write the specification of the next phase; all existing ones have passed")
	}
	return numbers, err
}

// last is 0 for all phases.
func list(in *loop.Input, last int) error {
	specs, err := spec.Read(in.Root, last)
	if err != nil {
		return err
	}
	for _, s := range specs {
		if len(s.Items) > 0 {
			_, err = fmt.Fprint(in.Out, spec.List(specs))
			return err
		}
	}
	return noContract(specs[len(specs)-1].Path)
}

func noContract(file string) error {
	return loop.Usage(file+" states no contract that hone recognizes, so nothing could be verified",
		"below a heading Contracts, hone looks for lines ACTION → EXPECTED, for FLOW: NAME with such lines, and for headings such as POST /users with lines Input: and Success:")
}
