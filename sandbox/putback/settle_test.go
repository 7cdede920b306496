//go:build linux

package putback

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hone/sandbox"
)

// A process can be killed at any point of a restoration: the next one finishes it.
func TestSettleInterruptedRestoration(t *testing.T) {
	script := "echo evil >.git/config; rm -r .git/hooks/deep; ln -sfn /etc .git/hooks/link; echo evil >task.toml; mv ro src/ro; echo x >.git/hooks/new"
	points := map[string]func(r *restorer, path string) error{
		"moved away": func(r *restorer, path string) error {
			now, err := look(r.root, path, 0)
			if err == nil && now.Exists {
				err = r.moveAside(path, now)
			}
			return err
		},
		"half written": func(r *restorer, path string) error {
			it := *r.Found[path]
			it.Data, it.Mode = it.Data[:len(it.Data)/2], it.Mode&^0o777|0o600
			return r.restoreAt(path, &it)
		},
		"restored": func(r *restorer, path string) error { return r.restoreAt(path, r.Found[path]) },
	}
	paths := []string{".git/config", ".git/hooks/deep", ".git/hooks/link", "ro", "task.toml"}
	for _, last := range paths {
		for name, interrupted := range points {
			if name == "half written" && last == "task.toml" {
				continue // it was absent
			}
			t.Run(last+"/"+name, func(t *testing.T) {
				f := newFixture(t)
				before := f.state(true)
				f.killed(func() {
					f.run(script)
					for _, path := range paths {
						r := f.restorer(path)
						if path == last {
							f.must(interrupted(r, path))
							break
						}
						f.must(r.restoreAt(path, r.Found[path]))
					}
				})
				_, err := Recover(f.aside, f.dir)
				f.must(err)
				f.want("protected", f.state(true), before)
				if left := f.records(); len(left) > 0 {
					t.Errorf("left in aside: %v", left)
				}
			})
		}
	}
}

// restorer returns a restorer of the entry around a path, from the only record.
func (f *fixture) restorer(path string) *restorer {
	f.Helper()
	found, err := readRecord(f.records()[0])
	f.must(err)
	entries := found.Entries
	i := slices.IndexFunc(entries, func(e *entry) bool { return sandbox.Within(e.Path, path) })
	r := &restorer{entry: entries[i], folder: filepath.Join(f.aside, "left-"+strconv.Itoa(i))}
	r.root, err = os.OpenRoot(f.dir)
	f.must(err)
	f.Cleanup(func() { r.root.Close() })
	return r
}

// Between two commands nothing is owed: what changes then are the user's changes.
func TestSettleIdle(t *testing.T) {
	f := newFixture(t)
	f.around(f.guard(), "")
	f.run("echo user >.git/config")
	f.must(os.WriteFile(filepath.Join(f.aside, recordPrefix+"123"+newEnding), nil, 0o600)) // killed before it was renamed
	before := f.state(true)
	if restored, err := Recover(f.aside, f.dir); err != nil || restored != nil {
		t.Errorf("%v, %v", restored, err)
	}
	f.want("protected", f.state(true), before)
	if left := f.records(); len(left) > 0 {
		t.Errorf("left in aside: %v", left)
	}
}

// An inspection that could not be recorded is not taken for the recorded one.
func TestSettleAfterFailedRecord(t *testing.T) {
	f := newFixture(t)
	g := f.guard()
	f.around(g, "")
	f.run("echo user >.git/config")
	before := f.state(true)
	f.run("mv ../aside ../aside2; : >../aside")
	if g.enter() == nil {
		t.Error("it was recorded")
	}
	f.run("rm ../aside; mv ../aside2 ../aside")
	f.must(g.enter())
	f.run("echo evil >.git/config")
	g.release()
	_, err := Recover(f.aside, f.dir)
	f.must(err)
	f.want("protected", f.state(true), before)
}

// A record that cannot be read or restored stays, and is named.
func TestSettleDamaged(t *testing.T) {
	f := newFixture(t)
	f.killed(func() { f.run("echo evil >.git/config") })
	path := f.records()[0]
	good, err := os.ReadFile(path)
	f.must(err)
	before := f.state(true)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	wantError := func(what, text string) {
		t.Helper()
		restored, err := Recover(f.aside, f.dir)
		isRestored := slices.ContainsFunc(restored, func(r sandbox.Restored) bool { return r.NotRestored == "" })
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), text) || isRestored {
			t.Errorf("%s: %v, %v", what, restored, err)
		}
	}
	for name, data := range map[string][]byte{
		"empty": nil, "head": good[:10], "cut": good[:len(good)-1], "longer": append(bytes.Clone(good), 0), "flipped": flipped,
		"other version": bytes.Replace(good, []byte(" 2 "), []byte(" 3 "), 1), "garbage": []byte("\x00\xff{}"),
	} {
		f.must(os.WriteFile(path, data, 0o600))
		wantError(name, "damaged")
		if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, data) {
			t.Errorf("%s: it was changed: %v", name, err)
		}
	}
	f.want("protected", f.state(true), before)
	f.must(os.WriteFile(path, good, 0o600))
	f.run("mv ../tree ../tree2")
	wantError("without its directory", f.dir)
	if _, err := Recover(f.aside, t.TempDir()); err != nil {
		t.Errorf("in another tree: %v", err)
	}
	f.must(os.Mkdir(f.dir, 0o755))
	wantError("with another directory", "not the same directory")
	f.must(os.Remove(f.dir))
	f.must(os.Rename(f.dir+"2", f.dir))
	if restored, err := Recover(f.aside, t.TempDir()); err != nil || restored != nil {
		t.Errorf("in another tree: %v, %v", restored, err)
	}
	f.run("ln -s tree ../link")
	restored, err := Recover(f.aside, filepath.Join(f.dir, "../link"))
	f.must(err)
	f.wantTold(f.restoredPaths(restored), ".git/config kept")
}

// A process that is killed during a command leaves what the next one needs.
func TestSettleAfterKill(t *testing.T) {
	const variable = "HONE_TEST_KILLED_IN"
	if dir := os.Getenv(variable); dir != "" {
		f := fixtureIn(t, dir)
		f.guard().Around(func() (sandbox.Result, error) {
			f.run("echo evil >.git/config")
			f.must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
			select {}
		})
	}
	f := newFixture(t)
	before := f.state(true)
	cmd := exec.Command(os.Args[0], "-test.run=^TestSettleAfterKill$")
	cmd.Env = append(os.Environ(), variable+"="+filepath.Dir(f.dir))
	if err := cmd.Run(); err == nil {
		t.Fatal("it was not killed")
	}
	restored, err := Recover(f.aside, f.dir)
	f.must(err)
	f.wantTold(f.restoredPaths(restored), ".git/config kept")
	f.want("protected", f.state(true), before)
}
