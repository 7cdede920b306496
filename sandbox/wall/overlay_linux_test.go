package wall

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/sandbox"
)

// overlaid are a cache of the user and a run's home, with an overlay of the cache at
// its own path and one in the home.
type overlaid struct{ base, cache, home, point string }

func newOverlaid(t *testing.T) overlaid {
	t.Helper()
	base := must(filepath.EvalSymlinks(t.TempDir()))
	o := overlaid{base: base, cache: base + "/cache", home: base + "/run/home", point: base + "/run/home/.tool/cache"}
	for _, dir := range []string{o.cache + "/dir", o.point} {
		must(0, os.MkdirAll(dir, 0o755))
	}
	for _, name := range []string{"a", "dir/b"} {
		must(0, os.WriteFile(filepath.Join(o.cache, name), []byte("user\n"), 0o444))
	}
	return o
}

func (o overlaid) policy(wall sandbox.Wall) sandbox.Policy {
	p := system(wall)
	p.Write, p.Read, p.Layers = []string{o.home}, append(p.Read, o.cache, o.cache+"/dir"), o.base+"/run/layers"
	p.Overlays = []sandbox.Overlay{
		{Path: o.cache, Lower: o.cache, Env: []string{"CACHE=" + o.cache}},
		{Path: o.point, Lower: o.cache},
		{Path: o.home, Lower: o.base + "/missing", Env: []string{"MISSING=1"}},
	}
	return p
}

// build returns walls that have the overlays, and skips the test if there are none
// here.
func (o overlaid) build(t *testing.T) *Walls {
	t.Helper()
	w, err := Build(context.Background(), o.policy(sandbox.Hidden))
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	t.Cleanup(w.Close)
	if env := strings.Join(w.Env(), " "); env != "CACHE="+o.cache {
		if env == "" {
			t.Skip("SKIPPED: this kernel mounts no overlays for users")
		}
		t.Fatalf("the variables are %q", env)
	}
	return w
}

// check fails unless the user's files are as they were.
func (o overlaid) check(t *testing.T) {
	t.Helper()
	for _, name := range []string{"a", "dir/b"} {
		path := filepath.Join(o.cache, name)
		text, err := os.ReadFile(path)
		if err != nil || string(text) != "user\n" || must(os.Stat(path)).Mode() != 0o444 {
			t.Errorf("%s was changed: %q, %v", name, text, err)
		}
	}
	if entries := must(os.ReadDir(o.cache)); len(entries) != 2 {
		t.Errorf("the cache contains %v", entries)
	}
}

// A command can change all of a cache, the next one finds that, and the user's files
// stay as they are. No command can take the overlay away from the next one.
func TestOverlay(t *testing.T) {
	o := newOverlaid(t)
	w := o.build(t)
	for _, c := range []struct{ script, stdout string }{
		{"cat a dir/b", "user\nuser\n"},
		{"chmod 600 a && echo run >a && rm dir/b && rmdir dir && mkdir dir && echo new >dir/c && mkdir read && chmod 555 read && ls", "a\ndir\nread\n"},
		{"cat a dir/*", "run\nnew\n"},
		{"cat ../run/home/.tool/cache/a; cd ../run/home && mv .tool x 2>&1; rm -rf .tool/cache 2>/dev/null; ls -A .tool", "user\nmv: cannot move '.tool' to 'x': Device or resource busy\ncache\n"},
		{"ls -A ../run/home/.tool/cache; cat a; ls ..", "run\ncache\nrun\n"},
	} {
		if r := behind(t, w, o.cache, c.script); string(r.Stdout) != c.stdout {
			t.Errorf("%s: %q, exit %d\n%s", c.script, r.Stdout, r.Exit, r.Stderr)
		}
	}
	o.check(t)
	must(0, os.Chmod(filepath.Join(layerOf(o.base+"/run/layers/0", o.cache), upperName, "read"), 0o700))
	must(0, os.RemoveAll(o.base+"/run"))
}

// Commands that run at the same time do not share what they write, because the kernel
// leaves undefined what happens if two overlays share an upper directory.
func TestOverlaysAtTheSameTime(t *testing.T) {
	o := newOverlaid(t)
	w := o.build(t)
	c := inside(o.cache, "chmod 600 a; echo server >a; echo ready; read line; cat a")
	in, end := io.Pipe()
	out, live := io.Pipe()
	c.Stdin, c.LiveOut = in, live
	server := must(w.Start(context.Background(), c))
	if line := must(bufio.NewReader(out).ReadString('\n')); line != "ready\n" {
		t.Fatalf("the server wrote %q", line)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if r := behind(t, w, o.cache, "cat a; chmod 600 a; echo second >a"); string(r.Stdout) != "user\n" {
		t.Errorf("a second command finds %q\n%s", r.Stdout, r.Stderr)
	}
	must(0, end.Close())
	if r := must(server.Wait()); string(r.Stdout) != "ready\nserver\n" {
		t.Errorf("the server finds %q\n%s", r.Stdout, r.Stderr)
	}
	if r := behind(t, w, o.cache, "cat a"); string(r.Stdout) != "server\n" {
		t.Errorf("the next command finds %q", r.Stdout)
	}
	o.check(t)
}

// Where overlays cannot be mounted, and behind other walls, the caches are as the
// policy lists them.
func TestWithoutOverlays(t *testing.T) {
	for _, wall := range []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Firejail, sandbox.Landlock} {
		t.Run(string(wall), func(t *testing.T) {
			o := newOverlaid(t)
			must(0, os.WriteFile(o.base+"/run/layers", nil, 0o600)) // in the way
			w, err := Build(context.Background(), o.policy(wall))
			if err != nil {
				t.Skip("SKIPPED: ", err)
			}
			defer w.Close()
			if env := w.Env(); env != nil {
				t.Errorf("the variables are %v", env)
			}
			if r := behind(t, w, o.cache, "cat a; rm -f a; echo run >new"); string(r.Stdout) != "user\n" || r.Exit == 0 {
				t.Errorf("%q, exit %d\n%s", r.Stdout, r.Exit, r.Stderr)
			}
			if r := behind(t, w, o.home, "echo run >.tool/cache/new"); r.Exit != 0 {
				t.Errorf("exit %d\n%s", r.Exit, r.Stderr)
			}
			o.check(t)
		})
	}
}

// The files of another user cannot be changed in an overlay, so that there is none.
func TestOverlayOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can make files of another user")
	}
	o := newOverlaid(t)
	must(0, os.Chown(o.cache, 65534, 65534))
	w, err := Build(context.Background(), o.policy(sandbox.Hidden))
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	defer w.Close()
	if env := w.Env(); env != nil {
		t.Errorf("the variables are %v", env)
	}
}

func TestOverlayAsAnOrdinaryUser(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it is TestOverlay for another user")
	}
	asOrdinaryUser(t, "^(TestOverlay|TestOverlaysAtTheSameTime|TestWithoutOverlays)$")
}
