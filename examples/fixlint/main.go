// Command fixlint lets a model fix what go vet reports about the module in the
// current folder. It shows how a program embeds hone: the lock, the journal,
// the walls and the budget are hone's, the loop is its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"hone"
	"hone/check"
	"hone/harness"
)

func main() {
	harness.Main() // does not return in a helper process of the walls
	s, err := harness.Open(".", harness.Options{})
	if usage, ok := errors.AsType[*hone.UsageError](err); ok {
		log.Fatalf("%v\n%s", err, usage.Next.First)
	}
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	run := s.Run(hone.Limits{Rounds: 5})
	run.Check = s.Command("go vet ./...")
	run.Trust.CheckFirst = hone.UnlessClean
	fixer := s.Role("fixer", "Fix what go vet reports. Change nothing else.")
	end, err := run.Do(context.Background(), func(ctx context.Context, r *hone.Run, wrong []check.Finding) ([]check.Finding, error) {
		var reports []string
		for _, f := range wrong {
			reports = append(reports, f.Text)
		}
		talk, err := r.Talk(ctx, fixer, hone.Text(reports...))
		fmt.Println(talk.Reply.Text())
		return nil, err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", end.Kind, end.Why)
	if end.Next.First != "" { // for example, which key is missing
		fmt.Println("next:", end.Next.First)
	}
}
