package main

import (
	"bytes"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hone/internal/crashtest"
	"hone/model/modeltest"
)

// scene is a user's home with projects, and the rest of a machine.
type scene struct {
	dir          string
	token        string            // in the names of shared resources
	blobs        map[string]string // of a file in each repository's history
	port         string            // of the project's server
	machinePort  int               // of another server on this machine
	providerPort string
	provider     *modeltest.Server
}

const boundsKey = "canary-key-5f1c9d7e"

func (s *scene) at(path string) string { return filepath.Join(s.dir, filepath.FromSlash(path)) }

// setScene creates everything that the attempts try to reach.
func setScene(t *testing.T, agents bool) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{dir: dir, token: "hone-bounds-" + filepath.Base(filepath.Dir(dir)) + filepath.Base(dir), blobs: map[string]string{}}
	t.Cleanup(s.clear)
	s.provider = modeltest.NewServer(t)
	s.providerPort = s.provider.URL[strings.LastIndexByte(s.provider.URL, ':')+1:]
	s.machinePort = newListener(t, "tcp", "127.0.0.1:0")
	s.port = crashtest.FreePort(t)
	s.write(t, map[string]string{
		"home/.ssh/id_ed25519": "canary-ssh", "home/.gemini/oauth_creds.json": "canary-gemini", "home/.profile": "# canary-profile\n",
		"second/Makefile": "canary-second", "project/Makefile": "canary-makefile\n", "project/.env": "TOKEN=canary-env\n",
		"project/project.md": "A service.\n", "project/specs/phase1.md": "## Phase 1\n\n### Contracts\nGET /canary → 200\n",
		"project/specs/phase2.md":    "## Phase 2: canary-next\n\n### Contracts\nGET /next → 200\n",
		"project/prompts/builder.md": "You build. canary-prompt-builder\n", "project/prompts/verifier.md": "You verify. canary-prompt-verifier\n",
		"project/abl.config.sh":     strings.NewReplacer("PORT", s.port, "TOKEN", s.token).Replace(testFile(t, "phase-bounds.abl.config.sh")),
		"project/.config/hone.toml": "# canary-toml\n",
	})
	if agents {
		s.write(t, map[string]string{"project/.config/hone.toml": "# canary-toml\n[commands.prober]\nargv = [\"bash\", \"agent.sh\"]\n" +
			"wire = \"openai\"\nbase-url-env = \"OPENAI_BASE_URL\"\nkey-env = \"OPENAI_API_KEY\"\nmodel = \"m\"\nbase-url = \"" + s.provider.URL + "/v1\"\n"})
	}
	trustAll(t, s.at("project"))
	gitIn(t, s.at("project"), "init", "-q", "-b", "main")
	gitIn(t, s.at("project"), "add", "-f", "Makefile", "specs", "prompts", ".env")
	gitIn(t, s.at("project"), "commit", "-q", "-m", "all")
	for _, repo := range []string{"src", "tests"} {
		s.repository(t, repo)
	}
	newListener(t, "unix", "\x00"+s.token)
	newListener(t, "unix", s.at("second/socket"))
	return s
}

// clear removes what attempts without walls left in places where all processes
// can write.
func (s *scene) clear() {
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		left, _ := filepath.Glob(dir + "/" + s.token + "-*")
		for _, path := range left {
			os.Remove(path)
		}
	}
}

// repository creates src or tests with the attempts in it, and with a file that
// is only in its history.
func (s *scene) repository(t *testing.T, repo string) {
	at := "project/" + repo + "/"
	s.write(t, map[string]string{at + "main.txt": "canary-" + repo + "\n", at + "old.txt": "canary-history-" + repo + "\n"})
	gitIn(t, s.at(at), "init", "-q", "-b", "main")
	gitIn(t, s.at(at), "add", "-A")
	gitIn(t, s.at(at), "commit", "-q", "-m", "old")
	s.blobs[repo] = strings.TrimSpace(gitIn(t, s.at(at), "rev-parse", "HEAD:old.txt"))
	gitIn(t, s.at(at), "rm", "-q", "old.txt")
	gitIn(t, s.at(at), "commit", "-q", "-m", "new")
}

// arm writes the programs that make the attempts to both directories, after
// everything that they look for exists.
func (s *scene) arm(t *testing.T) {
	t.Helper()
	text := s.probe(escapes(s))
	s.write(t, map[string]string{
		"project/src/probe.sh": text, "project/tests/probe.sh": text,
		"project/src/server.py":  testFile(t, "phase-bounds.server.py"),
		"project/src/agent.sh":   "bash probe.sh agent-builder builder src tests .. > agent-builder.tried; cat agent-builder.tried\n",
		"project/tests/agent.sh": "who=agent-writer; [ -e $who.tried ] && who=agent-verifier\nbash probe.sh $who verifier tests src .. > $who.tried; cat $who.tried\n",
	})
}

func (s *scene) write(t *testing.T, files map[string]string) {
	t.Helper()
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(s.at(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.at(path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func testFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// newListener starts a listener on this machine that answers every connection
// with a canary.
func newListener(t *testing.T, network, address string) (port int) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("canary-machine\n"))
			c.Close()
		}
	}()
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		port = a.Port
	}
	return port
}

// gitIn runs git with a neutral identity.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// hone runs hone as the user does: with a key in its environment, and in a home
// with secrets.
func (s *scene) hone(t *testing.T, args ...string) (exit int, output string) {
	t.Helper()
	c := exec.Command("hone", args...)
	c.Dir = s.at("project")
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.at("home"), "OPENAI_API_KEY=" + boundsKey, "OTHER_TOKEN=canary-variable", "XDG_STATE_HOME=" + os.Getenv("XDG_STATE_HOME"),
		"OPENAI_BASE_URL=" + s.provider.URL + "/v1", "LANG=C", promptExit}
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

func (s *scene) checkNoCanary(t *testing.T, what string, text []byte, canary string) {
	t.Helper()
	if i := bytes.Index(text, []byte(canary)); i >= 0 {
		t.Errorf("%s holds %s: …%s…", what, canary, text[max(0, i-200):min(len(text), i+100)])
	}
}

func (s *scene) checkOnlyOwn(t *testing.T, what string, text []byte, own []string) {
	t.Helper()
	for _, at := range boundsCanary.FindAllIndex(text, -1) {
		if found := string(text[at[0]:at[1]]); !slices.Contains(own, found) {
			t.Errorf("%s holds %s: …%s…", what, found, text[max(0, at[0]-200):min(len(text), at[1]+50)])
			return
		}
	}
}

// files returns all files below a directory.
func (s *scene) files(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(s.at(folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
