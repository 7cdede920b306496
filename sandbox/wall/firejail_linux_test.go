package wall

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

func TestFirejailWalls(t *testing.T) {
	path, err := usable(sandbox.Firejail)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	y := newYard(t, path, firejailArgs, os.Getuid())
	y.attempt(t, everywhere())
	if text, err := os.ReadFile(y.in("w/.git/config")); err != nil || string(text) != "config\n" {
		t.Errorf("outside, the protected file is %q, %v", text, err)
	}
}

func TestFirejailTmp(t *testing.T) {
	path, err := usable(sandbox.Firejail)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	for _, around := range []string{"/tmp", "/var/tmp"} { // firejail replaces both, and makes /var read-only
		t.Setenv("TMPDIR", around)
		y := newYard(t, path, firejailArgs, os.Getuid())
		y.policy.Tmp = y.in("tmp")
		y.policy.Write = append(y.policy.Write, y.policy.Tmp)
		if err := os.Mkdir(y.policy.Tmp, 0o755); err != nil {
			t.Fatal(err)
		}
		if got := y.run(t, "echo kept >../tmp/x; ls -A .."); got != "r\ntmp\nto-r\nw\n" {
			t.Errorf("in %s: %q", around, got)
		}
		if got := y.run(t, "cat ../tmp/x"); got != "kept\n" {
			t.Errorf("in %s the next command finds %q", around, got)
		}
	}
}

func TestFirejailPassesDescriptors(t *testing.T) {
	path, err := usable(sandbox.Firejail)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	passesDescriptors(t, newYard(t, path, firejailArgs, os.Getuid()))
}

// TestFirejailStrangePaths checks that a path is either refused or passed unchanged.
func TestFirejailStrangePaths(t *testing.T) {
	path, err := usable(sandbox.Firejail)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	unfit := func(name string) bool {
		_, err := jail{mounts: []sandbox.Entry{{Path: "/w/" + name}}}.options()
		return err != nil
	}
	newYard(t, path, firejailArgs, os.Getuid()).strange(t, slices.DeleteFunc(slices.Clone(strangeNames), unfit))
}

func TestFirejailOptions(t *testing.T) {
	dir := func(path string, a sandbox.Access) sandbox.Entry {
		return sandbox.Entry{Path: path, Access: a, Dir: true}
	}
	file := func(path string, a sandbox.Access) sandbox.Entry { return sandbox.Entry{Path: path, Access: a} }
	for name, c := range map[string]struct {
		root    bool
		entries []sandbox.Entry
		want    []string
	}{
		"nothing": {entries: nil, want: []string{"--private-tmp"}},
		"a home": {
			entries: []sandbox.Entry{dir("/home/u/.nvm", sandbox.AccessRead), dir("/home/u/w", sandbox.AccessWrite), dir("/usr", sandbox.AccessRead)},
			want:    []string{"--private-tmp", "--whitelist=/home/u/.nvm", "--read-only=/home/u/.nvm", "--whitelist=/home/u/w"},
		},
		"the home itself": {
			entries: []sandbox.Entry{dir("/home/u", sandbox.AccessWrite), dir("/home/u/.ssh", sandbox.AccessNone), dir("/home/u/x", sandbox.AccessRead)},
			want:    []string{"--private-tmp", "--read-only=/home/u/x", "--blacklist=/home/u/.ssh"},
		},
		"a top-level folder":       {entries: []sandbox.Entry{dir("/work", sandbox.AccessWrite), dir("/opt/go", sandbox.AccessRead)}, want: []string{"--private-tmp", "--whitelist=/opt/go", "--read-only=/opt/go"}},
		"below /tmp":               {entries: []sandbox.Entry{dir("/tmp/w", sandbox.AccessWrite)}, want: []string{"--whitelist=/tmp/w"}},
		"/tmp itself":              {entries: []sandbox.Entry{dir("/tmp", sandbox.AccessWrite)}, want: []string{}},
		"the whole machine":        {entries: []sandbox.Entry{dir("/", sandbox.AccessRead), dir("/srv/w", sandbox.AccessWrite)}, want: []string{"--read-write=/srv/w"}},
		"where firejail is strict": {root: true, entries: []sandbox.Entry{dir("/etc/w", sandbox.AccessWrite)}, want: []string{"--private-tmp", "--read-write=/etc/w"}},
		"held in place": {
			entries: []sandbox.Entry{dir("/srv/w", sandbox.AccessWrite), file("/srv/w/.git/config", sandbox.AccessRead)},
			want:    []string{"--private-tmp", "--whitelist=/srv/w", "--read-only=/srv/w/.git", "--read-write=/srv/w/.git", "--read-only=/srv/w/.git/config"},
		},
		"writable in read-only": {
			entries: []sandbox.Entry{dir("/srv/r", sandbox.AccessRead), dir("/srv/r/w", sandbox.AccessWrite)},
			want:    []string{"--private-tmp", "--whitelist=/srv/r", "--read-only=/srv/r", "--read-write=/srv/r/w"},
		},
		"hidden, where it is seen and where it is not": {
			entries: []sandbox.Entry{dir("/srv/w", sandbox.AccessWrite), file("/srv/w/.env", sandbox.AccessNone), dir("/srv/x", sandbox.AccessNone), dir("/srv/absent", sandbox.AccessNone), dir("/root/.ssh", sandbox.AccessNone), {Path: "/srv/w/y", Access: sandbox.AccessNone, Absent: true}},
			want:    []string{"--private-tmp", "--whitelist=/srv/w", "--blacklist=/srv/w/.env", "--blacklist=/root/.ssh"},
		},
		"a link":             {entries: []sandbox.Entry{{Path: "/srv/l", Access: sandbox.AccessRead, Link: "/srv/w"}, dir("/srv/w", sandbox.AccessWrite)}, want: []string{"--private-tmp", "--whitelist=/srv/l", "--whitelist=/srv/w"}},
		"another's, as root": {root: true, entries: []sandbox.Entry{dir("/home/v/w", sandbox.AccessWrite)}, want: []string{"--private-tmp", "--whitelist=/home/v/w"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := jail{home: "/home/u", root: c.root, entries: c.entries, mounts: mounts(c.entries)}.options()
			if diff := cmp.Diff(c.want, append([]string{}, got...)); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func TestFirejailRefuses(t *testing.T) {
	dir := func(path string, a sandbox.Access) sandbox.Entry {
		return sandbox.Entry{Path: path, Access: a, Dir: true}
	}
	for name, entries := range map[string][]sandbox.Entry{
		"another's home":        {dir("/home/v/w", sandbox.AccessWrite)},
		"shown in hidden":       {dir("/srv/w", sandbox.AccessWrite), dir("/srv/w/h", sandbox.AccessNone), dir("/srv/w/h/r", sandbox.AccessRead)},
		"a pattern":             {dir("/srv/*", sandbox.AccessWrite)},
		"a pattern that hides":  {dir("/srv/w", sandbox.AccessWrite), dir("/srv/w/[a]", sandbox.AccessNone)},
		"a comma":               {dir("/srv/a,b", sandbox.AccessRead)},
		"what reads as a macro": {dir("/srv/${HOME}", sandbox.AccessWrite)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := jail{home: "/home/u", entries: entries, mounts: mounts(entries)}.options()
			if wall, ok := errors.AsType[*sandbox.WallError](err); !ok || wall.Wall != sandbox.Firejail || wall.Next == "" {
				t.Error(got, err)
			}
		})
	}
}

func TestFirejailArgs(t *testing.T) {
	for _, open := range []bool{false, true} {
		got, err := firejailArgs("/b/firejail", sandbox.Policy{Net: open}, nil, []string{"/keeper", "--", "-x"})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[:1+len(firejailSystem)], append([]string{"/b/firejail"}, firejailSystem...)) {
			t.Error(got)
		}
		if slices.Contains(got, "--net=none") == open {
			t.Errorf("network %v: %q", open, got)
		}
		if end := got[len(got)-4:]; !slices.Equal(end, []string{"--", "/keeper", "--", "-x"}) {
			t.Error(end)
		}
	}
}

func TestFindFirejail(t *testing.T) {
	for name, c := range map[string]struct{ script, reason, next string }{
		"absent":                {"", "there is no program firejail", "apt install firejail"},
		"one that fails":        {"#!/bin/sh\necho 'Error: not allowed' >&2\nexit 1\n", "Error: not allowed", "use the hidden"},
		"one that says nothing": {"#!/bin/sh\nexit 1\n", "ended without a message", "use the hidden"},
		"one without walls":     {"#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n", "would run without walls", "use the hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			if c.script != "" {
				runtest.Script(t, filepath.Join(dir, "firejail"), c.script, 0o755)
				t.Setenv("PATH", dir+":/usr/bin:/bin")
			}
			_, err := usable(sandbox.Firejail)
			wall, ok := errors.AsType[*sandbox.WallError](err)
			if !ok || !strings.Contains(wall.Error(), c.reason) || !strings.HasPrefix(wall.Next, c.next) || (c.script == "") != errors.Is(err, exec.ErrNotFound) {
				t.Errorf("%v, %+v", err, wall)
			}
		})
	}
}

// TestFirejailInFirejail checks with the real program why the keeper must inspect its
// namespaces.
func TestFirejailInFirejail(t *testing.T) {
	path, err := usable(sandbox.Firejail)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	inner, err := firejailArgs(path, sandbox.Policy{}, nil, []string{"readlink", "/proc/self/ns/mnt"})
	if err != nil {
		t.Fatal(err)
	}
	outer := append([]string{path, "--noprofile", "--quiet", "--", "sh", "-c", `readlink /proc/self/ns/mnt; exec "$@"`, "sh"}, inner...)
	output, err := exec.Command(outer[0], outer[1:]...).Output()
	if lines := strings.Fields(string(output)); err != nil || len(lines) != 2 || lines[0] != lines[1] {
		t.Errorf("firejail in firejail: %q, %v", output, err)
	}
}
