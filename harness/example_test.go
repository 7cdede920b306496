package harness_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"hone"
	"hone/check"
	"hone/harness"
)

// A whole program: a model fixes what a command reports. Without any further
// code, the workspace is locked, commands run behind walls, and keys are not
// recorded.
func Example() {
	harness.Main() // does not return in a helper process of the walls
	dir := project()
	defer os.RemoveAll(dir)
	s, err := harness.Open(dir, harness.Options{Model: "script/" + filepath.Join(dir, "replies.script"), Walls: "none"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	run := s.Run(hone.Limits{Rounds: 5})
	run.Check = s.Command("grep world greeting.txt || { echo greet the whole world; exit 1; }")
	fixer := s.Role("fixer", "Fix what the check reports.")
	end, err := run.Do(context.Background(), func(ctx context.Context, r *hone.Run, wrong []check.Finding) ([]check.Finding, error) {
		prompt := "Improve greeting.txt."
		for _, f := range wrong {
			prompt += "\n" + f.Text
		}
		talk, err := r.Talk(ctx, fixer, hone.Text(prompt))
		fmt.Println("the model:", talk.Reply.Text())
		return nil, err
	})
	text, _ := os.ReadFile(filepath.Join(dir, "greeting.txt"))
	fmt.Printf("%s after %d rounds: %s%v\n", end.Kind, end.Rounds, text, err)
	// Output:
	// the model: That is better.
	// the model: That is right.
	// done after 2 rounds: hello, world
	// <nil>
}

// project is a directory with a greeting, and with scripted replies.
func project() string {
	dir, _ := os.MkdirTemp("", "example")
	_ = os.WriteFile(filepath.Join(dir, "greeting.txt"), []byte("hi\n"), 0o644)
	_ = os.WriteFile(filepath.Join(dir, "replies.script"), []byte(`=== reply ===
=== call write ===
{"path": "greeting.txt", "content": "hello\n"}
=== reply ===
That is better.
=== reply ===
=== call read ===
{"path": "greeting.txt"}
=== reply ===
=== call write ===
{"path": "greeting.txt", "content": "hello, world\n"}
=== reply ===
That is right.
`), 0o644)
	return dir
}
