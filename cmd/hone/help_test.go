package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
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
	sections := kinds.Sections()
	file, err := config.Load(root, sections)
	if err != nil {
		t.Fatalf("hone help config prints a configuration that hone does not accept: %v", err)
	}
	sections[""] = &file
	for name, s := range sections {
		missing(t, text, name, reflect.TypeOf(s).Elem())
	}
}

// missing reports the keys of a table that are not in a text.
func missing(t *testing.T, text, table string, of reflect.Type) {
	t.Helper()
	for f := range of.Fields() {
		key := f.Tag.Get("toml")
		kind := f.Type
		if kind.Kind() == reflect.Map {
			kind = kind.Elem()
		}
		switch {
		case f.Anonymous:
			missing(t, text, table, kind)
		case key == "" || key == "-" || kind == reflect.TypeFor[config.Agent]():
		case kind.Kind() == reflect.Struct && table == "":
			missing(t, text, key, kind)
		default:
			_, section, ok := strings.Cut(text, "\n["+table)
			section, _, _ = strings.Cut(section, "\n[")
			_, line, found := strings.Cut(section, "\n"+key+" = ")
			if line, _, _ = strings.Cut(line, "\n"); !ok || !found || !strings.Contains(line, "default") {
				t.Errorf("hone help config does not have %s in [%s] with its default", key, table)
			}
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
