package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"hone/history"
	"hone/internal/child"
	"hone/sandbox/wall"
)

// childHone is a program that runs a hone with these arguments as its child in the
// current directory, and prints a line for each event and then how it ended. The first
// SIGTERM or SIGINT ends the child.
func childHone() {
	ctx, stop := interruptContext()
	os.Exit(func() int {
		defer stop()
		return playParent(ctx, os.Args[1:])
	}())
}

func playParent(ctx context.Context, args []string) int {
	program, err := exec.LookPath("hone")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	dir, err := os.Getwd()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	keeper := wall.NewKeeper(dir)
	defer keeper.Close()
	c := child.Command{Program: program, Dir: dir, Args: args, Env: os.Environ(), Keeper: keeper,
		Event: func(e history.Event) {
			fmt.Printf("event %s %s\n", e.Type, e.Phase)
			if end, ok := e.Payload.(history.End); ok {
				fmt.Printf("end %s, %d findings\n", end.Kind, len(end.Findings))
			}
		}}
	r, err := c.Run(ctx)
	if err != nil {
		fmt.Println("parent:", err)
		return 1
	}
	fmt.Printf("exit %d, run %t, why: %v\n", r.Exit, r.Run != "", r.Error())
	return 0
}
