package wall

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

// builder is bwrapArgs or firejailArgs.
type builder func(program string, p sandbox.Policy, entries []sandbox.Entry, keeper []string) ([]string, error)

// yard is a directory with paths that a wall shows and hides, and the policy for it.
type yard struct {
	dir    string
	policy sandbox.Policy
	build  builder
	path   string
	uid    int
}

// systemPaths returns the paths that a shell needs to run.
var systemPaths = []string{"/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"}

func newYard(t *testing.T, path string, build builder, uid int) yard {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := yard{dir: dir, build: build, path: path, uid: uid}
	y.policy = sandbox.Policy{
		Write: []string{y.in("w")},
		Read:  append([]string{y.in("w/.git/config"), y.in("w/sub/.git/hooks"), y.in("r"), y.in("absent"), y.in("to-r")}, systemPaths...),
		Hide:  []string{y.in("w/.env"), y.in("w/keys"), y.in("r/secret")},
	}
	for name, text := range map[string]string{
		"w/.git/config": "config\n", "w/sub/.git/hooks/pre": "hook\n", "w/sub/file": "file\n", "w/.env": "KEY=1\n", "w/keys/id": "key\n",
		"r/file": "read\n", "r/secret": "secret\n", "outside": "outside\n", "other/file": "other\n",
	} {
		y.write(t, name, text)
	}
	if err := os.Symlink("r", y.in("to-r")); err != nil {
		t.Fatal(err)
	}
	y.own(t)
	return y
}

func (y yard) in(name string) string { return filepath.Join(y.dir, name) }

func (y yard) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(y.in(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(y.in(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// own gives the yard to its user.
func (y yard) own(t *testing.T) {
	t.Helper()
	if y.uid == os.Getuid() {
		return
	}
	if out, err := exec.Command("chown", "-R", fmt.Sprint(y.uid), filepath.Dir(y.dir)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// args returns the command line that runs a script in w, whose $1 is the yard.
func (y yard) args(t *testing.T, script string) []string {
	t.Helper()
	entries, err := y.policy.Entries()
	if err != nil {
		t.Fatal(err)
	}
	args, err := y.build(y.path, y.policy, entries, []string{"/bin/sh", "-c", `cd "$1/w" && ` + script, "sh", y.dir})
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// run returns what a script prints on both streams.
func (y yard) run(t *testing.T, script string, fds ...*os.File) string {
	t.Helper()
	var out bytes.Buffer
	args := y.args(t, script)
	cmd := &exec.Cmd{Path: args[0], Args: args, Dir: "/", Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, Stdout: &out, Stderr: &out, ExtraFiles: fds}
	if y.uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(y.uid), Gid: uint32(y.uid)}}
	}
	if err := cmd.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			t.Fatal(err)
		}
		fmt.Fprintln(&out, err)
	}
	return out.String()
}

// attempt is a script and what its output must be or contain.
type attempt struct{ script, prints, says string }

func (y yard) attempt(t *testing.T, attempts map[string]attempt) {
	t.Helper()
	for name, a := range attempts {
		t.Run(name, func(t *testing.T) {
			got := y.run(t, a.script)
			if a.says == "" && got != a.prints || !strings.Contains(got, a.says) {
				t.Errorf("%s\nprinted %q, and should %q", a.script, got, a.prints+a.says)
			}
		})
	}
}

// everywhere returns the attempts whose result is the same behind both walls.
func everywhere() map[string]attempt {
	return map[string]attempt{
		"read and write":             {script: "cat sub/file && echo new >sub/new && cat sub/new && rm sub/new && mv sub/file f && mv f sub/file", prints: "file\nnew\n"},
		"read what is read-only":     {script: "cat ../r/file ../to-r/file", prints: "read\nread\n"},
		"write what is read-only":    {script: "echo no >../r/file", says: "Read-only file system"},
		"see beside":                 {script: "ls -A ..", prints: "r\nto-r\nw\n"},
		"read beside":                {script: "cat ../outside", says: "No such file"},
		"write a protected file":     {script: "echo no >.git/config", says: "Read-only file system"},
		"replace a protected file":   {script: "echo no >.git/new; mv -f .git/new .git/config", says: "busy"},
		"remove a protected file":    {script: "rm -f .git/config", says: "busy"},
		"write beside it":            {script: "echo yes >.git/HEAD && cat .git/HEAD", prints: "yes\n"},
		"move its folder away":       {script: "mv .git x", says: "busy"},
		"move a folder further out":  {script: "mv sub x", says: "busy"},
		"write in a protected one":   {script: "echo no >sub/.git/hooks/new", says: "Read-only file system"},
		"read a hidden file":         {script: "cat ../r/secret 2>/dev/null; echo end", prints: "end\n"},
		"read what is hidden there":  {script: "cat .env 2>/dev/null; echo end", prints: "end\n"},
		"list a hidden folder":       {script: "ls -A keys; cat keys/id", says: "cat: keys/id: "},
		"write in a hidden folder":   {script: "echo no >keys/new || echo refused", says: "refused"},
		"move a hidden file's place": {script: "mv .env x", says: "busy"},
		"have an own /tmp":           {script: "[ $(ls -A /tmp | wc -l) -le 1 ] && echo t >/tmp/t && cat /tmp/t", prints: "t\n"},
		"have capabilities":          {script: "grep -E 'Cap(Prm|Eff|Bnd|Amb)' /proc/self/status | cut -f2 | sort -u", prints: "0000000000000000\n"},
		"have no_new_privs":          {script: "grep NoNewPrivs /proc/self/status", prints: "NoNewPrivs:\t1\n"},
		"write a setting":            {script: "cat /proc/sys/kernel/core_pattern >/dev/null && echo x >/proc/sys/kernel/core_pattern || echo refused", says: "refused"},
		"reach a network":            {script: "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '", prints: "lo\n"},
		"use devices":                {script: "head -c 1 /dev/zero | wc -c; echo >/dev/null && echo >/dev/shm/x && cat /dev/shm/x", prints: "1\n\n"},
	}
}

func TestBwrapWalls(t *testing.T) {
	path, err := usable(sandbox.Bubblewrap)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	for _, uid := range uids() {
		t.Run(fmt.Sprintf("uid %d", uid), func(t *testing.T) {
			y := newYard(t, path, bwrapArgs, uid)
			attempts := everywhere()
			attempts["read another hidden file"] = attempt{script: "cat .env ../r/secret 2>&1 | grep -c 'Permission denied'", prints: "2\n"}
			attempts["list a hidden folder"] = attempt{script: "ls -A keys", prints: ""}
			attempts["write anywhere else"] = attempt{script: "for d in / /dev; do echo no >$d/x || echo refused; done 2>/dev/null", prints: "refused\nrefused\n"}
			attempts["see the machine"] = attempt{script: "ls -d /boot /media /opt /sys /etc/passwd 2>/dev/null; echo end", prints: "end\n"}
			attempts["see processes"] = attempt{script: "echo $$; echo /proc/[0-9]*", prints: "1\n/proc/1\n"}
			attempts["remove a mount"] = attempt{script: "umount .env 2>/dev/null || echo refused", prints: "refused\n"}
			y.attempt(t, attempts)
			if text, err := os.ReadFile(y.in("w/.git/config")); err != nil || string(text) != "config\n" {
				t.Errorf("outside, the protected file is %q, %v", text, err)
			}
		})
	}
}

// uids returns this user, and also an ordinary user if this one is root.
func uids() []int {
	if os.Getuid() == 0 {
		return []int{0, 65534}
	}
	return []int{os.Getuid()}
}

func TestBwrapTmp(t *testing.T) {
	path, err := usable(sandbox.Bubblewrap)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	t.Setenv("TMPDIR", "/var/tmp") // below /tmp there would be entries
	y := newYard(t, path, bwrapArgs, os.Getuid())
	y.policy.Tmp = y.in("tmp")
	if err := os.Mkdir(y.policy.Tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := y.run(t, "echo kept >/tmp/x; cat sub/file"); got != "file\n" {
		t.Errorf("%q", got)
	}
	if got := y.run(t, "cat /tmp/x"); got != "kept\n" {
		t.Errorf("the next command finds %q", got)
	}
	if text, _ := os.ReadFile(filepath.Join(y.policy.Tmp, "x")); string(text) != "kept\n" {
		t.Errorf("outside there is %q", text)
	}
}

// A command could have left a symlink in the directory, so that nothing is mounted in it.
func TestBwrapTmpWithEntries(t *testing.T) {
	for path, shown := range map[string]bool{"/tmp/a/b": false, "/tmp/a": false, "/a/b": true, "/tmp": true} {
		args, err := bwrapArgs("bwrap", sandbox.Policy{Tmp: "/own"}, []sandbox.Entry{{Path: path, Access: sandbox.AccessWrite, Dir: true}}, []string{"true"})
		if err != nil || slices.Contains(args, "/own") != shown {
			t.Errorf("%s: %v, %v", path, args, err)
		}
	}
}

// strangeNames returns names that a command line could misread.
var strangeNames = []string{
	" a b ", "-rf", "--", "a,b", "a:b", "a=b", `a"b`, "a'b", `a\b`, "a*b", "a?b", "a[bc]", "{a,b}", "$HOME", "${HOME}", "~", "~root",
	"a\nb", "a\tb", "a\x01b", "a\xffb", "aéb", "a%sb", "a..b", "#a", "!a", "a;b", "a&b", "a|b", "a<b>", "(a)", "a`b", "a^b", "@a", "a\x7fb",
}

func TestBwrapStrangePaths(t *testing.T) {
	path, err := usable(sandbox.Bubblewrap)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	newYard(t, path, bwrapArgs, os.Getuid()).strange(t, strangeNames)
}

// strange returns a yard with strangely named directories, each with a protected and
// a hidden file.
func (y yard) strange(t *testing.T, names []string) {
	t.Helper()
	var want strings.Builder
	for i, name := range names {
		dir := fmt.Sprintf("strange%02d/%s", i, name)
		y.write(t, dir+"/p/"+name, "protected\n")
		y.write(t, dir+"/"+name, "hidden\n")
		y.policy.Write = append(y.policy.Write, y.in(dir))
		y.policy.Read = append(y.policy.Read, y.in(dir+"/p/"+name))
		y.policy.Hide = append(y.policy.Hide, y.in(dir+"/"+name))
		fmt.Fprintf(&want, "%02d: new protected refused\n", i)
	}
	got := y.run(t, `for d in ../strange*; do cd "$1/w" && cd "$d"/* && echo new >new || exit
echo ${d#../strange}: $(
	cat new p/*
	for f in p/*; do echo no >"$f" || echo refused; done 2>/dev/null
	for f in ./*; do [ "$f" = ./new ] || [ "$f" = ./p ] || cat "$f"; done 2>/dev/null
); done`)
	if diff := cmp.Diff(want.String(), got); diff != "" {
		t.Errorf("%q\n%s", names, diff)
	}
}

func TestBwrapPassesDescriptors(t *testing.T) {
	path, err := usable(sandbox.Bubblewrap)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	passesDescriptors(t, newYard(t, path, bwrapArgs, os.Getuid()))
}

// passesDescriptors starts a program that is not shown, from a descriptor.
func passesDescriptors(t *testing.T, y yard) {
	t.Helper()
	echo, err := os.Open("/bin/echo")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	if got := y.run(t, `exec /proc/self/fd/5 "a  b" '*'`, echo, echo, echo); got != "a  b *\n" {
		t.Errorf("%q", got)
	}
}

func TestBwrapArgs(t *testing.T) {
	before := []string{"/b/bwrap", "--unshare-all"}
	middle := []string{"--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--chdir", "/"}
	system := func(tmp ...string) []string {
		args := []string{"--proc", "/proc"}
		for _, path := range secretProc() {
			args = append(args, "--ro-bind", "/dev/null", path)
		}
		return slices.Concat(args, []string{"--dev", "/dev", "--tmpfs", "/dev/shm"}, tmp)
	}
	dir := func(path string, a sandbox.Access) sandbox.Entry {
		return sandbox.Entry{Path: path, Access: a, Dir: true}
	}
	for name, c := range map[string]struct {
		policy  sandbox.Policy
		entries []sandbox.Entry
		want    [][]string
	}{
		"nothing": {sandbox.Policy{}, nil, [][]string{before, middle, system("--tmpfs", "/tmp"), {"--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro", "/"}}},
		"a network, and a folder for /tmp": {sandbox.Policy{Net: true, Tmp: "/t"}, nil,
			[][]string{before, {"--share-net"}, middle, system("--bind", "/t", "/tmp"), {"--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro", "/"}}},
		"of each kind": {sandbox.Policy{}, []sandbox.Entry{dir("/w", sandbox.AccessWrite), {Path: "/w/a/x", Access: sandbox.AccessRead}, {Path: "/w/.env", Access: sandbox.AccessNone}, dir("/w/keys", sandbox.AccessNone), {Path: "/bin", Access: sandbox.AccessRead, Link: "/usr/bin"}, {Path: "/dev/kvm", Access: sandbox.AccessWrite}},
			[][]string{before, middle, system("--tmpfs", "/tmp"),
				{"--symlink", "/usr/bin", "/bin", "--dev-bind", "/dev/kvm", "/dev/kvm", "--bind", "/w", "/w", "--ro-bind", "/dev/null", "/w/.env"},
				{"--bind", "/w/a", "/w/a", "--ro-bind", "/w/a/x", "/w/a/x", "--tmpfs", "/w/keys"},
				{"--remount-ro", "/w/keys", "--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro", "/"}}},
		"the whole machine": {sandbox.Policy{}, []sandbox.Entry{dir("/", sandbox.AccessRead), dir("/w", sandbox.AccessWrite)},
			[][]string{before, middle, {"--ro-bind", "/", "/"}, system("--tmpfs", "/tmp"), {"--bind", "/w", "/w", "--remount-ro", "/dev", "--remount-ro", "/proc"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, part := range append(c.want, []string{"--", "/keeper", "--", "-x"}) {
				want = append(want, part...)
			}
			got, err := bwrapArgs("/b/bwrap", c.policy, c.entries, []string{"/keeper", "--", "-x"})
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func TestTooManyArguments(t *testing.T) {
	for _, wall := range []sandbox.Wall{sandbox.Bubblewrap, sandbox.Firejail} {
		if _, err := exec.LookPath(string(wall)); err != nil {
			t.Skip("SKIPPED: ", err)
		}
		s := spec{Policy: sandbox.Policy{Wall: wall}, Entries: []sandbox.Entry{{Path: "/w", Access: sandbox.AccessWrite, Dir: true}}}
		if _, err := s.wrapper(); err != nil {
			t.Error(err)
		}
		for i := range 3000 {
			s.Entries = append(s.Entries, sandbox.Entry{Path: fmt.Sprintf("/w/%d", i), Access: sandbox.AccessNone})
		}
		_, err := s.wrapper()
		if unfit, ok := errors.AsType[*sandbox.WallError](err); !ok || unfit.Hint() == "" {
			t.Error(err)
		}
	}
}

func TestFindBwrapAbsent(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := usable(sandbox.Bubblewrap)
	wall, ok := errors.AsType[*sandbox.WallError](err)
	if !ok || wall.Wall != sandbox.Bubblewrap || !strings.HasPrefix(wall.Next, "apt install bubblewrap") || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v, %+v", err, wall)
	}
}

func TestFindBwrapThatFails(t *testing.T) {
	dir := t.TempDir()
	runtest.Script(t, filepath.Join(dir, "bwrap"), "#!/bin/sh\necho 'no permissions here' >&2\nexit 1\n", 0o755)
	t.Setenv("PATH", dir)
	_, err := usable(sandbox.Bubblewrap)
	wall, ok := errors.AsType[*sandbox.WallError](err)
	if !ok || !strings.Contains(wall.Error(), "no permissions here") || wall.Next == "" {
		t.Errorf("%v, %+v", err, wall)
	}
}
