package loop

import (
	"context"
	"fmt"

	"hone"
	"hone/check"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/internal/excerpt"
)

// maxReported is how much of the file of --findings is kept beside the findings, in bytes.
const maxReported = 256 << 10

// Reported returns what a check found elsewhere, of the file that the user named; nil if there is none. It depends on the
// resolved settings.
func (in *Input) Reported(ctx context.Context) (*hone.Reported, error) {
	name := config.Findings.In(in.Values)
	read := func() ([]byte, error) { return artifact.Input(name) }
	switch {
	case name == "":
		return nil, nil
	case name == "-" && len(in.Args) > 0 && in.Args[0] == "-":
		return nil, Usage("the advice and --findings cannot both be standard input", "give --findings the name of a file")
	case name == "-":
		name, read = "standard input", func() ([]byte, error) { return artifact.InputFrom(in.In, "standard input") }
	}
	b, err := read()
	if err != nil {
		return nil, UsageOf(fmt.Errorf("--findings: %w", err), "name the log or the report of a check")
	}
	guard, err := in.Guard(ctx)
	if err != nil {
		return nil, err
	}
	text := guard.Redact(string(b))
	found := &hone.Reported{Name: name, Findings: in.ReadFindings(text), Text: excerpt.Middle(excerpt.Output([]byte(text)), maxReported)}
	if !check.Blocking(found.Findings) {
		return nil, Usage("hone finds no findings in "+name,
			`name its format, such as --check-format "%f:%l: %m"; or leave out --findings, and hone runs the check`)
	}
	return found, nil
}
