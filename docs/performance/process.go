package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// check is the check of every job. It does not name a program of the project, which hone would refuse to run.
const check = "sh ./check.sh"

// figures are the result of one measurement; 0 means unknown.
type figures struct {
	wall, first, cpu time.Duration // first: until the first request arrived
	sent             float64       // bytes
	rss, pss         float64       // bytes, of the tree of processes
}

// per returns the figures of each of n things, where less are the figures without them.
func (f figures) per(n int, less figures) figures {
	each := time.Duration(n)
	return figures{wall: (f.wall - less.wall) / each, cpu: (f.cpu - less.cpu) / each, sent: (f.sent - less.sent) / float64(n)}
}

// program is what a row of the table runs.
type program struct {
	argv  []string // with %s for the address of the server
	state string   // directory for what the program keeps between runs
	env   []string // more variables, also with %s
}

// job is a program's use of a project.
type job struct {
	program
	dir     string // the project
	session *session
	sample  bool // measure the memory, which takes time
}

// run runs the job once. It fails unless the program exits with status 0, and has asked for all replies.
func (b *bench) run(j job) (figures, error) {
	var f figures
	url := ""
	if j.session != nil {
		url = b.url + "/" + b.server.add(j.session)
	}
	c := exec.Command(j.argv[0])
	c.Args = strings.Split(strings.ReplaceAll(strings.Join(j.argv, "\x00"), "%s", url), "\x00")
	c.Dir, c.Env = j.dir, environment(j.state)
	for _, variable := range j.env {
		c.Env = append(c.Env, strings.ReplaceAll(variable, "%s", url))
	}
	out, err := os.CreateTemp(b.dir, "output")
	if err = errors.Join(err, os.MkdirAll(filepath.Join(j.state, "home"), 0o755)); err != nil {
		return f, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	start := time.Now()
	if err := c.Start(); err != nil {
		return f, err
	}
	memory := func() (float64, float64) { return 0, 0 }
	if j.sample {
		memory = sample(c.Process.Pid)
	}
	err = c.Wait()
	f.wall = time.Since(start)
	f.rss, f.pss = memory()
	f.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	if err != nil {
		text, _ := os.ReadFile(out.Name())
		return f, errors.New(strings.TrimSuffix(fmt.Sprintf("%v: %s", err, firstLine(text)), ": "))
	}
	return f, j.session.figures(&f, start)
}

// figures adds what the server has measured.
func (s *session) figures(f *figures, start time.Time) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served < len(s.replies) || s.served > len(s.replies) && !s.more {
		return fmt.Errorf("the program sent %d requests, not %d", s.served, len(s.replies))
	}
	if s.lacks != "" {
		return fmt.Errorf("no request has the result of a call: %s", s.lacks)
	}
	f.first, f.sent = s.first.Sub(start), float64(s.sent)
	return nil
}

// environment returns the variables of a program: one key, and none of the user's settings.
func environment(state string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "OPENAI_API_KEY=bench", "GIT_CONFIG_NOSYSTEM=1",
		"HOME=" + filepath.Join(state, "home"), "XDG_STATE_HOME=" + filepath.Join(state, "state"), "XDG_CACHE_HOME=" + filepath.Join(state, "cache")}
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return strings.TrimPrefix(string(line), "hone: ")
}

// project creates a repository with these files, and returns its directory.
func (b *bench) project(files map[string]string) (string, error) {
	dir, err := os.MkdirTemp(b.dir, "project")
	if err != nil {
		return "", err
	}
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o755)); err != nil {
			return "", err
		}
	}
	return dir, commit(dir)
}

// commit creates a repository and commits all files. Without git it does nothing.
func commit(dir string) error {
	if _, err := exec.LookPath("git"); err != nil {
		return nil
	}
	for _, args := range []string{"init -q -b main --template=", "add -A", "-c user.name=b -c user.email=b@b -c gc.auto=0 commit -q -m b"} {
		c := exec.Command("git", strings.Fields(args)...)
		c.Dir, c.Env = dir, environment(dir)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %v: %s", args, err, firstLine(out))
		}
	}
	return nil
}

// small returns the files of the four-turn job.
func small() map[string]string {
	return map[string]string{"a.txt": "one\n", "check.sh": "grep -q two a.txt\n"}
}

// note is the text of note number %d.
const note = "This is the text of note %d."

// notes returns the same files, and n with a note each.
func notes(n int) map[string]string {
	files := small()
	for i := range n {
		files[fmt.Sprintf("note%d.txt", i)] = fmt.Sprintf(note, i) + "\n"
	}
	return files
}

// reconciled returns the files of a reconcile job.
func reconciled() map[string]string {
	return map[string]string{
		"specs/s.md":        "src/a says two.\n",
		"src/a":             "one\n",
		".config/bork.json": `{"correctness-checker": "check.sh"}`,
		"check.sh":          "#!/bin/sh\ngrep -q two src/a || exit 1\necho '{\"per_file_findings\": [], \"overall_findings\": []}'\n",
	}
}

// large returns the files of the four-turn job and n others.
func large(n int) map[string]string {
	files := small()
	for i := range n {
		files[fmt.Sprintf("pkg%d/file%d.go", i/100, i)] = fmt.Sprintf("package pkg%d\n\n// F%d returns a number.\nfunc F%d() int { return %d }\n", i/100, i, i, i)
	}
	return files
}
