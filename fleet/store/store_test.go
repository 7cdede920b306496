package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

func TestDir(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	conform(t, s)
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), newPrefix) {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestS3 needs versitygw, a server that speaks S3, which "make fleet-test" builds.
func TestS3(t *testing.T) {
	conform(t, openTestS3(t))
}

// openTestS3 starts a server on loopback and returns a store in it.
func openTestS3(t *testing.T) Store {
	t.Helper()
	program, err := exec.LookPath("versitygw")
	if err != nil {
		t.Skip("versitygw, a server that speaks S3, is not on PATH: make bin/versitygw")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "worker")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of a test")
	data := t.TempDir()
	var said bytes.Buffer
	server := exec.Command(program, "--port", address, "--access", "worker", "--secret", "of a test", "--quiet", "posix", data)
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for tries := 0; ; tries++ {
		if answer, err := http.Get("http://" + address + "/"); err == nil {
			answer.Body.Close()
			break
		} else if tries == 6000 {
			t.Fatalf("the server does not answer: %v\n%s", err, &said)
		}
		time.Sleep(50 * time.Millisecond)
	}
	s, err := Open("s3://fleet/of/workers?region=us-east-1&endpoint=http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.(bucket).client.MakeBucket(t.Context(), "fleet", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// conform checks what a Store promises.
func conform(t *testing.T, s Store) {
	ctx := t.Context()
	create := func(name, content string, want error) {
		t.Helper()
		if err := s.Create(ctx, name, strings.NewReader(content)); !errors.Is(err, want) {
			t.Errorf("create %s: error %v, want %v", name, err, want)
		}
	}
	if _, err := s.Get(ctx, "b/j/log/1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("get what is not there: %v", err)
	}
	if names, err := s.List(ctx, "b/"); err != nil || len(names) > 0 {
		t.Errorf("list what is not there: %q, %v", names, err)
	}
	create("b/j/log/1", "1", nil)
	create("b/j/log/1", "2", ErrExists)
	create("b/j/log/2", "", nil)
	create("b/jj/log/1", strings.Repeat("x", 20<<20), nil)
	if got := text(t, s, "b/j/log/1"); got != "1" {
		t.Errorf("got %q", got)
	}
	for prefix, want := range map[string][]string{
		"b/j": {"b/j/log/1", "b/j/log/2", "b/jj/log/1"}, "b/j/": {"b/j/log/1", "b/j/log/2"}, "b/j/log/2": {"b/j/log/2"}, "c": nil,
	} {
		if names, err := s.List(ctx, prefix); err != nil || !slices.Equal(names, want) {
			t.Errorf("list %s: %q, %v", prefix, names, err)
		}
	}
	for _, name := range []string{"", "/a", "a/", "a//b", "../a", "a/../b", ".hone", "a b", "a\nb"} {
		if err := s.Create(ctx, name, strings.NewReader("")); err == nil {
			t.Errorf("create %q", name)
		}
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Create(done, "c", strings.NewReader("")); err == nil {
		t.Error("created although the context is done")
	}
	if !t.Failed() {
		compete(t, s)
	}
}

// compete lets writers write the same names: each has one writer.
func compete(t *testing.T, s Store) {
	const writers, names = 4, 8
	var all sync.WaitGroup
	won := make([][]bool, writers)
	for w := range writers {
		all.Go(func() {
			for i := range names {
				err := s.Create(t.Context(), fmt.Sprint("n/", i), strings.NewReader(fmt.Sprint(w)))
				if won[w] = append(won[w], err == nil); err != nil && !errors.Is(err, ErrExists) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range names {
		for w := range writers {
			if has := text(t, s, fmt.Sprint("n/", i)) == fmt.Sprint(w); has != won[w][i] {
				t.Errorf("%d: writer %d was told %v, and the object is its own: %v", i, w, won[w][i], has)
			}
		}
	}
}

func text(t *testing.T, s Store, name string) string {
	t.Helper()
	in, err := s.Get(t.Context(), name)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestOpen(t *testing.T) {
	for _, where := range []string{"", "gs://bucket", "s3://", "s3://b?endpoint=nowhere", "s3://key:secret@b"} {
		if _, err := Open(where); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", where, err)
		}
	}
}
