//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bare is the smallest Go program that sends a request. It is the baseline for
// the start of hone.
const bare = `package main

import (
	"net/http"
	"os"
	"strings"
)

func main() {
	r, err := http.Post(os.Args[1]+"/v1/chat/completions", "application/json", strings.NewReader("{}"))
	if err == nil {
		r.Body.Close()
	}
}
`

// BenchmarkStart measures how long it takes from the start of the process to
// its first request, and how much memory that needs, on a small repository. A
// bare HTTP client in the same run is the comparison.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	build(b, filepath.Join(dir, "hone"), ".")
	source := filepath.Join(dir, "bare.go")
	if err := os.WriteFile(source, []byte(bare), 0o644); err != nil {
		b.Fatal(err)
	}
	build(b, filepath.Join(dir, "bare"), source)
	repo := smallRepository(b)
	b.Run("bare client", func(b *testing.B) {
		toFirstRequest(b, func(url string) *exec.Cmd { return exec.Command(filepath.Join(dir, "bare"), url) })
	})
	b.Run("hone reconcile", func(b *testing.B) {
		toFirstRequest(b, func(url string) *exec.Cmd {
			return exec.Command(filepath.Join(dir, "hone"), "reconcile", "-q", "-C", repo, "-m", "openai/scripted", "--base-url", url+"/v1")
		})
	})
}

func build(b *testing.B, out, what string) {
	b.Helper()
	if msg, err := exec.Command("go", "build", "-o", out, what).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, msg)
	}
}

// smallRepository returns a repository with about twenty files.
func smallRepository(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	for i := range 20 {
		for _, name := range []string{fmt.Sprintf("src/f%d.go", i), "specs/s.md"} {
			at := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(strings.Repeat("a line of code\n", 100)), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=b", "-c", "user.email=b@b", "commit", "-q", "-m", "b"}} {
		c := exec.Command("git", args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("git: %v\n%s", err, out)
		}
	}
	return dir
}

// toFirstRequest runs a program once per iteration, and reports its peak memory
// and the time until its first request. The server rejects the request, so that
// the program exits.
func toFirstRequest(b *testing.B, program func(url string) *exec.Cmd) {
	first := make(chan time.Time, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case first <- time.Now():
		default:
		}
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer s.Close()
	var total time.Duration
	var peak int64
	for b.Loop() {
		c := program(s.URL)
		began := time.Now()
		_ = c.Run()
		total += (<-first).Sub(began)
		if use, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, int64(use.Maxrss))
		}
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms/first-request")
	if runtime.GOOS == "linux" {
		b.ReportMetric(float64(peak)/1024, "MB-peak")
	}
}
