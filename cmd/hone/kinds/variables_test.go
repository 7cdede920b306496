package kinds_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/internal/config"
)

// TestOpenedVariablesAreRedacted: a run's guard knows the values of all variables that its
// settings give to commands, the check, hooks and agents.
func TestOpenedVariablesAreRedacted(t *testing.T) {
	const settings = `{"model": {"name": "command/a", "agent": {"argv": ["a"], "env": ["OF_AGENT"]}, "fallbacks": [{"agent": {"argv": ["b"], "env": ["OF_FALLBACK"]}}]},
		"verifier_model": {"agent": {"argv": ["a"], "env": ["OF_VERIFIER"]}}, "values": {"phase.hook-env": ["OF_HOOKS"], "check.env": ["OF_CHECK"]},
		 "walls": {"wall": "hidden", "env": ["OF_COMMANDS"]}}`
	h := harness.Host{Getenv: func(name string) string { return "value-" + name + "-4f8a91" }, Environ: []string{}}
	for _, k := range kinds.All() {
		l := k.New()
		if err := json.Unmarshal([]byte(settings), l); err != nil {
			t.Fatal(err)
		}
		g, err := h.Guard(t.Context(), l, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"OF_AGENT", "OF_FALLBACK", "OF_CHECK", "OF_COMMANDS"}
		if k.Name == "phase" {
			names = append(names, "OF_VERIFIER", "OF_HOOKS")
		}
		for _, name := range names {
			if text := h.Getenv(name); g.Redact(text) == text {
				t.Errorf("%s: the value of %s stays", k.Name, name)
			}
		}
		if text := h.Getenv("UNNAMED"); g.Redact(text) != text {
			t.Errorf("%s: the value of a variable that no command gets is redacted", k.Name)
		}
		if n := lists(k.Name); n > 0 && k.Name != "phase" {
			t.Errorf("%s has settings for variables, which this test lacks", k.Name)
		} else if k.Name == "phase" && n != 1 {
			t.Errorf("phase has %d settings for variables, of which this test knows one", n)
		}
	}
}

// lists returns how many settings of a loop's section name variables.
func lists(section string) (n int) {
	for _, r := range config.Table() {
		if strings.HasPrefix(r.Key, section+".") && r.Valid == "variable" && r.Name != config.VerifierCommands.Name { // those are names of functions
			n++
		}
	}
	return n
}

// A new loop is also in the settings that loops share.
func TestLoopsHaveSettings(t *testing.T) {
	for _, k := range kinds.All() {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, ".config"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, config.HonePath), []byte("["+k.Name+"]\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(root); err != nil {
			t.Errorf("%s: loopNames in internal/config/table.go lacks it: %v", k.Name, err)
		}
	}
}
