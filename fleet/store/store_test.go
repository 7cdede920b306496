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
	"strconv"
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

// A writer whose version was removed long ago must not bring it back.
func TestDirOldWriter(t *testing.T) {
	d := dir{t.TempDir()}
	version := ""
	for i := range 5 {
		var err error
		if version, err = d.Put(t.Context(), "a", bytes.NewReader([]byte{byte(i)}), version); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.link("a", strings.NewReader("old"), 3); err != nil { // as if it had looked before version 3 existed
		t.Fatal(err)
	}
	if err := d.confirm("a", 3); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	if got := text(t, d, "a"); got != "\x04" {
		t.Errorf("%q", got)
	}
}

// TestS3 needs versitygw, a server that speaks S3, which "make fleet-test" builds. It keeps ETags in attributes of its files;
// with --sidecar its conditional writes are not atomic, and this test fails.
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
	put := func(name, content, match string, want error) string {
		t.Helper()
		version, err := s.Put(ctx, name, strings.NewReader(content), match)
		if !errors.Is(err, want) {
			t.Errorf("put %s for version %q: error %v, want %v", name, match, err, want)
		}
		return version
	}
	if _, _, err := s.Get(ctx, "b/j/manifest"); !errors.Is(err, ErrNotFound) {
		t.Errorf("get what is not there: %v", err)
	}
	if names, err := s.List(ctx, "b/"); err != nil || len(names) > 0 {
		t.Errorf("list what is not there: %q, %v", names, err)
	}
	put("b/j/manifest", "1", "77", ErrConflict)
	one := put("b/j/manifest", "1", "", nil)
	put("b/j/manifest", "2", "", ErrConflict)
	if again := put("b/j/manifest", "1", "", nil); again != one {
		t.Errorf("the same content again: version %q, was %q", again, one)
	}
	two := put("b/j/manifest", "2", one, nil)
	put("b/j/manifest", "3", one, ErrConflict)
	if again := put("b/j/manifest", "2", one, nil); again != two {
		t.Errorf("the same replacement again: version %q, was %q", again, two)
	}
	if got := text(t, s, "b/j/manifest"); got != "2" {
		t.Errorf("got %q", got)
	}
	put("b/j/parts/0a", "", "", nil)
	put("b/jj/manifest", strings.Repeat("x", 20<<20), "", nil)
	for prefix, want := range map[string][]string{
		"b/j": {"b/j/manifest", "b/j/parts/0a", "b/jj/manifest"}, "b/j/": {"b/j/manifest", "b/j/parts/0a"}, "b/j/parts/0": {"b/j/parts/0a"}, "c": nil,
	} {
		if names, err := s.List(ctx, prefix); err != nil || !slices.Equal(names, want) {
			t.Errorf("list %s: %q, %v", prefix, names, err)
		}
	}
	for _, name := range []string{"", "/a", "a/", "a//b", "../a", "a/../b", ".hone", "a b", "a\nb"} {
		if _, err := s.Put(ctx, name, strings.NewReader(""), ""); err == nil {
			t.Errorf("put %q", name)
		}
	}
	for range 2 {
		if err := s.Delete(ctx, "b/j/parts/0a"); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := s.Get(ctx, "b/j/parts/0a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("get what was deleted: %v", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Put(done, "c", strings.NewReader(""), ""); err == nil {
		t.Error("put although the context is done")
	}
	if !t.Failed() {
		compete(t, s)
	}
}

// compete lets writers increment a number: none may be lost.
func compete(t *testing.T, s Store) {
	const writers, times = 4, 8
	if _, err := s.Put(t.Context(), "n", strings.NewReader("0 of nobody"), ""); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := 0; i < times; {
				content, version, err := Read(t.Context(), s, "n", 100)
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(strings.Fields(string(content))[0])
				_, err = s.Put(t.Context(), "n", strings.NewReader(fmt.Sprintf("%d of %d.%d", n+1, w, i)), version)
				if err == nil {
					i++
				} else if !errors.Is(err, ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if got := text(t, s, "n"); !strings.HasPrefix(got, fmt.Sprintf("%d of", writers*times)) {
		t.Errorf("after %d increments: %q", writers*times, got)
	}
}

func text(t *testing.T, s Store, name string) string {
	t.Helper()
	in, _, err := s.Get(t.Context(), name)
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
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "a", strings.NewReader("four"), ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(t.Context(), s, "a", 3); err == nil {
		t.Error("read more than the limit")
	}
}
