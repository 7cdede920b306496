// Package feed connects a run to other programs while it works: they read its events as
// JSON lines ([Line]), confirm that they have stored them ([Await]), and are called when it
// asks a question or ends ([Notifier]).
package feed

import (
	"bytes"
	"fmt"

	"hone"
	"hone/cmd/hone/failure"
	"hone/history"
)

// Line returns an event as --json prints it: its line in the journal. The
// last event also contains the exit status, and a question also its digest.
func Line(e history.Event) []byte {
	line := bytes.TrimSuffix(e.Line(), []byte("}"))
	switch p := e.Payload.(type) {
	case hone.End:
		return fmt.Appendf(nil, `%s,"exit":%d}`, line, failure.ExitStatus(p.Kind))
	case history.Question:
		return fmt.Appendf(nil, `%s,"question":"%s"}`, line, p.Digest(e.Run))
	}
	return e.Line()
}
