package denied

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/internal/crashtest"
	"hone/internal/listing"
	"hone/sandbox"
	"hone/workspace/secret"
)

// A failed command is explained by the walls only if they are the cause: what it
// missed exists without them.
func TestNotes(t *testing.T) {
	base := crashtest.Workspace(t, map[string]string{"tree/.env": "", "tree/x": "", "data/file": "", "shown/file": "", "home/.ssh/id_rsa": "", "tools/tool": "", "run/x": ""})
	at := func(name string) string { return filepath.Join(base, name) }
	if err := os.Chmod(at("tools/tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	policy := sandbox.Policy{Write: []string{at("tree"), at("run")}, Read: []string{"/usr", "/bin", "/lib", at("shown")}}
	c := Command{Policy: policy, Workspace: at("tree"), Root: at("tree"), Home: at("run"), Dir: at("tree"), Secrets: []listing.SecretFile{{Path: at("tree/.env"), Why: "an environment file"}, {Path: at("tree/sub/key_test.go"), Why: "line 3 looks like a key"}, {Path: at("tree/own"), Why: secret.OwnKeyReason}}, Keys: []string{"OPENAI_API_KEY"},
		Env:     []string{"PATH=/usr/bin:/bin", "HOME=" + at("run")},
		Environ: []string{"PATH=/usr/bin:/bin:" + at("tools"), "HOME=" + at("home"), "DATABASE_URL=x", "DEPLOY_TO=x", "STAGE=x", "SSH_AUTH_SOCK=/x", "OPENAI_API_KEY=x", "EMPTY="}}
	for output, want := range map[string]string{
		// What the user opens.
		"cat: " + at("data/file") + ": No such file or directory":                  `path read = ["` + at("data/file") + `"]`,
		"cat: ../data/file: Permission denied":                                     `path read = ["` + at("data/file") + `"]`,
		"ls: cannot access '" + at("data") + "': No such file or directory":        `path read = ["` + at("data") + `"]`,
		"open " + at("data/file") + ": no such file or directory":                  `path read = ["` + at("data/file") + `"]`,
		"Error: ENOENT: no such file or directory, open '" + at("data/file") + "'": `path read = ["` + at("data/file") + `"]`,
		"touch: cannot touch '" + at("shown/new") + "': Read-only file system":     `path write = ["` + at("shown") + `"]`,
		"sh: 1: cannot create " + at("shown/file") + ": Permission denied":         `path write = ["` + at("shown/file") + `"]`,
		"mkdir " + at("data/new") + ": read-only file system":                      `path write = ["` + at("data") + `"]`,
		"build.sh: line 1: DATABASE_URL: unbound variable":                         `variable env = ["DATABASE_URL"]`,
		"error: set DATABASE_URL first":                                            `variable env = ["DATABASE_URL"]`,
		"using $DEPLOY_TO, after DATABASE_URL":                                     `variable env = ["DEPLOY_TO", "DATABASE_URL"]`,
		"the value of ${STAGE} is unknown":                                         `variable env = ["STAGE"]`,
		"please set STAGE":                                                         `variable env = ["STAGE"]`,
		"KeyError: 'DATABASE_URL'":                                                 `variable env = ["DATABASE_URL"]`,
		"panic: environment variable DATABASE_URL is not set":                      `variable env = ["DATABASE_URL"]`,
		"DATABASE_URL must be set":                                                 `variable env = ["DATABASE_URL"]`,
		"sh: 1: tool: not found":                                                   `program read = ["` + at("tools") + `"]`,
		"bash: line 1: tool: command not found":                                    `program read = ["` + at("tools") + `"]`,
		`exec: "tool": executable file not found in $PATH`:                         `program read = ["` + at("tools") + `"]`,
		"grep: .env: Permission denied":                                            `secret add send = [".env"] to [guard]`,
		"sub/key_test.go:1: cannot open file":                                      `secret sub/key_test.go (line 3 looks like a key), hidden`,
		"key_test.go: Permission denied":                                           `secret add send = ["sub/key_test.go"]`,
		"EACCES: .env\n./sub/key_test.go: not found":                               `secret add send = [".env", "sub/key_test.go"]`,
		"open own: permission denied":                                              `secret own (it contains one of hone's own keys), hidden because it looks secret; hone sandbox -v`,
		"x.go:1: open " + at("tree/.env") + ": permission denied":                  `secret .env (an environment file), hidden because it looks secret; if that is wrong, add send = [".env"] to [guard] of .config/hone.toml, which also lets models read it; hone sandbox -v -- true lists 2 other hidden files`,
		// What walls have no part in.
		"sub/key_test.go:3: 1 is not 2":                                          "",
		"test.go: Permission denied":                                             "",
		"cat: " + at("data/missing") + ": No such file or directory":             "",
		"cat: /nowhere/at/all: No such file or directory":                        "",
		"cat: missing: No such file or directory":                                "",
		"cat: x: Permission denied":                                              "",
		"cat: " + at("shown/file") + ": No such file or directory":               "",
		"cat: " + at("run/file") + ": No such file or directory":                 "",
		"cat: " + at("home/.ssh/id_rsa") + ": No such file or directory":         "",
		"/usr/bin/env: 'x': No such file or directory":                           "",
		"sh: 1: cannot create /usr/share/gaps/none/x: No such file or directory": "",
		"touch: cannot touch '/gap': Read-only file system":                      "",
		"cat: /proc/1/environ: Permission denied":                                "",
		"the file " + at("data/file") + " is fine":                               "",
		"EMPTY: unbound variable":                                                "",
		"NOWHERE: unbound variable":                                              "",
		"HOME is not set":                                                        "",
		"OPENAI_API_KEY is not set":                                              "",
		"STAGE 2 of 3 failed":                                                    "",
		"MY_DATABASE_URL is not set":                                             "",
		"Could not open $SSH_AUTH_SOCK":                                          "",
		"sh: 1: no-such-tool: not found":                                         "",
		"sh: not found":                                                          "",
		"--- FAIL: TestX: not found":                                             "",
		"":                                                                       "",
	} {
		notes := c.Notes(output)
		_, part, _ := strings.Cut(want, " ")
		if want == "" && len(notes) > 0 || want != "" && (len(notes) != 1 || !strings.Contains(fmt.Sprint(notes), part)) {
			t.Errorf("%q: %q, want %q", output, notes, want)
		}
	}
}

// What a loop hides from a role in the user's own project stays hidden: to open it would end the separation (ruling A7).
func TestOtherRole(t *testing.T) {
	base := crashtest.Workspace(t, map[string]string{"project/tests/x": "", "project/src/main": "", "data/file": ""})
	at := func(name string) string { return filepath.Join(base, name) }
	c := Command{Policy: sandbox.Policy{Write: []string{at("project/tests")}}, Workspace: at("project"), Root: at("project/tests"), Dir: at("project/tests")}
	for output, want := range map[string]int{
		"ls: cannot access '../src': No such file or directory":          0,
		"cat: " + at("project/src/main") + ": No such file or directory": 0,
		"touch: cannot touch '../new': Read-only file system":            0,
		"cat: ../../data/file: No such file or directory":                1,
	} {
		if notes := c.Notes(output); len(notes) != want {
			t.Errorf("%q: %q, want %d notes", output, notes, want)
		}
	}
}
