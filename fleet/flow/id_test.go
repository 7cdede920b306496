package flow_test

import (
	"testing"

	"hone/fleet/flow"
	"hone/fleet/job"
)

// TestIDs: no two workflows have the same id, whatever the names of batches and jobs.
func TestIDs(t *testing.T) {
	parts := []string{"a", "b", "c", "a-b", "b-c", "a-b-c", "batch", "a.b", "hone"}
	seen := map[string][]string{}
	add := func(id string, names ...string) {
		for _, name := range names {
			if !job.ValidName(name) {
				t.Fatal(name)
			}
		}
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %q have the id %s", names, other, id)
		}
		seen[id] = names
	}
	for _, batch := range parts {
		add(flow.BatchID(batch), batch)
		for _, name := range parts {
			add(flow.JobID(batch, name), batch, name)
		}
	}
}
