package workspace_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"hone/workspace"
)

// Review a change, then apply its allowed edits.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer tree.Close()

	change := workspace.Change{Edits: []workspace.Edit{
		{Path: "./main.go", Content: []byte("package main\n\nfunc main() {}\n")},
		{Path: "build.sh", Content: []byte("exit 0\n")},
		{Path: ".Git/hooks/pre-commit", Content: []byte("#!/bin/sh\n")},
		{Path: "old.go", Delete: true},
	}}
	verdicts, err := tree.Review(change, workspace.Rules{Immutable: []string{"build.sh"}})
	if err != nil {
		log.Fatal(err)
	}
	var allowed []workspace.Delta
	contents := map[string][]byte{}
	for i, v := range verdicts {
		fmt.Println(v.Ruling, v.Path)
		if v.Ruling == workspace.Allow {
			allowed = append(allowed, v.Delta())
			contents[v.After.Digest] = change.Edits[i].Content
		}
	}
	open := func(digest string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(contents[digest])), nil
	}
	if _, err := tree.Apply(context.Background(), allowed, open); err != nil {
		log.Fatal(err)
	}
	content, _, err := tree.Read("main.go")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", content)
	// Output:
	// allow main.go
	// deny build.sh
	// deny .Git/hooks/pre-commit
	// drop old.go
	// package main
	//
	// func main() {}
}
