// Package otlptest reads a trace of hone as OpenTelemetry's collector does. It is a module of its own, so that hone does not
// need the collector's.
package otlptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

const replies = `=== reply ===
=== call read ===
{"path": "a.txt"}
=== call write ===
{"path": "a.txt", "content": "good\n"}
=== reply ===
It says good now.
`

func TestTheCollectorReadsATrace(t *testing.T) {
	work := t.TempDir()
	hone := filepath.Join(work, "hone")
	run(t, "../..", "go", "build", "-trimpath", "-o", hone, "./cmd/hone")
	t.Setenv("XDG_STATE_HOME", filepath.Join(work, "state"))
	project := filepath.Join(work, "project")
	for name, text := range map[string]string{"project/a.txt": "nothing\n", "replies": replies} {
		file := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, project, "git", "init", "-q")
	run(t, project, hone, "fix", "--check", "grep -q good a.txt", "-m", "script/../replies", "--sandbox", "none")

	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(run(t, project, hone, "export", "--otlp", "-"))
	if err != nil {
		t.Fatal(err)
	}
	spans := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	known, names := map[string]bool{"": true}, map[string]int{}
	for _, s := range spans.All() {
		if !known[s.ParentSpanID().String()] {
			t.Errorf("%s comes before its parent", s.Name())
		}
		known[s.SpanID().String()] = true
		names[s.Name()]++
		if s.TraceID().IsEmpty() || s.SpanID().IsEmpty() || s.StartTimestamp() == 0 || s.EndTimestamp() < s.StartTimestamp() {
			t.Errorf("%s: trace %s, span %s, %d to %d", s.Name(), s.TraceID(), s.SpanID(), s.StartTimestamp(), s.EndTimestamp())
		}
	}
	if len(known) != spans.Len()+1 {
		t.Errorf("%d spans have %d ids", spans.Len(), len(known)-1)
	}
	for name, n := range map[string]int{"invoke_agent hone fix": 1, "start": 1, "round 1": 1, "chat replies": 2, "execute_tool write": 1, "check": 2} {
		if names[name] != n {
			t.Errorf("there are %d spans %q, want %d", names[name], name, n)
		}
	}
	attributes := spans.At(0).Attributes()
	if v, ok := attributes.Get("gen_ai.usage.input_tokens"); !ok || v.Int() == 0 {
		t.Error("the run has no input tokens")
	}
	if v, ok := attributes.Get("gen_ai.operation.name"); !ok || v.Str() != "invoke_agent" {
		t.Error("the run has no operation")
	}
}

func run(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return out
}
