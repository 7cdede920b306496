package loop_test

import (
	"testing"

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
