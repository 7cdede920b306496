package loop_test

import (
	"testing"

	"hone/internal/config"
	"hone/loop"
)

func TestCheckLine(t *testing.T) {
	for line, ok := range map[string]bool{"": true, "true": true, "# first\nmake": true, "make # all": true, "#!/bin/sh\nmake": true,
		" ": false, "\n": false, "\t \r\n ": false, "# make": false, " # a\n\n# b": false} {
		if err := loop.CheckLine(line); (err == nil) != ok {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestNamesDir(t *testing.T) {
	for line, want := range map[string]bool{"cd /home/me/app && make": true, "make -C /home/me/app": true, "grep x /home/me/app/a": true, `"/home/me/app"`: true,
		"X=/home/me/app;make": true, "make /home/me/application /home/me/app/": true,
		"make": false, "make -C /home/me/app2": false, "/home/me/app-old/run": false, "/home/me/app.old": false, "cd /home/me && make": false} {
		if loop.NamesDir(line, "/home/me/app") != want {
			t.Errorf("%q: not %t", line, want)
		}
	}
	if !loop.NamesDir("ls /home/a\xff/b", "/home/a\xff") || loop.NamesDir("ls /home/a\xffb", "/home/a\xff") {
		t.Error("a name that is not UTF-8")
	}
	if loop.NamesDir("ls /", "/") || loop.NamesDir("ls app", "app") {
		t.Error("a root or a relative directory")
	}
}

// A reviewer or verifier with a model of its own keeps it; its fallbacks stay too.
func TestAnAdditionalModelDoesNotEscalate(t *testing.T) {
	in := loop.Input{Values: config.Values{}, Resolve: func(v config.Values) (loop.Settings, error) {
		return loop.Settings{Model: loop.Model{Name: config.Model.In(v), Fallbacks: []loop.Model{{Name: "c/d"}}, Escalation: &loop.Model{Name: "e/f"}, EscalateAfter: 3}}, nil
	}}
	settings, err := in.Settings()
	if err != nil || len(settings.Model.All()) != 3 {
		t.Fatalf("%+v, %v", settings.Model, err)
	}
	m, err := in.Model("a/b")
	if err != nil || m.Names() != "a/b,c/d" || len(m.All()) != 2 || m.EscalateAfter != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if role := settings.Model.Role("r", ""); role.Escalation == nil || role.EscalateAfter != 3 || len(role.Fallbacks) != 1 {
		t.Errorf("%+v", role)
	}
}

// Each model of a role must be able to take its conversation over.
func TestTheSmallestContextCounts(t *testing.T) {
	for _, tt := range []struct{ own, fallback, escalation, want int64 }{
		{0, 0, 0, 0}, {100, 0, 0, 100}, {0, 50, 0, 50}, {100, 50, 0, 50}, {100, 200, 30, 30}, {10, 200, 30, 10},
	} {
		m := loop.Model{Context: tt.own, Fallbacks: []loop.Model{{Context: tt.fallback}}, Escalation: &loop.Model{Context: tt.escalation}}
		if got := m.Role("r", "").Context; got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}
