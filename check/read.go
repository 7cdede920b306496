package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"hone/internal/excerpt"
	"hone/sandbox"
)

// Report is a file in which a command reports what it found, such as JUnit's XML.
type Report struct {
	Path    string // relative to the tree's root
	Content []byte
	// Omitted is why the report was not read; empty if Content is complete.
	Omitted string
}

const (
	// maxRead is how much of an output Readers get, in bytes. Each of them may need
	// several times as much memory.
	maxRead = 4 << 20
	// maxSecret is the length in bytes of the longest secret that a cut may divide.
	maxSecret = 64 << 10
)

func (c CommandConfig) output(r sandbox.Result) string {
	if len(r.Stderr) == 0 {
		return c.clean(r.Stdout)
	}
	return c.clean(slices.Concat(bytes.TrimSuffix(r.Stdout, []byte("\n")), []byte("\n"), r.Stderr))
}

// It is redacted and valid UTF-8. The middle of a very long stream is left out, before anything copies it.
func (c CommandConfig) clean(stream []byte) string {
	clean := func(b []byte) string { return applyRedact(c.Redact, excerpt.Output(b)) }
	if len(stream) <= maxRead {
		return clean(stream)
	}
	// Half of a secret is not recognized, so what is close to the cut is left out, too.
	head, tail := clean(stream[:maxRead/2]), clean(stream[len(stream)-maxRead/2:])
	head, tail = head[:max(0, len(head)-maxSecret)], tail[min(len(tail), maxSecret):]
	return strings.ToValidUTF8(head+excerpt.Omitted(len(stream)-len(head)-len(tail))+tail, "\uFFFD")
}

// The worst come first. The reports count, or if these have nothing that blocks, the output: both usually describe the same
// failures in different words.
func (c CommandConfig) read(out string, r sandbox.Result, reports []Report) []Finding {
	exit := r.Exit
	switch {
	case r.TimedOut:
		exit = -1
	case c.FailOnFindings:
		exit = max(exit, 1) // whatever it is, the command fails if there are findings
	}
	var found []Finding
	for _, report := range reports {
		if report.Omitted != "" {
			found = append(found, Finding{Advisory: true, Text: fmt.Sprintf("The report %s was not read: %s.", report.Path, report.Omitted)})
			continue
		}
		text := applyRedact(c.Redact, strings.ToValidUTF8(string(report.Content), "\uFFFD"))
		found = append(found, c.ReportReader.read(text, exit)...)
	}
	if !Blocking(found) {
		found = append(found, c.Reader.read(out, exit)...)
	}
	for i := range found {
		found[i].Source = SourceCommand
	}
	if c.Place != nil {
		c.Place(found)
	}
	slices.SortStableFunc(found, func(f, g Finding) int { return f.rank() - g.rank() })
	seen := map[Finding]bool{}
	return slices.DeleteFunc(found, func(f Finding) bool {
		again := seen[f]
		seen[f] = true
		return again
	})
}

// The command passed.
func advisory(findings []Finding) []Finding {
	for i := range findings {
		findings[i].Advisory = true
	}
	return findings
}
