package kernel

import (
	"os"
	"path/filepath"
	"testing"
)

// A cage is beside a group only if that lets nothing escape from the group's limits.
func TestUnlimited(t *testing.T) {
	free := map[string]string{"memory.max": "max\n", "memory.high": "max\n", "pids.max": "max\n", "cpu.max": "max 100000\n", "io.max": "", "cpuset.cpus": "\n", "memory.current": "4096\n"}
	for limit, text := range map[string]string{"": "", "memory.max": "1073741824\n", "memory.high": "4096\n", "cpu.max": "50000 100000\n", "io.max": "8:0 rbps=2097152 wbps=max riops=max wiops=max\n", "cpuset.cpus": "0-1\n", "pids.max": "100\n"} {
		dir := t.TempDir()
		for name, content := range free {
			if name == limit {
				content = text
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := unlimited(dir); got != (limit == "") {
			t.Errorf("%s %q: %v", limit, text, got)
		}
	}
}
