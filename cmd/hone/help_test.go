package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone"
	"hone/cmd/hone/failure"
	"hone/harness"
	"hone/internal/config"
)

func topicText(t *testing.T, name string) string {
	t.Helper()
	for _, c := range topics() {
		if c.Name() == name {
			return completeTopic(c.Long)
		}
	}
	t.Fatalf("there is no topic %s", name)
	return ""
}

// TestHelpConfig holds that the topic config is a valid configuration, and that it has
// every key with its default, but those of agents, which docs/agents.md explains.
func TestHelpConfig(t *testing.T) {
	text := topicText(t, "config")
	root := t.TempDir()
	path := filepath.Join(root, filepath.FromSlash(config.HonePath))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(root); err != nil {
		t.Fatalf("hone help config prints a configuration that hone does not accept: %v", err)
	}
	for _, r := range config.Table() {
		_, key, ok := strings.Cut(r.Key, ".")
		before, _, found := strings.Cut(text, "\n"+key+" = ")
		if comment := before[strings.LastIndex(before, "\n")+1:]; ok && (!found || !strings.Contains(comment, "default")) {
			t.Errorf("hone help config does not have %s with its default", r.Key)
		}
	}
}

// TestHelpTopics holds that the topics name every variable of a provider, every provider
// and every exit status.
func TestHelpTopics(t *testing.T) {
	for _, p := range harness.Providers() {
		for _, variable := range append(p.Keys, p.Base) {
			if variable != "" && !p.Unlisted && !strings.Contains(topicText(t, "environment"), variable) {
				t.Errorf("hone help environment does not have %s", variable)
			}
		}
		if !p.Unlisted && !strings.Contains(topicText(t, "models"), p.Name+"/") {
			t.Errorf("hone help models does not have %s", p.Name)
		}
	}
	for _, kind := range []hone.Kind{hone.KindDone, hone.KindRounds, hone.KindUsage, hone.KindBudget, hone.KindBlocked, hone.KindFailed, hone.KindInterrupted} {
		if line := fmt.Sprintf("\n  %-3d  ", failure.ExitStatus(kind)); !strings.Contains(topicText(t, "exit-codes"), line) {
			t.Errorf("hone help exit-codes does not have %d", failure.ExitStatus(kind))
		}
	}
}
