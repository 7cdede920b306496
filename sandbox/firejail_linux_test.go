package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFirejailWalls(t *testing.T) {
	path, err := usable(Firejail)
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
	path, err := usable(Firejail)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	y := newYard(t, path, firejailArgs, os.Getuid())
	y.policy.Tmp = y.in("tmp")
	if err := os.Mkdir(y.policy.Tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := y.run(t, "echo kept >../tmp/x; ls -A .."); got != "r\ntmp\nto-r\nw\n" {
		t.Errorf("%q", got)
	}
	if got := y.run(t, "cat ../tmp/x"); got != "kept\n" {
		t.Errorf("the next command finds %q", got)
	}
}

func TestFirejailPassesDescriptors(t *testing.T) {
	path, err := usable(Firejail)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	passesDescriptors(t, newYard(t, path, firejailArgs, os.Getuid()))
}

// TestFirejailStrangePaths holds that what is not refused arrives as it is.
func TestFirejailStrangePaths(t *testing.T) {
	path, err := usable(Firejail)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	unfit := func(name string) bool { return fitsFirejail(name) != nil }
	newYard(t, path, firejailArgs, os.Getuid()).strange(t, slices.DeleteFunc(slices.Clone(strangeNames), unfit))
}

func TestFitsFirejail(t *testing.T) {
	fit := []string{" a b ", "-rf", "--", "a:b", "a=b", "a'b", "$HOME", "~", "~root", "a\xffb", "aéb", "#a", "a|b", "(a)", "a`b", "@a"}
	for _, name := range strangeNames {
		err := fitsFirejail("/w/" + name)
		if (err == nil) != slices.Contains(fit, name) {
			t.Errorf("%q: %v", name, err)
		}
		if wall, ok := errors.AsType[*WallError](err); err != nil && (!ok || wall.Hint() == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestFirejailOptions(t *testing.T) {
	dir := func(path string, a access) entry { return entry{Path: path, Access: a, Dir: true} }
	file := func(path string, a access) entry { return entry{Path: path, Access: a} }
	for name, c := range map[string]struct {
		root    bool
		entries []entry
		want    []string
	}{
		"nothing": {entries: nil, want: []string{"--private-tmp"}},
		"a home": {
			entries: []entry{dir("/home/u/.nvm", read), dir("/home/u/w", write), dir("/usr", read)},
			want:    []string{"--private-tmp", "--whitelist=/home/u/.nvm", "--read-only=/home/u/.nvm", "--whitelist=/home/u/w"},
		},
		"the home itself": {
			entries: []entry{dir("/home/u", write), dir("/home/u/.ssh", hide), dir("/home/u/x", read)},
			want:    []string{"--private-tmp", "--read-only=/home/u/x", "--blacklist=/home/u/.ssh"},
		},
		"a top-level folder":       {entries: []entry{dir("/work", write), dir("/opt/go", read)}, want: []string{"--private-tmp", "--whitelist=/opt/go", "--read-only=/opt/go"}},
		"below /tmp":               {entries: []entry{dir("/tmp/w", write)}, want: []string{"--whitelist=/tmp/w"}},
		"/tmp itself":              {entries: []entry{dir("/tmp", write)}, want: []string{}},
		"the whole machine":        {entries: []entry{dir("/", read), dir("/srv/w", write)}, want: []string{"--read-write=/srv/w"}},
		"where firejail is strict": {root: true, entries: []entry{dir("/etc/w", write)}, want: []string{"--private-tmp", "--read-write=/etc/w"}},
		"held in place": {
			entries: []entry{dir("/srv/w", write), file("/srv/w/.git/config", read)},
			want:    []string{"--private-tmp", "--whitelist=/srv/w", "--read-only=/srv/w/.git", "--read-write=/srv/w/.git", "--read-only=/srv/w/.git/config"},
		},
		"writable in read-only": {
			entries: []entry{dir("/srv/r", read), dir("/srv/r/w", write)},
			want:    []string{"--private-tmp", "--whitelist=/srv/r", "--read-only=/srv/r", "--read-write=/srv/r/w"},
		},
		"hidden, where it is seen and where it is not": {
			entries: []entry{dir("/srv/w", write), file("/srv/w/.env", hide), dir("/srv/x", hide), dir("/srv/absent", hide), dir("/root/.ssh", hide), {Path: "/srv/w/y", Access: hide, Absent: true}},
			want:    []string{"--private-tmp", "--whitelist=/srv/w", "--blacklist=/srv/w/.env", "--blacklist=/root/.ssh"},
		},
		"a link":             {entries: []entry{{Path: "/srv/l", Access: read, Link: "/srv/w"}, dir("/srv/w", write)}, want: []string{"--private-tmp", "--whitelist=/srv/l", "--whitelist=/srv/w"}},
		"another's, as root": {root: true, entries: []entry{dir("/home/v/w", write)}, want: []string{"--private-tmp", "--whitelist=/home/v/w"}},
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
	dir := func(path string, a access) entry { return entry{Path: path, Access: a, Dir: true} }
	for name, entries := range map[string][]entry{
		"another's home":        {dir("/home/v/w", write)},
		"shown in hidden":       {dir("/srv/w", write), dir("/srv/w/h", hide), dir("/srv/w/h/r", read)},
		"a pattern":             {dir("/srv/*", write)},
		"a pattern that hides":  {dir("/srv/w", write), dir("/srv/w/[a]", hide)},
		"a comma":               {dir("/srv/a,b", read)},
		"what reads as a macro": {dir("/srv/${HOME}", write)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := jail{home: "/home/u", entries: entries, mounts: mounts(entries)}.options()
			if wall, ok := errors.AsType[*WallError](err); !ok || wall.Wall != Firejail || wall.Next == "" {
				t.Error(got, err)
			}
		})
	}
}

func TestFirejailArgs(t *testing.T) {
	tmp := t.TempDir()
	for _, open := range []bool{false, true} {
		got, err := firejailArgs("/b/firejail", Policy{Net: open, Tmp: tmp}, nil, []string{"/keeper", "--", "-x"})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[:1+len(firejailSystem)], append([]string{"/b/firejail"}, firejailSystem...)) {
			t.Error(got)
		}
		if slices.Contains(got, "--net=none") == open {
			t.Errorf("network %v: %q", open, got)
		}
		if !slices.Contains(got, "--whitelist="+tmp) && holds("/tmp", tmp) {
			t.Errorf("%q does not show %s", got, tmp)
		}
		if end := got[len(got)-4:]; !slices.Equal(end, []string{"--", "/keeper", "--", "-x"}) {
			t.Error(end)
		}
	}
}

func TestFirejailArgsTooMany(t *testing.T) {
	entries := []entry{{Path: "/w", Access: write, Dir: true}}
	for i := range 127 - len(firejailSystem) - 5 {
		entries = append(entries, entry{Path: fmt.Sprintf("/w/%d", i), Access: hide})
	}
	args, err := firejailArgs("firejail", Policy{}, entries, []string{"true"})
	if err != nil || len(args) != 127 {
		t.Fatalf("%d arguments: %v", len(args), err)
	}
	_, err = firejailArgs("firejail", Policy{}, entries, []string{"echo", "too many"})
	if wall, ok := errors.AsType[*WallError](err); !ok || wall.Hint() == "" {
		t.Error(err)
	}
}

func TestFindFirejail(t *testing.T) {
	for name, c := range map[string]struct{ script, reason, next string }{
		"absent":                {"", "there is no firejail", "apt install firejail"},
		"one that fails":        {"#!/bin/sh\necho 'Error: not allowed' >&2\nexit 1\n", "Error: not allowed", "use the wall"},
		"one that says nothing": {"#!/bin/sh\nexit 1\n", "firejail says: nothing", "use the wall"},
		"one without walls":     {"#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n", "would not be walled in", "use the wall"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			if c.script != "" {
				script(t, filepath.Join(dir, "firejail"), c.script, 0o755)
				t.Setenv("PATH", dir+":/usr/bin:/bin")
			}
			_, err := usable(Firejail)
			wall, ok := errors.AsType[*WallError](err)
			if !ok || !strings.Contains(wall.Reason, c.reason) || !strings.HasPrefix(wall.Next, c.next) || (c.script == "") != errors.Is(err, exec.ErrNotFound) {
				t.Errorf("%v, %+v", err, wall)
			}
		})
	}
}

// TestFirejailInFirejail holds the reason why the keeper looks at its namespaces
// to the real thing.
func TestFirejailInFirejail(t *testing.T) {
	path, err := usable(Firejail)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	inner, err := firejailArgs(path, Policy{}, nil, []string{"readlink", "/proc/self/ns/mnt"})
	if err != nil {
		t.Fatal(err)
	}
	outer := append([]string{path, "--noprofile", "--quiet", "--", "sh", "-c", `readlink /proc/self/ns/mnt; exec "$@"`, "sh"}, inner...)
	output, err := exec.Command(outer[0], outer[1:]...).Output()
	if lines := strings.Fields(string(output)); err != nil || len(lines) != 2 || lines[0] != lines[1] {
		t.Errorf("firejail in firejail: %q, %v", output, err)
	}
}
